import { toTimestamp } from '../../base/clock.ts'
import type { Change } from '../change.ts'
import type { ActionCall, Approval } from '../model/action.ts'
import type { PolicyDecision } from '../model/policy.ts'
import type { Run } from '../model/run.ts'
import { moveRun } from '../run-states.ts'
import { insertApproval } from '../store/approvals.ts'
import { calls } from '../store/calls.ts'
import { insertRecord } from '../store/records.ts'
import { reportCall } from './report.ts'

/** Records the call with the question to its approvers; gives the run, not yet saved, waiting for them. */
export async function askForApproval(
  change: Change,
  run: Run,
  planned: ActionCall,
  { summary, decision }: { summary: string; decision: PolicyDecision },
): Promise<Run> {
  const { tx, scope, at, now } = change
  const approvalId = change.context.newId()
  const call: ActionCall = { ...planned, status: 'waiting_for_approval', approvalId }
  const { reason, eligibleApprovers, destinations, ttlMs, timeoutDecision } = decision
  const approval: Approval = {
    scope,
    id: approvalId,
    revision: 1,
    createdAt: at,
    updatedAt: at,
    runId: run.id,
    actionCallId: call.id,
    status: 'pending',
    risk: call.risk,
    summary,
    ...(reason !== undefined && { policyReason: reason }),
    proposedAction: {
      bindingId: call.bindingId,
      skillId: call.skillId,
      skillVersion: call.skillVersion,
      action: call.action,
      arguments: call.arguments,
      sideEffect: call.sideEffect,
    },
    evidenceRefs: call.evidenceRefs,
    eligibleApprovers,
    destinations,
    ...(Object.keys(run.checkpoint).length > 0 && { continuationCheckpoint: run.checkpoint }),
    expiresAt: toTimestamp(now + ttlMs),
    timeoutDecision,
  }
  await insertRecord(tx, calls, call)
  await insertApproval(tx, approval, run.owner)
  const policyReason = reason === undefined ? {} : { policyReason: reason }
  reportCall(change, run, call, 'proposed', { summary })
  reportCall(change, run, call, 'approval_requested', { summary, ...policyReason })
  return moveRun(run, {
    to: 'waiting_for_approval',
    now,
    wake: { type: 'approval', reference: approvalId },
  })
}
