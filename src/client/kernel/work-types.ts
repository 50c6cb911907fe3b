import type { Run } from './run-types.ts'
import type { Budget, Free, JsonObject, KernelEvent, OwnerQuery, PageQuery, Party, Recorded } from './types.ts'

/** Wire shapes of requests between agents, action calls and approvals: kernel-1.md 8 to 10. */

// Requests (8)

export type AgentRequestStatus =
  | 'pending'
  | 'clarification_requested'
  | 'accepted'
  | 'completion_review'
  | 'completed'
  | 'rejected'
  | 'failed'
  | 'canceled'

export interface DelegationPolicy {
  maximumDepth: number
  maximumConcurrent: number
  allowPeerDelegation: boolean
  requireAcceptance: boolean
  requireCompletionReview: boolean
  completionReviewQuorum: number
  escalateOnDisagreement: boolean
}

interface RequestContent {
  requester: Party
  recipient: Party
  sourceRunId: string
  goal: string
  instructions?: string
  semanticRole?: string
  acceptanceCriteria?: Free
  sharedContext?: Free
  childCheckpoint?: JsonObject
  budgetAllocation?: Budget
  assignedAgentId?: string
  objectiveId?: string
}

interface ArtifactRequirement {
  name: string
  type?: string
  description?: string
  schema?: JsonObject
}

export interface NewAgentRequest extends RequestContent {
  id?: string
  kind: 'request' | 'handoff'
  artifactRequirements?: (ArtifactRequirement & { required?: boolean })[]
  acceptancePolicy?: 'recipient_review' | 'preauthorized'
  delegationPolicy?: Omit<DelegationPolicy, 'completionReviewQuorum'> & { completionReviewQuorum?: number }
  conversationRefs?: string[]
  actor?: Party
}

interface ArtifactContent {
  id: string
  version: number
  requirementName?: string
  name: string
  type?: string
  mediaType?: string
  contentRef: string
  digest?: string
  sizeBytes?: number
  metadata?: JsonObject
}
/** As the recipient submits it. */
export interface SubmittedArtifact extends ArtifactContent {
  evidenceRefs?: string[]
}
export interface RequestArtifact extends ArtifactContent {
  evidenceRefs: string[]
}

export interface AgentRequest extends Recorded, RequestContent {
  kind: 'request' | 'handoff' | 'escalation'
  status: AgentRequestStatus
  artifactRequirements: (ArtifactRequirement & { required: boolean })[]
  acceptancePolicy: 'recipient_review' | 'preauthorized'
  delegationPolicy?: DelegationPolicy
  conversationRefs: string[]
  childRunId?: string
  candidates: { deploymentId: string; freeSlots: number; activeRuns: number }[]
  bids: { deploymentId: string; summary: string }[]
  assignmentDecision?: { deploymentId: string; reason: string }
  dependencyGroupId?: string
  dependencyId?: string
  clarification?: string
  response?: string
  completionSummary?: string
  resolutionReason?: string
  acceptanceEvidence?: Free
  artifacts: RequestArtifact[]
  completionKey?: string
  completionSubmittedAt?: string
  completionReviewer?: Party
  completionReviewSummary?: string
  completionReviewKey?: string
  completionReviews: { reviewer: Party; approve: boolean; summary: string; decidedAt: string }[]
  reviewDisagreement: boolean
  acceptedAt?: string
  reviewedAt?: string
  completedAt?: string
  resolvedAt?: string
}

export interface AgentRequestQuery extends PageQuery {
  sourceRunId?: string
  requesterType?: string
  requesterId?: string
  recipientType?: string
  recipientId?: string
  kind?: readonly AgentRequest['kind'][]
  status?: readonly AgentRequestStatus[]
}

export interface AgentRequestResponse {
  expectedRevision: number
  decision: 'accept' | 'reject' | 'request_clarification' | 'provide_clarification'
  principal: Party
  assignedAgentId?: string
  message?: string
  decisionRunId?: string
  actor?: Party
}

export interface AgentRequestCompletion {
  expectedRevision: number
  expectedChildRevision?: number
  principal: Party
  summary: string
  acceptanceEvidence?: Free
  artifacts?: SubmittedArtifact[]
  actor?: Party
}

export interface CompletionReview {
  expectedRevision: number
  expectedChildRevision?: number
  principal: Party
  approve: boolean
  summary: string
  resolveDisagreement?: boolean
  actor?: Party
}

export interface AgentRequestChange {
  request: AgentRequest
  sourceRun?: Run
  childRun?: Run
  /** Absent where the key was used before. */
  events?: KernelEvent[]
}

// Action calls and approvals (9, 10)

export type Risk = 'read' | 'write' | 'external' | 'production' | 'destructive'
export type SideEffect = 'none' | 'read' | 'write' | 'external' | 'destructive'
export type CallStatus =
  'waiting_for_approval' | 'denied' | 'ready' | 'running' | 'succeeded' | 'failed' | 'ambiguous' | 'canceled'

export interface ActionCall extends Recorded {
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
  arguments: JsonObject
  resolvedArguments: Record<string, { source: 'literal' | 'run_context' | 'verified_claim'; claim?: string }>
  credentialRefs: Record<string, { kind: string; id: string }>
  evidenceRefs: string[]
  idempotencyKey: string
  invocationDigest: string
  semanticDigest?: string
  externalOperationDigest?: string
  duplicateOfActionCallId?: string
  approvalId?: string
  attempt: number
  maxAttempts: number
  availableAt: string
  leaseOwner?: string
  leaseExpiresAt?: string
  dispatchedAt?: string
  recoveredRunning?: boolean
  failurePhase?: 'prepare' | 'dispatch' | 'validate_output' | 'unknown'
  output?: unknown
  error?: string
  startedAt?: string
  completedAt?: string
}

export interface CallQuery extends PageQuery {
  runId?: string
  status?: readonly CallStatus[]
  deploymentId?: string
}

export type ApprovalStatus = 'pending' | 'approved' | 'rejected' | 'changes_requested' | 'expired' | 'canceled'

export interface Approval extends Recorded {
  runId: string
  actionCallId: string
  status: ApprovalStatus
  risk: Risk
  summary: string
  policyReason?: string
  proposedAction: JsonObject
  evidenceRefs: string[]
  eligibleApprovers: Party[]
  destinations: { endpointId: string }[]
  continuationCheckpoint?: JsonObject
  expiresAt: string
  timeoutDecision: 'expire' | 'approve'
  decisionBy?: Party
  decisionId?: string
  decisionReason?: string
  decidedAt?: string
}

export interface ApprovalQuery extends PageQuery, OwnerQuery {
  runId?: string
  status?: readonly ApprovalStatus[]
  order?: 'created_asc' | 'created_desc'
}

export interface ApprovalDecision {
  decision: 'approve' | 'reject' | 'request_changes'
  expectedRevision: number
  /** A key of the decision: the same id with the same content decides once. */
  decisionId?: string
  principal: Party
  reason?: string
  actor?: Party
}

export interface Decided {
  approval: Approval
  call: ActionCall
  run: Run
  event?: KernelEvent
  /** False where this decision was made before. */
  resolved: boolean
}
