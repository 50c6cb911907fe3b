import * as z from 'zod'
import { risk } from './action.ts'
import { budgetPolicy } from './budget.ts'
import {
  body,
  count,
  definitionId,
  free,
  id,
  object,
  positive,
  prose,
  secretFree,
  text,
  version,
  type Scope,
} from './fields.ts'
import { delegationPolicy } from './request.ts'

/** What agents and teams are: immutable per scope, id and version. Contract: kernel-1.md 11, 12. */

const skillIds = z.array(text(256)).max(500)
const principals = z.array(text(257).regex(/^[^:]+:.+$/, 'must be type:id')).max(100)
const retention = { retentionMs: positive.exactOptional(), maximumBytes: positive.exactOptional() }

const objectiveTemplate = z.strictObject({
  id,
  title: text(512),
  goal: prose,
  priority: count.exactOptional(),
  successCriteria: free.exactOptional(),
  constraints: free.exactOptional(),
})
const criterion = z.strictObject({
  id,
  description: prose,
  weight: z.number().min(0).exactOptional(),
  required: z.boolean().exactOptional(),
})
const amendments = z.strictObject({
  agentMayPropose: z.boolean().default(false),
  allowedFields: z.array(text(128)).max(100).default([]),
  requiresApproval: z.boolean().default(false),
  approverPrincipals: principals.default([]),
})
const provenance = z.strictObject({
  source: text(256).exactOptional(),
  reference: text(2048).exactOptional(),
  createdBy: text(256).exactOptional(),
  derivedFrom: text(256).exactOptional(),
})

const SHARED = {
  version,
  displayName: text(200),
  purpose: prose,
  operatingPrinciples: z.array(prose).max(100).default([]),
  objectiveTemplates: z.array(objectiveTemplate).max(100).default([]),
  evaluations: z.array(criterion).max(100).default([]),
  amendments: amendments.default({
    agentMayPropose: false,
    allowedFields: [],
    requiresApproval: false,
    approverPrincipals: [],
  }),
  provenance: provenance.default({}),
}

/** An agent's definition before it has a digest; a client calls it the manifest. */
export const agentManifest = z.strictObject({
  ...SHARED,
  id: definitionId,
  systemPrompt: prose,
  personality: prose.exactOptional(),
  domainContext: secretFree.default({}),
  skillRequirements: z
    .array(
      z.strictObject({
        skillId: text(256),
        versionConstraint: text(128).exactOptional(),
        requiredActions: z.array(text(128)).max(100).default([]),
        promptRequired: z.boolean().exactOptional(),
        optional: z.boolean().exactOptional(),
      }),
    )
    .max(500)
    .default([]),
  authority: z.strictObject({
    maximumRisk: risk,
    allowedSkillIds: skillIds.default([]),
    maxConcurrentRuns: positive.default(1),
    budgetCeilings: budgetPolicy.default({}),
    requireApprovalAt: risk.exactOptional(),
  }),
  memory: z
    .strictObject({
      ...retention,
      allowSharedRead: z.boolean().exactOptional(),
      allowSharedWrite: z.boolean().exactOptional(),
    })
    .default({}),
  escalation: z
    .strictObject({
      afterFailures: positive.exactOptional(),
      afterDurationMs: positive.exactOptional(),
      recipient: z.strictObject({ type: text(128), id: text(128) }).exactOptional(),
    })
    .default({}),
  runbook: object.exactOptional(),
})

const teamRole = z.strictObject({
  id,
  displayName: text(200),
  purpose: prose,
  minimumMembers: count.exactOptional(),
  maximumMembers: positive.exactOptional(),
  requiredSkillIds: skillIds.default([]),
  requiredDefinitionIds: z.array(definitionId).max(100).default([]),
  skillGrants: z
    .array(
      z.strictObject({
        skillId: text(256),
        skillVersion: text(256),
        allowedActions: z.array(text(128)).max(100),
        enablePrompt: z.boolean().exactOptional(),
        maximumRisk: risk,
      }),
    )
    .max(500)
    .default([]),
  channelParticipation: z.enum(['active', 'observe_only', 'disabled']).default('active'),
})

const TEAM = {
  ...SHARED,
  id: definitionId,
  roles: z.array(teamRole).min(1, 'must name a role').max(100),
  coordination: z.strictObject({
    mode: z.enum(['dynamic', 'peer', 'leader_facilitated']),
    maximumSpeakersPerRound: positive.exactOptional(),
    quietByDefault: z.boolean().exactOptional(),
    requireRoleRelevance: z.boolean().exactOptional(),
    suppressDuplicateContent: z.boolean().exactOptional(),
  }),
  delegation: delegationPolicy,
  sharedContext: z
    .strictObject({
      ...retention,
      allowMemberRead: z.boolean().default(false),
      allowMemberWrite: z.boolean().default(false),
    })
    .default({ allowMemberRead: false, allowMemberWrite: false }),
  approvals: z.strictObject({
    maximumRisk: risk,
    approverRoleIds: z.array(id).max(100).default([]),
    approverPrincipals: principals.default([]),
  }),
}
export const teamManifest = z.strictObject(TEAM)

/** The fields stand in the body itself. */
export const registerTeam = body(TEAM)

/** What a definition holds more than its manifest. */
export interface Digested {
  scope: Scope
  /** SHA-256 in hex of the definition's RFC 8785 JSON without digest and createdAt. */
  digest: string
  createdAt: string
}
export interface Manifests {
  agent: z.infer<typeof agentManifest>
  team: z.infer<typeof teamManifest>
}
export type AgentDefinition = Digested & Manifests['agent']
export type TeamDefinition = Digested & Manifests['team']
