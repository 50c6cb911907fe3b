import * as z from 'zod'
import { body, expectedRevision, id, party, prose, type Party, type Recorded } from './fields.ts'

/** Contract: kernel-1.md 9, 10. */

export const CALL_STATES = [
  'waiting_for_approval',
  'denied',
  'ready',
  'running',
  'succeeded',
  'failed',
  'ambiguous',
  'canceled',
] as const
export type CallStatus = (typeof CALL_STATES)[number]

/** From harmless to not. */
export const RISKS = ['read', 'write', 'external', 'production', 'destructive'] as const
export const risk = z.enum(RISKS)
export type Risk = z.infer<typeof risk>

export const sideEffect = z.enum(['none', 'read', 'write', 'external', 'destructive'])
export type SideEffect = z.infer<typeof sideEffect>
/** What may be done again without harm. */
export const isHarmless = (effect: SideEffect): boolean => effect === 'none' || effect === 'read'

export type FailurePhase = 'prepare' | 'dispatch' | 'validate_output' | 'unknown'

/** A call that a turn proposes: part of its outcome. */
export interface ActionProposal {
  bindingId: string
  action: string
  arguments: Record<string, unknown>
  summary: string
  evidenceRefs?: string[]
  idempotencyKey?: string
}

/** Joined from the lease row and the journal: none of it raises the revision. */
export interface CallLease {
  leaseOwner?: string
  leaseExpiresAt?: string
  fencingToken?: number
  /** The request of the current attempt left, or was about to. */
  dispatchedAt?: string
}

export interface ActionCall extends Recorded, CallLease {
  runId: string
  turnId?: string
  deploymentId: string
  bindingId: string
  bindingRevision: number
  skillId: string
  skillVersion: string
  action: string
  status: CallStatus
  risk: Risk
  sideEffect: SideEffect
  arguments: Record<string, unknown>
  resolvedArguments: Record<string, { source: 'literal' | 'run_context' | 'verified_claim'; claim?: string }>
  credentialRefs: Record<string, { kind: string; id: string }>
  evidenceRefs: string[]
  idempotencyKey: string
  invocationDigest: string
  semanticDigest?: string
  /** One live or succeeded call of a scope has it. */
  externalOperationDigest?: string
  duplicateOfActionCallId?: string
  approvalId?: string
  attempt: number
  maxAttempts: number
  availableAt: string
  recoveredRunning?: boolean
  failurePhase?: FailurePhase
  output?: unknown
  error?: string
  startedAt?: string
  completedAt?: string
}

export const APPROVAL_STATES = ['pending', 'approved', 'rejected', 'changes_requested', 'expired', 'canceled'] as const
export type ApprovalStatus = (typeof APPROVAL_STATES)[number]

export interface Approval extends Recorded {
  runId: string
  actionCallId: string
  status: ApprovalStatus
  risk: Risk
  summary: string
  policyReason?: string
  proposedAction: Record<string, unknown>
  evidenceRefs: string[]
  eligibleApprovers: Party[]
  destinations: { endpointId: string }[]
  continuationCheckpoint?: Record<string, unknown>
  expiresAt: string
  timeoutDecision: 'expire' | 'approve'
  decisionBy?: Party
  decisionId?: string
  decisionReason?: string
  decidedAt?: string
}

export const DECISIONS = ['approve', 'reject', 'request_changes'] as const
export type Decision = (typeof DECISIONS)[number]

/** `decisionId` may come as the header instead. */
export const decideApproval = body({
  expectedRevision,
  decision: z.enum(DECISIONS).exactOptional(),
  approve: z.boolean().exactOptional(),
  decisionId: id.exactOptional(),
  principal: party,
  reason: prose.exactOptional(),
}).transform(({ decision, approve, ...rest }, ctx) => {
  const meant = decision ?? (approve === undefined ? undefined : approve ? 'approve' : 'reject')
  if (meant === undefined) ctx.addIssue({ code: 'custom', path: ['decision'], message: 'is required' })
  else if (approve !== undefined && approve !== (meant === 'approve'))
    ctx.addIssue({ code: 'custom', path: ['approve'], message: 'says something else than decision' })
  else if (meant === 'request_changes' && rest.reason === undefined)
    ctx.addIssue({ code: 'custom', path: ['reason'], message: 'must say what to change' })
  else return { ...rest, decision: meant }
  return z.NEVER
})
