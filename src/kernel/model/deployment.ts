import * as z from 'zod'
import { risk } from './action.ts'
import { budgetPolicy } from './budget.ts'
import { agentManifest, teamManifest, type Manifests } from './definition.ts'
import {
  body,
  definitionId,
  evidenceRefs,
  expectedRevision,
  id,
  KEY,
  object,
  positive,
  prose,
  reference,
  text,
  time,
  version,
  type Recorded,
  type Scope,
} from './fields.ts'

/** Where agents and teams work, and how a deployment moves from version to version. Contract: kernel-1.md 11, 12. */

export const ROLLOUT_STATES = ['pending', 'active', 'degraded', 'paused', 'retired'] as const
export const TEAM_STATES = ['draft', 'active', 'paused', 'archived'] as const
const skillIds = z.array(text(256)).max(500)

/** Restrictions and capacity only narrow the definition. */
const AGENT = {
  displayName: text(200).exactOptional(),
  environment: text(128),
  placement: object.default({}),
  skillBindingIds: z.array(id).max(500).default([]),
  credentials: z.record(text(128), reference).default({}),
  restrictions: z
    .strictObject({
      maximumRisk: risk.exactOptional(),
      allowedSkillIds: skillIds.exactOptional(),
      maxConcurrentRuns: positive.exactOptional(),
      budgetCeilings: budgetPolicy.exactOptional(),
    })
    .default({}),
  capacity: z
    .strictObject({ maxConcurrentRuns: positive, maxQueuedRuns: positive.exactOptional() })
    .default({ maxConcurrentRuns: 1 }),
  health: z
    .strictObject({
      status: text(64).exactOptional(),
      message: text(1024).exactOptional(),
      lastHeartbeatAt: time.exactOptional(),
    })
    .default({}),
}
const TEAM = {
  roster: z
    .array(z.strictObject({ id, roleId: id, agentDeploymentId: id, displayName: text(200).exactOptional() }))
    .max(500)
    .default([]),
  restrictions: z
    .strictObject({
      allowedSkillIds: skillIds.exactOptional(),
      maximumRisk: risk.exactOptional(),
      maximumConcurrency: positive.exactOptional(),
    })
    .default({}),
}
const VERSIONS = { definitionId, activeVersion: version, previousVersion: version.exactOptional() }
const agentFields = z.strictObject({ ...AGENT, ...VERSIONS, rolloutStatus: z.enum(ROLLOUT_STATES) })
const teamFields = z.strictObject({ ...TEAM, ...VERSIONS, status: z.enum(TEAM_STATES) })

const endpointIds = z.array(text(256)).max(100)

export interface AgentDeployment extends Recorded, z.infer<typeof agentFields> {
  activation?: { changeSetId: string }
  /** As its installation named them. */
  endpointIds?: string[]
}
export interface TeamDeployment extends Recorded, z.infer<typeof teamFields> {}
export interface Deployments {
  agent: AgentDeployment
  team: TeamDeployment
}

/** A record sent back as it was read: what the server keeps may be in it, and must be unchanged. */
const ECHO = {
  id,
  /** As the kernel made it: of the scope, too. */
  definitionId: text(512),
  previousVersion: version.exactOptional(),
  scope: z.strictObject({ kind: text(128), id: text(128) }).exactOptional(),
  revision: positive.exactOptional(),
  createdAt: time.exactOptional(),
  updatedAt: time.exactOptional(),
  idempotencyKeyHash: z.string().exactOptional(),
  creationFingerprint: z.string().exactOptional(),
}
const ACTOR = { actorType: text(128), actorId: text(128) }
const reason = text(1024)

export const installAgent = body({
  ...ACTOR,
  manifest: agentManifest,
  deployment: z.strictObject({
    ...AGENT,
    id,
    scope: ECHO.scope,
    /** `active` for a new one; one that is there stays as it is. */
    rolloutStatus: z.enum(['pending', 'active', 'paused']).exactOptional(),
  }),
  endpointIds: endpointIds.exactOptional(),
  reason: reason.exactOptional(),
})

export const replaceAgentDeployment = body({
  ...ACTOR,
  deployment: z.strictObject({
    ...agentFields.shape,
    ...ECHO,
    activation: z.strictObject({ changeSetId: id }).exactOptional(),
    endpointIds: endpointIds.exactOptional(),
  }),
  expectedRevision,
  reason,
})

export const deployTeam = body({
  ...ACTOR,
  deployment: z.strictObject({
    ...TEAM,
    id,
    scope: ECHO.scope,
    definitionId,
    activeVersion: version,
    status: z.enum(['draft', 'active', 'paused']).default('draft'),
  }),
  reason: reason.exactOptional(),
})

export const replaceTeamDeployment = body({
  ...ACTOR,
  deployment: z.strictObject({ ...teamFields.shape, ...ECHO }),
  expectedRevision,
  reason,
})

export const activateVersion = body({ ...ACTOR, version, expectedRevision, reason: reason.exactOptional() })
export const rollBack = body({
  ...ACTOR,
  toVersion: version.exactOptional(),
  expectedRevision,
  reason: reason.exactOptional(),
})

const PROPOSAL = {
  ...KEY,
  proposerType: text(128),
  proposerId: text(128),
  rationale: prose,
  evidenceRefs: evidenceRefs.default([]),
  expectedDeploymentRevision: expectedRevision.exactOptional(),
}
export const proposeAgentAmendment = body({ ...PROPOSAL, candidate: agentManifest })
export const proposeTeamAmendment = body({ ...PROPOSAL, candidate: teamManifest })

const evaluation = z.strictObject({
  criterionId: id,
  passed: z.boolean(),
  score: z.number().exactOptional(),
  summary: prose,
  evidenceRefs: evidenceRefs.exactOptional(),
})
export const evaluateAmendment = body({
  expectedRevision,
  evaluations: z
    .array(evaluation)
    .max(100)
    .refine((all) => new Set(all.map((one) => one.criterionId)).size === all.length, 'must name each criterion once'),
})
export const decideAmendment = body({
  ...ACTOR,
  expectedRevision,
  approved: z.boolean(),
  reason: reason.exactOptional(),
})
export const activateAmendment = body({ ...ACTOR, expectedRevision, reason: reason.exactOptional() })

/** A step of a deployment from one version or configuration to the next. */
export interface ActivationRecord {
  scope: Scope
  id: string
  deploymentId: string
  definitionId: string
  fromVersion?: string
  toVersion: string
  deploymentRevision: number
  changeKind: 'activated' | 'rolled-back' | 'amended' | 'configuration-updated'
  reason?: string
  actorType: string
  actorId: string
  createdAt: string
}

export interface Compilation {
  scope: Scope
  id: string
  deploymentId: string
  definitionId: string
  candidateVersion: string
  source: { kind: string; id: string; version: string; digest: string }
  /** Of a clean one. */
  targetDigest?: string
  status: 'clean' | 'failed'
  diagnostics: { nodeId?: string; path: string; code: string; message: string }[]
  createdAt: string
}

export const AMENDMENT_STATES = [
  'evaluating',
  'evaluation_failed',
  'awaiting_approval',
  'ready',
  'approved',
  'rejected',
  'activated',
] as const

export interface Amendment<M = Manifests[keyof Manifests]> extends Recorded {
  deploymentId: string
  definitionId: string
  baseVersion: string
  baseDigest: string
  candidate: M
  changes: { field: string; beforeDigest: string; afterDigest: string }[]
  riskWidening: boolean
  proposerType: string
  proposerId: string
  rationale: string
  evidenceRefs: string[]
  status: (typeof AMENDMENT_STATES)[number]
  evaluations: z.infer<typeof evaluation>[]
  decision?: { approved: boolean; actorType: string; actorId: string; reason?: string; decidedAt: string }
  activationId?: string
}
