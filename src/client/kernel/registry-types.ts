import type { Budget, Free, JsonObject, Party, Recorded, Scope } from './types.ts'
import type { DelegationPolicy, Risk } from './work-types.ts'

/** Wire shapes of agents and teams: kernel-1.md 11 and 12. */

interface Manifest {
  id: string
  version: string
  displayName: string
  purpose: string
  operatingPrinciples?: string[]
  objectiveTemplates?: {
    id: string
    title: string
    goal: string
    priority?: number
    successCriteria?: Free
    constraints?: Free
  }[]
  evaluations?: { id: string; description: string; weight?: number; required?: boolean }[]
  amendments?: {
    agentMayPropose?: boolean
    allowedFields?: string[]
    requiresApproval?: boolean
    /** `type:id` */
    approverPrincipals?: string[]
  }
  provenance?: { source?: string; reference?: string; createdBy?: string; derivedFrom?: string }
}

export interface AgentManifest extends Manifest {
  systemPrompt: string
  personality?: string
  domainContext?: JsonObject
  skillRequirements?: {
    skillId: string
    versionConstraint?: string
    requiredActions?: string[]
    promptRequired?: boolean
    optional?: boolean
  }[]
  authority: {
    maximumRisk: Risk
    allowedSkillIds?: string[]
    maxConcurrentRuns?: number
    budgetCeilings?: Budget
    requireApprovalAt?: Risk
  }
  memory?: { retentionMs?: number; maximumBytes?: number; allowSharedRead?: boolean; allowSharedWrite?: boolean }
  escalation?: { afterFailures?: number; afterDurationMs?: number; recipient?: Party }
  runbook?: JsonObject
}

export interface TeamManifest extends Manifest {
  roles: {
    id: string
    displayName: string
    purpose: string
    minimumMembers?: number
    maximumMembers?: number
    requiredSkillIds?: string[]
    requiredDefinitionIds?: string[]
    skillGrants?: {
      skillId: string
      skillVersion: string
      allowedActions: string[]
      enablePrompt?: boolean
      maximumRisk: Risk
    }[]
    channelParticipation?: 'active' | 'observe_only' | 'disabled'
  }[]
  coordination: {
    mode: 'dynamic' | 'peer' | 'leader_facilitated'
    maximumSpeakersPerRound?: number
    quietByDefault?: boolean
    requireRoleRelevance?: boolean
    suppressDuplicateContent?: boolean
  }
  delegation: Omit<DelegationPolicy, 'completionReviewQuorum'> & { completionReviewQuorum?: number }
  sharedContext?: {
    retentionMs?: number
    maximumBytes?: number
    allowMemberRead?: boolean
    allowMemberWrite?: boolean
  }
  approvals: { maximumRisk: Risk; approverRoleIds?: string[]; approverPrincipals?: string[] }
}

/** Defaults are filled in. */
interface Digested {
  scope: Scope
  digest: string
  createdAt: string
}
export type AgentDefinition = AgentManifest & Digested
export type TeamDefinition = TeamManifest & Digested

interface AgentContent {
  displayName?: string
  environment: string
  placement?: JsonObject
  skillBindingIds?: string[]
  credentials?: Record<string, { kind: string; id: string }>
  restrictions?: {
    maximumRisk?: Risk
    allowedSkillIds?: string[]
    maxConcurrentRuns?: number
    budgetCeilings?: Budget
  }
  capacity?: { maxConcurrentRuns: number; maxQueuedRuns?: number }
  health?: { status?: string; message?: string; lastHeartbeatAt?: string }
}

export type RolloutStatus = 'pending' | 'active' | 'degraded' | 'paused' | 'retired'

export interface AgentDeployment extends Recorded, AgentContent {
  definitionId: string
  activeVersion: string
  previousVersion?: string
  rolloutStatus: RolloutStatus
  placement: JsonObject
  skillBindingIds: string[]
  credentials: Record<string, { kind: string; id: string }>
  restrictions: NonNullable<AgentContent['restrictions']>
  capacity: NonNullable<AgentContent['capacity']>
  health: NonNullable<AgentContent['health']>
  endpointIds?: string[]
  activation?: { changeSetId: string }
}

/** Who changes a deployment. */
export interface Actor {
  actorType: string
  actorId: string
}

export interface AgentInstallation extends Actor {
  manifest: AgentManifest
  deployment: AgentContent & { id: string; rolloutStatus?: 'pending' | 'active' | 'paused' }
  endpointIds?: string[]
  reason?: string
}

export interface Installed {
  definition: AgentDefinition
  deployment: AgentDeployment
  replayed: boolean
}

/** A deployment with its active definition. */
export interface Deployed<Deployment, Definition> {
  deployment: Deployment
  definition: Definition
}
export type DeployedAgent = Deployed<AgentDeployment, AgentDefinition>

export interface Replacement<Deployment> extends Actor {
  /** As it was read, with what is to change. */
  deployment: Deployment
  expectedRevision: number
  reason: string
}

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

export interface Replaced<Deployment> {
  deployment: Deployment
  audit: ActivationRecord
}

export interface Activation extends Actor {
  version: string
  expectedRevision: number
  reason?: string
}

export interface RollBack extends Actor {
  toVersion?: string
  expectedRevision: number
  reason?: string
}

export interface Activated<Deployment> {
  deployment: Deployment
  activation: ActivationRecord
}

export interface Compilation {
  scope: Scope
  id: string
  deploymentId: string
  definitionId: string
  candidateVersion: string
  source: { kind: string; id: string; version: string; digest: string }
  targetDigest?: string
  status: 'clean' | 'failed'
  diagnostics: { nodeId?: string; path: string; code: string; message: string }[]
  createdAt: string
}

export interface CompilationList {
  apiVersion: 'agent-kernel/v1'
  latest?: Compilation
  items: Compilation[]
}

export type TeamStatus = 'draft' | 'active' | 'paused' | 'archived'

interface TeamContent {
  definitionId: string
  activeVersion: string
  roster?: { id: string; roleId: string; agentDeploymentId: string; displayName?: string }[]
  restrictions?: { allowedSkillIds?: string[]; maximumRisk?: Risk; maximumConcurrency?: number }
}

export interface NewTeamDeployment extends Actor {
  deployment: TeamContent & { id: string; status?: 'draft' | 'active' | 'paused' }
  reason?: string
}

export interface TeamDeployment extends Recorded, TeamContent {
  previousVersion?: string
  status: TeamStatus
  roster: NonNullable<TeamContent['roster']>
  restrictions: NonNullable<TeamContent['restrictions']>
}
export type DeployedTeam = Deployed<TeamDeployment, TeamDefinition>

export interface AmendmentProposal<M> {
  candidate: M
  proposerType: string
  proposerId: string
  rationale: string
  evidenceRefs?: string[]
  expectedDeploymentRevision?: number
}

export interface AmendmentEvaluation {
  criterionId: string
  passed: boolean
  score?: number
  summary: string
  evidenceRefs?: string[]
}

export interface AmendmentDecision extends Actor {
  expectedRevision: number
  approved: boolean
  reason?: string
}

export interface AmendmentActivation extends Actor {
  expectedRevision: number
  reason?: string
}

export interface Amendment<M> extends Recorded {
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
  status: 'evaluating' | 'evaluation_failed' | 'awaiting_approval' | 'ready' | 'approved' | 'rejected' | 'activated'
  evaluations: AmendmentEvaluation[]
  decision?: { approved: boolean; actorType: string; actorId: string; reason?: string; decidedAt: string }
  activationId?: string
}

/** All, or a part: 1 to 500. */
export interface BoundsQuery {
  limit?: number
  offset?: number
}
