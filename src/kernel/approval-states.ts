import { toTimestamp } from '../base/clock.ts'
import { conflict } from './errors.ts'
import type { Approval, ApprovalStatus, CallStatus, Decision } from './model/action.ts'
import type { Party } from './model/fields.ts'
import type { RunStatus } from './model/run.ts'

/** Contract: kernel-1.md 10. */

interface Effect {
  approval: ApprovalStatus
  call: Extract<CallStatus, 'ready' | 'denied' | 'canceled'>
  run: Extract<RunStatus, 'waiting_for_dependency' | 'queued' | 'canceled'>
}

/** What ends a pending approval, and what it does to its call and run. */
const EFFECTS = {
  approve: { approval: 'approved', call: 'ready', run: 'waiting_for_dependency' },
  reject: { approval: 'rejected', call: 'denied', run: 'queued' },
  request_changes: { approval: 'changes_requested', call: 'denied', run: 'queued' },
  expire: { approval: 'expired', call: 'denied', run: 'queued' },
  cancel: { approval: 'canceled', call: 'canceled', run: 'canceled' },
} as const satisfies Record<Decision | 'expire' | 'cancel', Effect>

export interface Verdict {
  by: Party
  decisionId: string
  reason?: string
}

export interface Decided extends Effect {
  record: Approval
}

const end = (approval: Approval, by: keyof typeof EFFECTS, now: number, verdict?: Verdict): Decided => {
  if (approval.status !== 'pending') throw conflict(`the approval is ${approval.status} already`)
  const effect = EFFECTS[by]
  const { by: decisionBy, decisionId, reason: decisionReason } = verdict ?? {}
  return {
    ...effect,
    record: {
      ...approval,
      status: effect.approval,
      decidedAt: toTimestamp(now),
      ...(decisionBy && { decisionBy }),
      ...(decisionId !== undefined && { decisionId }),
      ...(decisionReason !== undefined && { decisionReason }),
    },
  }
}

/** @throws conflict when it is decided, or its time is over: then `timeOut` comes first, in a transaction of its own */
export function decide(approval: Approval, decision: Decision, verdict: Verdict, now: number): Decided {
  if (approval.status === 'pending' && isOver(approval, now)) throw conflict('the time for this decision is over')
  return end(approval, decision, now, verdict)
}

export const isOver = ({ status, expiresAt }: Approval, now: number): boolean =>
  status === 'pending' && Date.parse(expiresAt) <= now

/** What its own rule does when nobody decided in time. @throws conflict when it is decided */
export const timeOut = (approval: Approval, now: number): Decided =>
  end(approval, approval.timeoutDecision === 'approve' ? 'approve' : 'expire', now)

/** With its run. @throws conflict when it is decided */
export const cancelApproval = (approval: Approval, now: number): Decided => end(approval, 'cancel', now)
