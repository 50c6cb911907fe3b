import { aboutRun, type Attribution, type Change } from '../change.ts'
import type { ActionCall, Approval } from '../model/action.ts'
import type { NewEvent } from '../model/event.ts'
import type { Run } from '../model/run.ts'

interface Told extends Pick<NewEvent, 'summary' | 'severity'> {
  policyReason?: string
  availableAt?: string
  reason?: string
}

/** Tells of a call, as it is now. @param kind what follows `action.` Contract: kernel-1.md 16 */
export function reportCall(
  change: Change,
  run: Run,
  call: ActionCall,
  kind: string,
  { summary, severity, ...more }: Told,
): NewEvent {
  const { id, approvalId, bindingId, bindingRevision, skillId, skillVersion, action, risk, status, attempt } = call
  return change.report({
    ...aboutRun(run),
    ...(call.turnId !== undefined && { turnId: call.turnId }),
    eventType: `action.${kind}`,
    summary,
    ...(severity && { severity }),
    payload: {
      actionCallId: id,
      ...(approvalId !== undefined && { approvalId }),
      bindingId,
      bindingRevision,
      skillId,
      skillVersion,
      action,
      risk,
      status,
      attempt,
      ...more,
    },
  })
}

/** Tells of an approval, as it is now. @param kind what follows `approval.` Contract: kernel-1.md 16 */
export function reportApproval(change: Change, run: Run, approval: Approval, kind: string, by: Attribution): NewEvent {
  const { id: approvalId, actionCallId, status, decisionId, decisionReason } = approval
  return change.report(
    {
      ...aboutRun(run),
      eventType: `approval.${kind}`,
      summary: `${approval.summary}: ${status}`,
      payload: {
        approvalId,
        actionCallId,
        status,
        ...(decisionId !== undefined && { decisionId }),
        ...(decisionReason !== undefined && { decisionReason }),
      },
    },
    by,
  )
}
