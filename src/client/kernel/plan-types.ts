import type { Run } from './run-types.ts'
import type { Budget, Free, JsonObject, Owner, Party, Recorded } from './types.ts'

/** Wire shapes of objectives and projects: kernel-1.md 3 and 4. */

export type ObjectiveStatus = 'draft' | 'active' | 'paused' | 'satisfied' | 'failed' | 'retired'

interface ObjectiveContent {
  title: string
  goal: string
  executionPolicy?: { maximumConcurrentRuns?: number; resourceCapacities?: Record<string, number> }
  budget?: Budget
  constraints?: Free
  successCriteria?: Free
  progressSummary?: string
}

export interface NewObjective extends ObjectiveContent {
  owner: Owner
  priority?: number
  status?: ObjectiveStatus
  actor?: Party
}

/** Replaces: an absent field returns to its default or is removed. */
export interface ObjectiveReplacement extends ObjectiveContent {
  expectedRevision: number
  priority?: number
  status?: ObjectiveStatus
  owner?: Owner
  actor?: Party
}

export interface Objective extends Recorded, ObjectiveContent {
  owner: Owner
  status: ObjectiveStatus
  priority: number
  budgetAllocations: Record<string, Budget>
}

export interface ObjectiveDetails {
  objective: Objective
  runbooks: JsonObject[]
  runs: Run[]
}

export type ProjectStatus = 'draft' | 'active' | 'paused' | 'completed' | 'failed' | 'canceled' | 'archived'

export interface Reference {
  kind: 'agent_definition' | 'agent_deployment' | 'team_definition' | 'team_deployment' | 'artifact' | 'evidence'
  id: string
  version?: string
  revision?: number
}

export interface Project extends Recorded {
  title: string
  purpose: string
  status: ProjectStatus
  owner: Owner
  agentRefs: Reference[]
  teamRefs: Reference[]
  objectiveRefs: string[]
  milestones: JsonObject[]
  hypotheses: JsonObject[]
  sourceMonitors: JsonObject[]
  deliverables: JsonObject[]
  budget?: Budget
  policy: JsonObject
  checkpoint: JsonObject
}

type ProjectContent = Omit<Project, keyof Recorded | 'owner'>
export type NewProject = Pick<Project, 'title' | 'purpose' | 'owner' | 'objectiveRefs'> &
  Partial<ProjectContent> & { id?: string; actor?: Party }
/** Arrays replace. */
export type ProjectPatch = Partial<ProjectContent> & {
  expectedRevision: number
  clearBudget?: boolean
  actor?: Party
}
