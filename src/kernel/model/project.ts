import * as z from 'zod'
import { budgetPolicy } from './budget.ts'
import {
  body,
  expectedRevision,
  id,
  KEY,
  owner,
  positive,
  prose,
  secretFree,
  text,
  time,
  type Recorded,
} from './fields.ts'

/** Contract: kernel-1.md 4. */

export const PROJECT_STATES = ['draft', 'active', 'paused', 'completed', 'failed', 'canceled', 'archived'] as const
export type ProjectStatus = (typeof PROJECT_STATES)[number]

const ref = z.strictObject({
  kind: z.enum(['agent_definition', 'agent_deployment', 'team_definition', 'team_deployment', 'artifact', 'evidence']),
  id: text(256),
  version: text(128).exactOptional(),
  revision: positive.exactOptional(),
})
const refs = z.array(ref).max(500)
const objectiveRefs = z.array(id).max(500)

const milestone = z.strictObject({
  id,
  title: text(512),
  status: z.enum(['pending', 'in_progress', 'completed', 'blocked', 'canceled']).default('pending'),
  objectiveRefs: objectiveRefs.default([]),
  dueAt: time.exactOptional(),
  completedAt: time.exactOptional(),
})

const hypothesis = z.strictObject({
  id,
  statement: prose,
  confidence: z.number().min(0).max(1),
  evidenceRefs: refs.default([]),
  status: z.enum(['open', 'supported', 'contradicted', 'inconclusive']).default('open'),
  updatedAt: time.exactOptional(),
})

const sourceMonitor = z.strictObject({
  id,
  objectiveId: id,
  assignedAgentId: id,
  skillId: text(256),
  skillVersion: text(256),
  action: text(128),
  sourcePolicyRef: text(256).regex(/^[^@]+@[^@]+$/, 'must be id@version'),
  deduplication: z.enum(['stable_source', 'content_digest', 'stable_source_and_content']),
})

const deliverable = z.strictObject({
  id,
  title: text(512),
  status: z.enum(['planned', 'in_progress', 'review', 'delivered', 'canceled']).default('planned'),
  artifactRefs: refs.default([]),
  objectiveRefs: objectiveRefs.default([]),
  dueAt: time.exactOptional(),
})

const FIELDS = {
  title: text(512),
  purpose: prose,
  status: z.enum(PROJECT_STATES),
  agentRefs: refs,
  teamRefs: refs,
  objectiveRefs: objectiveRefs
    .min(1, 'must name an objective')
    .refine((all) => new Set(all).size === all.length, 'must name each objective once'),
  milestones: z.array(milestone).max(500),
  hypotheses: z.array(hypothesis).max(500),
  sourceMonitors: z.array(sourceMonitor).max(500),
  deliverables: z.array(deliverable).max(500),
  policy: secretFree,
  checkpoint: secretFree,
}

export const createProject = body({
  ...FIELDS,
  ...KEY,
  id: id.exactOptional(),
  owner,
  status: FIELDS.status.default('draft'),
  agentRefs: FIELDS.agentRefs.default([]),
  teamRefs: FIELDS.teamRefs.default([]),
  milestones: FIELDS.milestones.default([]),
  hypotheses: FIELDS.hypotheses.default([]),
  sourceMonitors: FIELDS.sourceMonitors.default([]),
  deliverables: FIELDS.deliverables.default([]),
  budget: budgetPolicy.exactOptional(),
  policy: FIELDS.policy.default({}),
  checkpoint: FIELDS.checkpoint.default({}),
})

/** Arrays replace. */
export const patchProject = body({
  ...z.strictObject(FIELDS).partial().shape,
  expectedRevision,
  budget: budgetPolicy.exactOptional(),
  clearBudget: z.boolean().exactOptional(),
}).refine((patch) => !(patch.budget && patch.clearBudget), {
  path: ['clearBudget'],
  message: 'must not stand beside budget',
})

const fields = z.strictObject({ ...FIELDS, owner, budget: budgetPolicy.exactOptional() })
export interface Project extends Recorded, z.infer<typeof fields> {}
