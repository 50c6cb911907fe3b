import type {
  Budget,
  BudgetLimits,
  Free,
  JsonObject,
  KernelEvent,
  Owner,
  OwnerQuery,
  PageQuery,
  Party,
  Recorded,
  Usage,
  Visibility,
} from './types.ts'

/** Wire shapes of runs and turns: kernel-1.md 6 and 7. */

export type RunStatus =
  | 'queued'
  | 'planning'
  | 'running'
  | 'paused'
  | 'sleeping'
  | 'waiting_for_dependency'
  | 'waiting_for_agent'
  | 'waiting_for_approval'
  | 'waiting_for_event'
  | 'completed'
  | 'failed'
  | 'canceled'

export type RunKind = 'agent_work' | 'conversation' | 'workforce_authoring'

interface RunContent {
  owner: Owner
  goal: string
  parentRunId?: string
  objectiveId?: string
  projectId?: string
  assignedAgentId?: string
  entrypoint?: string
  concurrencyKey?: string
  resourceRequirements?: Record<string, number>
  deadline?: string
  budget?: Budget
  plan?: Free
}

export interface NewRun extends RunContent {
  kind?: 'agent_work' | 'conversation'
  source?: 'manual' | 'chat' | 'event' | 'webhook' | 'objective'
  priority?: number
  context?: JsonObject
  policy?: JsonObject
  availableAt?: string
  visibility?: Visibility
  actor?: Party
}

export interface WakeCondition {
  type: string
  wakeAt?: string
  reference?: string
  predicate?: JsonObject
}

export interface HumanIntervention {
  id: string
  kind: string
  status: 'pending' | 'resolved' | 'canceled'
  actionCallId?: string
  summary: string
  challenge: string[]
  resolution?: Resolution
  resolvedBy?: Party
  createdAt: string
  resolvedAt?: string
}

export interface Run extends Recorded, RunContent {
  kind: RunKind
  source: string
  rootRunId: string
  status: RunStatus
  priority: number
  availableAt: string
  queueEnteredAt: string
  attempt: number
  context: JsonObject
  policy: JsonObject
  checkpoint: JsonObject
  wakeCondition?: WakeCondition
  pausedFrom?: RunStatus
  pausedWakeCondition?: WakeCondition
  pauseReason?: 'command' | 'budget' | 'model_unavailable'
  lastWakeSignalId?: string
  leaseOwner?: string
  leaseExpiresAt?: string
  fencingToken?: number
  lastClaimedAt?: string
  pendingInterventions: { id: string; actor: Party; instruction: string; createdAt: string }[]
  humanInterventions: HumanIntervention[]
  budgetUsage: Usage
  budgetState?: 'active' | 'warning' | 'exhausted'
  /** Why a turn could not be afforded. */
  budgetAdmission?: {
    reason: 'reservation_exceeds_remaining' | 'hosted_input_preflight'
    dimension: keyof BudgetLimits
    required: number
    remaining: number
    reservation: Usage
    turnId: string
    evaluatedAt: string
  }
  budgetReservations: Record<string, { id: string; usage: Usage; createdAt: string }>
  budgetAllocations: Record<string, Budget>
  output?: unknown
  error?: { code: string; message: string }
  workflowExecutionId?: string
  lastAppliedTurn: number
  startedAt?: string
  completedAt?: string
}

export interface RunQuery extends PageQuery, OwnerQuery {
  kind?: readonly RunKind[]
  objectiveId?: string
  projectId?: string
  parentRunId?: string
  rootRunId?: string
  assignedAgentId?: string
  status?: readonly RunStatus[]
  source?: readonly string[]
  q?: string
  order?: 'scheduler' | 'created_desc'
}

export interface Resolution {
  outcome?: 'succeeded' | 'failed' | 'retry'
  output?: unknown
  note?: string
}

export interface RunCommand {
  expectedRevision: number
  kind: 'pause' | 'resume' | 'cancel' | 'intervene'
  summary?: string
  instruction?: string
  interventionId?: string
  humanInterventionId?: string
  resolution?: Resolution
  budgetTopUp?: BudgetLimits
  visibility?: Visibility
  actor?: Party
}

export interface RunChange {
  run: Run
  /** Absent where the key was used before. */
  event?: KernelEvent
}

export interface AdmissionQuery {
  kind?: RunKind
  assignedAgentId?: string
  runId?: string
  maxActiveForAgent?: number
  maxActiveForOwner?: number
  maxActiveForObjective?: number
  maxActiveForConcurrencyKey?: number
}

export interface AdmissionBlock {
  runId: string
  reason: string
  owner: Owner
  objectiveId?: string
  assignedAgentId?: string
  concurrencyKey?: string
  active?: number
  limit?: number
  resource?: string
  requested?: number
  reserved?: number
  capacity?: number
  readyAt?: string
  leaseExpiresAt?: string
  detail?: string
}

export interface AdmissionReport {
  outcome: 'ready' | 'no_worker' | 'backpressured' | 'not_due' | 'lease_held' | 'idle'
  run?: Run
  blocks: AdmissionBlock[]
  workers: {
    id: string
    kind: string
    runKinds: string[]
    concurrency: number
    active: number
    lastSeenAt: string
  }[]
  limits: Record<string, number>
  nextWakeAt?: string
  evaluatedAt: string
}

export type TurnStatus = 'running' | 'completed' | 'failed' | 'canceled'

export interface TurnQuery extends PageQuery {
  runId: string
  status?: readonly TurnStatus[]
  afterSequence?: number
}

export interface Turn extends Recorded {
  runId: string
  sequence: number
  status: TurnStatus
  definitionId?: string
  definitionVersion?: string
  modelProvider?: string
  model?: string
  planRevision?: number
  skillSelections: { skillRef: string; disposition: 'applied' | 'not_applied'; summary: string }[]
  decisions: { summary: string; evidenceRefs: string[] }[]
  requestedActions: {
    type: string
    capability?: string
    bindingId?: string
    bindingRevision?: number
    summary: string
    evidenceRefs: string[]
  }[]
  outputSummary?: string
  usage: {
    inputTokens?: number
    outputTokens?: number
    costMicros?: number
    durationMs?: number
    providerDurationMs?: number
    validationDurationMs?: number
    repairAttempts?: number
    hostAttempts?: number
    nativeOperations?: number
    estimated?: boolean
  }
  nextRunStatus?: RunStatus
  wakeCondition?: WakeCondition
  runError?: { code: string; message: string }
  error?: { code: string; message: string }
  discardReason?: string
  startedAt: string
  completedAt?: string
}
