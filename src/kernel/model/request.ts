import * as z from 'zod'
import { budgetPolicy } from './budget.ts'
import {
  body,
  count,
  evidenceRefs,
  expectedRevision,
  free,
  freeSecretFree,
  id,
  KEY,
  object,
  party,
  positive,
  prose,
  text,
  type Party,
  type Recorded,
} from './fields.ts'

/** Work that one agent asks of another. Contract: kernel-1.md 8. */

export const REQUEST_KINDS = ['request', 'handoff', 'escalation'] as const
export const REQUEST_STATES = [
  'pending',
  'clarification_requested',
  'accepted',
  'completion_review',
  'completed',
  'rejected',
  'failed',
  'canceled',
] as const
export type RequestStatus = (typeof REQUEST_STATES)[number]

const artifactRequirement = z.strictObject({
  name: text(512),
  type: text(256).exactOptional(),
  description: prose.exactOptional(),
  schema: object.exactOptional(),
  required: z.boolean().default(true),
})

/** Of a team: copied into the request, so that a later change of the team does not touch it. */
export const delegationPolicy = z.strictObject({
  maximumDepth: count,
  maximumConcurrent: count,
  allowPeerDelegation: z.boolean(),
  requireAcceptance: z.boolean(),
  requireCompletionReview: z.boolean(),
  completionReviewQuorum: positive.default(1),
  escalateOnDisagreement: z.boolean(),
})

const CLIENT = {
  requester: party,
  recipient: party,
  sourceRunId: id,
  goal: prose,
  instructions: prose.exactOptional(),
  semanticRole: text(128).exactOptional(),
  acceptanceCriteria: free.exactOptional(),
  artifactRequirements: z.array(artifactRequirement).max(100).default([]),
  sharedContext: freeSecretFree.exactOptional(),
  childCheckpoint: object.exactOptional(),
  acceptancePolicy: z.enum(['recipient_review', 'preauthorized']).default('recipient_review'),
  delegationPolicy: delegationPolicy.exactOptional(),
  conversationRefs: z.array(id).max(100).default([]),
  budgetAllocation: budgetPolicy.exactOptional(),
  assignedAgentId: id.exactOptional(),
  objectiveId: id.exactOptional(),
}
const client = z.strictObject(CLIENT)

export const createRequest = body({ ...CLIENT, ...KEY, id: id.exactOptional(), kind: z.enum(['request', 'handoff']) })

export const RESPONSES = ['accept', 'reject', 'request_clarification', 'provide_clarification'] as const

export const respondToRequest = body({
  expectedRevision,
  decision: z.enum(RESPONSES),
  principal: party,
  assignedAgentId: id.exactOptional(),
  message: prose.exactOptional(),
  decisionRunId: id.exactOptional(),
}).refine(({ decision, message }) => !decision.endsWith('_clarification') || message !== undefined, {
  path: ['message'],
  message: 'must say what is to be clarified',
})

const requestArtifact = z.strictObject({
  id,
  version: positive,
  requirementName: text(512).exactOptional(),
  name: text(512),
  type: text(256).exactOptional(),
  mediaType: text(256).exactOptional(),
  contentRef: text(512),
  digest: text(128).exactOptional(),
  sizeBytes: count.exactOptional(),
  metadata: object.exactOptional(),
  evidenceRefs: evidenceRefs.default([]),
})

/** The key may be the header's. */
export const completeRequest = body({
  ...KEY,
  expectedRevision,
  expectedChildRevision: count.exactOptional(),
  principal: party,
  summary: prose,
  acceptanceEvidence: free.exactOptional(),
  artifacts: z.array(requestArtifact).max(100).default([]),
})

export const reviewCompletion = body({
  ...KEY,
  expectedRevision,
  expectedChildRevision: count.exactOptional(),
  principal: party,
  approve: z.boolean(),
  summary: prose,
  resolveDisagreement: z.boolean().exactOptional(),
})

export interface AgentRequest extends Recorded, z.infer<typeof client> {
  kind: (typeof REQUEST_KINDS)[number]
  status: RequestStatus
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
  acceptanceEvidence?: z.infer<typeof free>
  artifacts: z.infer<typeof requestArtifact>[]
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
