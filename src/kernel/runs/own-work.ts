import { reportCall } from '../actions/report.ts'
import { cancelApproval } from '../approval-states.ts'
import { moveCall } from '../call-states.ts'
import { aboutRun, type Change } from '../change.ts'
import type { ActionCall } from '../model/action.ts'
import type { Run } from '../model/run.ts'
import { approvals, saveApproval } from '../store/approvals.ts'
import { markStopping } from '../store/call-leases.ts'
import { calls, lockOpenCalls } from '../store/calls.ts'
import { lockRecord, saveRecord } from '../store/records.ts'
import { findTurn, turns } from '../store/turns.ts'
import { ONE_ACTION, settleCall, settleTurn } from './reservations.ts'

/** What a run at its end leaves undone. Contract: kernel-1.md 6.5, 9, 10 */

/**
 * Cancels what was proposed and nobody began: calls that are ready or wait for approval, with their approvals. Who makes a
 * call is told to give it up; its outcome is recorded all the same. Gives the calls as they are now.
 */
export async function cancelOpenCalls(change: Change, run: Run): Promise<ActionCall[]> {
  const { tx, scope } = change
  const left: ActionCall[] = []
  for (const call of await lockOpenCalls(tx, scope, run.id)) {
    if (call.status === 'running') await markStopping(tx, scope, call.id)
    const isBegun = call.status !== 'ready' && call.status !== 'waiting_for_approval'
    left.push(isBegun ? call : await cancelCall(change, run, call))
  }
  return left
}

async function cancelCall(change: Change, run: Run, call: ActionCall): Promise<ActionCall> {
  const { tx, scope, now } = change
  if (call.approvalId !== undefined) {
    const approval = await lockRecord(tx, approvals, scope, call.approvalId)
    if (approval.status === 'pending') await saveApproval(tx, cancelApproval(approval, now).record, now)
  }
  const canceled = await saveRecord(tx, calls, moveCall(call, 'canceled', now), now)
  reportCall(change, run, canceled, 'canceled', { summary: `${call.action} canceled: the run is at its end` })
  return canceled
}

/**
 * The run, unsaved, without what it had under way: what nobody began is canceled, what may have been done is charged. Who
 * waits for the answer of a model closes that turn himself, and charges what it used.
 * @param before the run as it was before its end
 */
export async function closeOwnWork(change: Change, run: Run, before: Run): Promise<Run> {
  let closed = run
  for (const call of await cancelOpenCalls(change, run)) {
    if (call.status === 'running' || !Object.hasOwn(run.budgetReservations, call.id)) continue
    closed = settleCall(change, closed, call, call.status === 'ambiguous' ? ONE_ACTION : {})
  }
  return closeTurn(change, closed, before)
}

/** No holder of a run takes longer to notice what became of it. */
export const NOTICED_WITHIN_MS = 60_000

/** Whether somebody may wait for the model yet: one from whom the run was just taken by a pause, too. */
function isHeld({ leaseExpiresAt, lastClaimedAt = '', updatedAt, ...run }: Run, now: number): boolean {
  const isLeased = leaseExpiresAt !== undefined && Date.parse(leaseExpiresAt) > now
  const isPaused = run.status === 'paused' && run.pauseReason === 'command' && run.pausedFrom === 'queued'
  // One that was paused in the queue was not claimed since it came there.
  const ranBefore = isPaused && lastClaimedAt >= run.queueEnteredAt
  return isLeased || (ranBefore && now - Date.parse(updatedAt) < NOTICED_WITHIN_MS)
}

/** The run charged with its turn, which is closed; as it is where there is none, or the model is at it. */
async function closeTurn(change: Change, run: Run, before: Run): Promise<Run> {
  const { tx, scope, at, now } = change
  const { turn } = (await findTurn(tx, scope, run.id, run.lastAppliedTurn + 1)) ?? {}
  if (!turn || (turn.status === 'running' && isHeld(before, now))) return run
  await saveRecord(tx, turns, { ...turn, status: 'canceled', discardReason: 'run_canceled', completedAt: at }, now)
  change.report({
    ...aboutRun(run),
    turnId: turn.id,
    eventType: 'turn.canceled',
    summary: `Turn ${turn.sequence} canceled with its run`,
    payload: { turnId: turn.id, code: 'run_canceled' },
  })
  return settleTurn(change, run, turn)
}
