import { aboutRun, BY_KERNEL, makeChange } from '../change.ts'
import type { KernelContext } from '../context.ts'
import type { Turn } from '../model/turn.ts'
import { isTerminal, moveRun } from '../run-states.ts'
import { NOTICED_WITHIN_MS } from '../runs/own-work.ts'
import { pauseForBudget, settleTurn } from '../runs/reservations.ts'
import { saveMoved } from '../runs/save.ts'
import { lockRecord, saveRecord } from '../store/records.ts'
import { abandonLease, holdsLease } from '../store/run-leases.ts'
import { runs } from '../store/runs.ts'
import { findOrphans, findTurn, turns } from '../store/turns.ts'
import { Held, learnDiscard, type Discard } from './held.ts'
import type { TurnParts } from './parts.ts'

/**
 * Closes a turn whose outcome nobody wants: nothing of it is published, its usage is charged, and a run that goes on takes
 * another turn. After a lost lease the turn is the next holder's. Contract: kernel-1.md 6.5, 14.3
 * @param known why; found out where it is not
 */
export async function discardTurn(
  { context }: Pick<TurnParts, 'context'>,
  held: Held,
  turn: Turn,
  known?: Discard,
): Promise<void> {
  const { scope, id } = held.run
  const reason = known ?? (await learnDiscard(context, held))
  if (reason === 'lease_lost') return
  await makeChange(context, scope, BY_KERNEL, async (change) => {
    const { tx, now, at } = change
    if (reason === 'engine_stopped') return abandonLease(tx, scope, id, { fencingToken: held.fencingToken, now })
    const run = await lockRecord(tx, runs, scope, id)
    const isOver = run.status === 'paused' || isTerminal(run.status)
    if (!isOver && !(await holdsLease(tx, scope, id, held.fencingToken))) return
    const kept = await findTurn(tx, scope, id, turn.sequence)
    if (kept?.turn.revision !== turn.revision) return
    const canceled = { ...turn, status: 'canceled' as const, discardReason: reason, completedAt: at }
    await saveRecord(tx, turns, canceled, now)
    const settled = settleTurn(change, run, turn)
    const about = { ...aboutRun(run), turnId: turn.id }
    change.report({
      ...about,
      eventType: 'turn.canceled',
      summary: `The turn was dropped: ${reason.replaceAll('_', ' ')}`,
      payload: { turnId: turn.id, code: reason },
    })
    if (isOver) await saveMoved(change, run, settled)
    else if (reason === 'duration_budget') {
      const shortage = { dimension: 'maxDurationMs' as const, required: 1, remaining: 0 }
      const reservation = { turns: 1, durationMs: 1 }
      await saveMoved(change, run, pauseForBudget(change, settled, turn.id, { reservation, shortage }))
    } else {
      await saveMoved(change, run, moveRun(settled, { to: 'queued', now }))
      const payload = { turnSequence: turn.sequence }
      change.report({ ...about, eventType: 'run.yielded', summary: 'Another turn follows', payload })
    }
  })
}

const ORPHANS_AT_ONCE = 100

/** Closes turns of canceled runs whose holders are gone too: nobody else would. */
export async function closeOrphans(context: KernelContext): Promise<void> {
  const now = context.store.now()
  for (const { turn, run } of await findOrphans(context.store.database, ORPHANS_AT_ONCE)) {
    if (now - Date.parse(run.updatedAt) < NOTICED_WITHIN_MS) continue
    await discardTurn({ context }, new Held(run, 0, now), turn, 'run_canceled')
  }
}
