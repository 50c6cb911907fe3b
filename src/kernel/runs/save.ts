import type { Change } from '../change.ts'
import type { Run } from '../model/run.ts'
import { isTerminal } from '../run-states.ts'
import { saveRun } from '../store/runs.ts'
import { settleAllocations } from './allocations.ts'

/**
 * Writes a run in its next state: one that leaves `running` gives back its lease, one at its end takes along what hangs on it,
 * and one that is charged after its end gives back less of its budget.
 * @throws conflict when another write came between
 */
export async function saveMoved(change: Change, before: Run, next: Run): Promise<Run> {
  const { tx, now } = change
  const isLeft = before.status === 'running' && next.status !== 'running'
  const saved = await saveRun(tx, isLeft ? withoutLease(next) : next, now)
  if (isLeft) change.givesBack(saved)
  if (isTerminal(before.status)) await settleAllocations(change, saved)
  else if (isTerminal(saved.status)) change.ended(saved)
  return saved
}

const withoutLease = ({ leaseOwner: _o, leaseExpiresAt: _e, ...run }: Run): Run => run
