import type { Recorded } from './fields.ts'
import type { StoredOutcome } from './outcome.ts'
import type { RunStatus, WakeCondition } from './run.ts'

/** Contract: kernel-1.md 7. */

export const TURN_STATES = ['running', 'completed', 'failed', 'canceled'] as const
export type TurnStatus = (typeof TURN_STATES)[number]

export interface TurnUsage {
  inputTokens?: number
  outputTokens?: number
  costMicros?: number
  durationMs?: number
  providerDurationMs?: number
  validationDurationMs?: number
  repairAttempts?: number
  hostAttempts?: number
  nativeOperations?: number
  /** The provider named none. */
  estimated?: boolean
}

export interface Turn extends Recorded {
  runId: string
  /** 1 at first, without gaps. */
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
  usage: TurnUsage
  nextRunStatus?: RunStatus
  wakeCondition?: WakeCondition
  runError?: { code: string; message: string }
  error?: { code: string; message: string }
  discardReason?: string
  startedAt: string
  completedAt?: string
}

/** A turn as kept: with what is never shown. */
export interface KeptTurn {
  turn: Turn
  /** What the model proposed, to be applied after a crash without asking it again. */
  outcome?: StoredOutcome
}
