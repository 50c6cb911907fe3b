import { toTimestamp } from '../../base/clock.ts'
import { decide, isOver, timeOut, type Decided } from '../approval-states.ts'
import { moveCall } from '../call-states.ts'
import { BY_KERNEL, makeChange, type Attribution, type Change } from '../change.ts'
import type { KernelContext } from '../context.ts'
import { conflict, expectRevision, KernelError } from '../errors.ts'
import type { ActionCall, Approval, Decision } from '../model/action.ts'
import type { Party, Scope } from '../model/fields.ts'
import type { Run } from '../model/run.ts'
import { waitRun } from '../run-states.ts'
import { saveMoved } from '../runs/save.ts'
import { approvals, saveApproval } from '../store/approvals.ts'
import { calls } from '../store/calls.ts'
import { lockRecord, readRecord, saveRecord } from '../store/records.ts'
import { runs } from '../store/runs.ts'
import { requireConsent } from './authorizer.ts'
import { giveBack } from './give-back.ts'
import { reportApproval } from './report.ts'

/** What people decide about calls, and what happens when nobody does: T9. Contract: kernel-1.md 10, 13, 14.4 */

export interface AskedDecision {
  expectedRevision: number
  decision: Decision
  decisionId: string
  principal: Party
  reason?: string
}

export interface Settled {
  approval: Approval
  call: ActionCall
  run: Run
  /** False when this very decision was made before. */
  resolved: boolean
}

/**
 * Asks, before the transaction, whether the principal may decide; commits what time has decided already.
 * @throws not_configured; not_found; forbidden; conflict when the time is over
 */
export async function checkDecision(
  context: KernelContext,
  scope: Scope,
  approvalId: string,
  { decision, principal }: AskedDecision,
  by: Attribution,
): Promise<void> {
  const { store, approvalAuthorizer, log } = context
  const approval = await readRecord(store.database, approvals, scope, approvalId)
  if (!approvalAuthorizer) throw new KernelError('not_configured', 'approval authorizer is not configured')
  await requireConsent(
    { approvalAuthorizer, log },
    { subject: { kind: 'approval', approval }, decision, principal },
    by,
  )
  if (!isOver(approval, store.now())) return
  await endOverdue(context, scope, approvalId)
  throw conflict('the time for this decision is over')
}

/** @throws conflict when it is decided otherwise, its time is over, or the revision is another */
export async function decideApproval(change: Change, approvalId: string, asked: AskedDecision): Promise<Settled> {
  const { decision, decisionId, principal: by, reason, expectedRevision } = asked
  const { approval, call, run } = await lockApproval(change, approvalId)
  if (approval.decisionId === decisionId) {
    if (!isSame(approval, asked)) throw conflict('this decisionId was used with other content')
    return { approval, call, run, resolved: false }
  }
  const verdict = { by, decisionId, ...(reason !== undefined && { reason }) }
  const decided = decide(approval, decision, verdict, change.now)
  expectRevision(expectedRevision, approval.revision)
  return { ...(await carryOut(change, { run, call, decided }, decided.approval)), resolved: true }
}

const MEANT: Record<Decision, Approval['status']> = {
  approve: 'approved',
  reject: 'rejected',
  request_changes: 'changes_requested',
}

const isSame = ({ status, decisionBy, decisionReason }: Approval, asked: AskedDecision): boolean =>
  status === MEANT[asked.decision] &&
  decisionBy?.type === asked.principal.type &&
  decisionBy.id === asked.principal.id &&
  decisionReason === asked.reason

/** Does what an approval's own rule says when its time is over; nothing when it is decided by now. */
export async function endOverdue(context: KernelContext, scope: Scope, approvalId: string): Promise<void> {
  await makeChange(context, scope, BY_KERNEL, async (change) => {
    const { approval, call, run } = await lockApproval(change, approvalId)
    if (!isOver(approval, change.now)) return
    const decided = timeOut(approval, change.now)
    const event = decided.approval === 'approved' ? 'auto_approved' : 'expired'
    await carryOut(change, { run, call, decided }, event)
  })
}

/** The run first, then the call, then the approval: as everywhere. */
async function lockApproval(
  { tx, scope }: Change,
  approvalId: string,
): Promise<{ approval: Approval; call: ActionCall; run: Run }> {
  const { runId, actionCallId } = await readRecord(tx, approvals, scope, approvalId)
  const run = await lockRecord(tx, runs, scope, runId)
  const call = await lockRecord(tx, calls, scope, actionCallId)
  return { run, call, approval: await lockRecord(tx, approvals, scope, approvalId) }
}

async function carryOut(
  change: Change,
  { run, call, decided }: { run: Run; call: ActionCall; decided: Decided },
  event: string,
): Promise<Omit<Settled, 'resolved'>> {
  const { tx, now } = change
  const approval = await saveApproval(tx, decided.record, now)
  const { decisionBy, decisionReason: reason } = approval
  const isClaimed = change.by.actorSource === 'claimed' && decisionBy
  reportApproval(change, run, approval, event, isClaimed ? { ...change.by, actor: decisionBy } : change.by)
  const moved = moveCall(call, decided.call, now)
  if (decided.call === 'ready') {
    const ready = await saveRecord(tx, calls, { ...moved, availableAt: toTimestamp(now) }, now)
    const waiting = waitRun(run, 'waiting_for_dependency', { type: 'action', reference: call.id }, now)
    return { approval, call: ready, run: await saveMoved(change, run, waiting) }
  }
  const denied = await saveRecord(tx, calls, { ...moved, error: reason ?? `the approval is ${approval.status}` }, now)
  const next = giveBack(change, run, denied, {
    wake: { type: 'approval', reference: approval.id },
    used: {},
    more: { kind: 'approval', status: approval.status, approvalId: approval.id },
  })
  return { approval, call: denied, run: await saveMoved(change, run, next) }
}
