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
import { findUnfinishedTurn, turns } from '../store/turns.ts'

/** What a run at its end leaves undone. Contract: kernel-1.md 6.5, 9, 10 */

/**
 * Cancels what was proposed and nobody began: calls that are ready or wait for approval, with their approvals. Who makes a
 * call is told to give it up; its outcome is recorded all the same. Gives the ids of the canceled calls.
 */
export async function cancelOpenCalls(change: Change, run: Run): Promise<string[]> {
  const { tx, scope } = change
  const canceled: string[] = []
  for (const call of await lockOpenCalls(tx, scope, run.id)) {
    if (call.status === 'running') await markStopping(tx, scope, call.id)
    if (call.status !== 'ready' && call.status !== 'waiting_for_approval') continue
    await cancelCall(change, run, call)
    canceled.push(call.id)
  }
  return canceled
}

async function cancelCall(change: Change, run: Run, call: ActionCall): Promise<void> {
  const { tx, scope, now } = change
  if (call.approvalId !== undefined) {
    const approval = await lockRecord(tx, approvals, scope, call.approvalId)
    if (approval.status === 'pending') await saveApproval(tx, cancelApproval(approval, now).record, now)
  }
  const canceled = await saveRecord(tx, calls, moveCall(call, 'canceled', now), now)
  reportCall(change, run, canceled, 'canceled', { summary: `${call.action} canceled: the run is at its end` })
}

/**
 * Closes a turn under way that nobody works on; who works on one closes it himself, and charges what it used.
 * Gives the ids of the closed turns: one at most.
 */
export async function closeAbandonedTurn(change: Change, run: Run): Promise<string[]> {
  const { tx, scope, at, now } = change
  if (run.leaseExpiresAt !== undefined && Date.parse(run.leaseExpiresAt) > now) return []
  const turn = await findUnfinishedTurn(tx, scope, run.id)
  if (!turn) return []
  const closed = { ...turn, status: 'canceled' as const, discardReason: 'the run was canceled', completedAt: at }
  await saveRecord(tx, turns, closed, now)
  change.report({
    ...aboutRun(run),
    turnId: turn.id,
    eventType: 'turn.canceled',
    summary: `Turn ${turn.sequence} canceled with its run`,
    payload: { turnId: turn.id, code: 'run_canceled' },
  })
  return [turn.id]
}
