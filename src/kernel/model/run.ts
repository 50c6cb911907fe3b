import * as z from 'zod'
import {
  budgetPolicy,
  budgetTopUp,
  type BudgetAdmission,
  type BudgetPolicy,
  type BudgetState,
  type Reservation,
  type Usage,
} from './budget.ts'
import {
  body,
  count,
  expectedRevision,
  freeSecretFree,
  id,
  KEY,
  owner,
  positive,
  prose,
  resources,
  secretFree,
  text,
  time,
  visibility,
  type Party,
  type Recorded,
} from './fields.ts'

/** Contract: kernel-1.md 6. */

export const RUN_STATES = [
  'queued',
  'planning',
  'running',
  'paused',
  'sleeping',
  'waiting_for_dependency',
  'waiting_for_agent',
  'waiting_for_approval',
  'waiting_for_event',
  'completed',
  'failed',
  'canceled',
] as const
export type RunStatus = (typeof RUN_STATES)[number]

export const RUN_KINDS = ['agent_work', 'conversation', 'workforce_authoring'] as const
export type RunKind = (typeof RUN_KINDS)[number]

export const RUN_SOURCES = [
  'manual',
  'chat',
  'event',
  'webhook',
  'objective',
  'schedule',
  'agent_request',
  'agent_request_decision',
  'agent_request_completion_review',
  'handoff',
  'escalation',
  'fork',
] as const
export type RunSource = (typeof RUN_SOURCES)[number]

export const WAKE_TYPES = [
  'timer',
  'event',
  'approval',
  'action',
  'agent_request',
  'run_dependencies',
  'human_intervention',
  'credential_request',
] as const
export type WakeType = (typeof WAKE_TYPES)[number]

/** What a waiting or sleeping run waits for; unset parts match anything. */
export interface WakeCondition {
  type: WakeType
  wakeAt?: string
  reference?: string
  predicate?: Record<string, unknown>
}

const CLIENT = {
  owner,
  goal: prose,
  parentRunId: id.exactOptional(),
  objectiveId: id.exactOptional(),
  projectId: id.exactOptional(),
  assignedAgentId: id.exactOptional(),
  entrypoint: text(256).exactOptional(),
  concurrencyKey: text(256)
    .regex(/^[^\r\n]*$/, 'must be one line')
    .exactOptional(),
  resourceRequirements: resources(positive).exactOptional(),
  priority: count.default(0),
  deadline: time.exactOptional(),
  budget: budgetPolicy.exactOptional(),
  context: secretFree.default({}),
  plan: freeSecretFree.exactOptional(),
  policy: secretFree.default({}),
}

const client = z.strictObject(CLIENT)
export type RunFields = z.infer<typeof client>

export const createRun = body({
  ...CLIENT,
  ...KEY,
  kind: z.enum(['agent_work', 'conversation']).default('agent_work'),
  source: z.enum(['manual', 'chat', 'event', 'webhook', 'objective']).default('manual'),
  availableAt: time.exactOptional(),
  visibility: visibility.exactOptional(),
})

export const RUN_COMMANDS = ['pause', 'resume', 'cancel', 'intervene'] as const

const MAX_INSTRUCTION_BYTES = 16_000
const OUTCOMES = ['succeeded', 'failed', 'retry'] as const

export const runCommand = body({
  expectedRevision,
  kind: z.enum(RUN_COMMANDS),
  summary: text(1024).exactOptional(),
  instruction: z
    .string()
    .trim()
    .min(1, 'must not be empty')
    .refine(
      (value) => Buffer.byteLength(value) <= MAX_INSTRUCTION_BYTES,
      `must have ${MAX_INSTRUCTION_BYTES} bytes at most`,
    )
    .exactOptional(),
  interventionId: z.uuid('must be a UUID').toLowerCase().exactOptional(),
  humanInterventionId: id.exactOptional(),
  resolution: z
    .strictObject({
      outcome: z.enum(OUTCOMES).exactOptional(),
      output: z.unknown().optional(),
      note: prose.exactOptional(),
    })
    .exactOptional(),
  budgetTopUp: budgetTopUp.exactOptional(),
  visibility: visibility.exactOptional(),
}).superRefine(({ kind, instruction, humanInterventionId, resolution, budgetTopUp: topUp }, ctx) => {
  const refuse = (path: string, message: string): void => ctx.addIssue({ code: 'custom', path: [path], message })
  const [settles, guides] = [humanInterventionId !== undefined, instruction !== undefined]
  if (guides && kind !== 'intervene') refuse('instruction', 'goes with intervene only')
  if (settles && kind !== 'intervene') refuse('humanInterventionId', 'goes with intervene only')
  if (topUp && kind !== 'intervene' && kind !== 'resume') refuse('budgetTopUp', 'goes with resume and intervene only')
  if (settles && (guides || topUp)) refuse('humanInterventionId', 'stands alone with its resolution')
  if (resolution && !settles) refuse('resolution', 'needs a humanInterventionId')
  if (kind === 'intervene' && !settles && !guides && !topUp) refuse('instruction', 'is required')
})
export type RunCommand = z.infer<typeof runCommand>

/** Guidance that the next turn sees. */
export interface Intervention {
  id: string
  actor: Party
  instruction: string
  createdAt: string
}

/** A question to a person. */
export interface HumanIntervention {
  id: string
  kind: string
  status: 'pending' | 'resolved' | 'canceled'
  actionCallId?: string
  summary: string
  /** 4 at most. */
  challenge: string[]
  resolution?: NonNullable<RunCommand['resolution']>
  resolvedBy?: Party
  createdAt: string
  resolvedAt?: string
}

/** What became of something that a run waited for or proposed: kept until a turn that saw it is applied. Never shown. */
export interface PendingResult {
  kind: 'action' | 'approval' | 'denied' | 'dependency' | 'request' | 'error'
  /** Of what it is the result: call, approval, dependency group, request. */
  id: string
  at: string
  status: string
  [more: string]: unknown
}

/** A proposal that came to nothing. `open` until an action of the run succeeds. */
export interface ActionFailure {
  /** Skill and action. */
  name: string
  /** Of the invocation. */
  digest: string
  open: boolean
}

/** Joined from the lease row: none of it raises the revision. */
export interface RunLease {
  leaseOwner?: string
  leaseExpiresAt?: string
  fencingToken?: number
  lastClaimedAt?: string
}

export interface Run extends Recorded, RunLease, RunFields {
  rootRunId: string
  kind: RunKind
  source: RunSource
  status: RunStatus
  availableAt: string
  queueEnteredAt: string
  attempt: number
  checkpoint: Record<string, unknown>
  /** Of waiting and sleeping runs, no others. */
  wakeCondition?: WakeCondition
  pausedFrom?: RunStatus
  pausedWakeCondition?: WakeCondition
  pauseReason?: 'command' | 'budget' | 'model_unavailable'
  lastWakeSignalId?: string
  pendingInterventions: Intervention[]
  humanInterventions: HumanIntervention[]
  /** The oldest first. */
  pendingResults: PendingResult[]
  /** All of the run, which a few end. Never shown. */
  actionFailures?: ActionFailure[]
  /** Who is asked for help when the run takes too long, and when; then the request, which is the only one. Never shown. */
  escalation?: { recipient: Party; dueAt?: string; requestId?: string }
  /** Of the server, in a row, at the turn of this number. Never shown. */
  faults?: { turn: number; count: number }
  /** What its last turn cost in dollars is not known. Never shown. */
  unpriced?: boolean
  budgetUsage: Usage
  budgetState?: BudgetState
  budgetAdmission?: BudgetAdmission
  /** By turn or call. */
  budgetReservations: Record<string, Reservation>
  /** By child run or request. */
  budgetAllocations: Record<string, BudgetPolicy>
  output?: unknown
  error?: { code: string; message: string }
  workflowExecutionId?: string
  lastAppliedTurn: number
  startedAt?: string
  completedAt?: string
}
