import * as z from 'zod'
import { positive } from './fields.ts'

/** Contract: kernel-1.md 5. */

/** Omitted is unlimited. Times are milliseconds, costs millionths of a dollar. */
const LIMITS = {
  maxAttempts: positive.exactOptional(),
  maxTurns: positive.exactOptional(),
  maxInputTokens: positive.exactOptional(),
  maxOutputTokens: positive.exactOptional(),
  maxTotalTokens: positive.exactOptional(),
  maxCostMicros: positive.exactOptional(),
  maxDurationMs: positive.exactOptional(),
  maxActions: positive.exactOptional(),
}

export const budgetPolicy = z.strictObject({
  ...LIMITS,
  /** 0 or absent is 800. */
  warningPermille: z.int().min(0).max(1000).exactOptional(),
})
export type BudgetPolicy = z.infer<typeof budgetPolicy>

/** What is added to bounded dimensions. */
export const budgetTopUp = z
  .strictObject(LIMITS)
  .refine((added) => Object.keys(added).length > 0, 'must name at least one dimension')
export type BudgetTopUp = z.infer<typeof budgetTopUp>
export type Dimension = keyof BudgetTopUp

/** An absent member is 0. */
export interface Usage {
  attempts?: number
  turns?: number
  inputTokens?: number
  outputTokens?: number
  costMicros?: number
  durationMs?: number
  actions?: number
}

export type BudgetState = 'active' | 'warning' | 'exhausted'

/** Under the id of the turn or call it is for. */
export interface Reservation {
  id: string
  usage: Usage
  createdAt: string
}

/** Why a turn could not be afforded. */
export interface BudgetAdmission {
  reason: 'reservation_exceeds_remaining' | 'hosted_input_preflight'
  dimension: Dimension
  required: number
  remaining: number
  reservation: Usage
  turnId: string
  evaluatedAt: string
}
