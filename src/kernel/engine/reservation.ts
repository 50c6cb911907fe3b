import { accountOf, remainingIn, shortageOf, type Shortage } from '../budgets.ts'
import type { Usage } from '../model/budget.ts'
import type { Run } from '../model/run.ts'
import type { ModelHost } from '../ports.ts'

/** What is set aside for a turn before the model is asked. Contract: kernel-1.md 5. */

/** No call takes longer. */
export const MODEL_CALL_MS = 90_000
const MAX_OUTPUT_TOKENS = 4096

/** For a run without a budget: nothing is set aside, but no call takes more. */
const WITHOUT_BUDGET: Usage = { turns: 1, outputTokens: MAX_OUTPUT_TOKENS, durationMs: MODEL_CALL_MS }

export interface Afforded {
  reservation: Usage
  /** The least that a turn needs is not there. */
  shortage?: Shortage
}

/**
 * As much as a turn may need, where so much is left.
 * @param inputTokens asked for only where there is a budget
 * @param costOf what is known of the price of a call
 */
export function affordTurn(run: Run, inputTokens: () => number, costOf?: ModelHost['costOf']): Afforded {
  if (!run.budget) return { reservation: WITHOUT_BUDGET }
  const account = accountOf(run)
  const input = inputTokens()
  const least = { turns: 1, inputTokens: input, outputTokens: 1, durationMs: 1 }
  const shortage = shortageOf(account, { ...least, costMicros: costOf?.(least) ?? 1 })
  if (shortage) return { reservation: least, shortage }
  const output = Math.min(remainingIn(account, 'maxOutputTokens'), remainingIn(account, 'maxTotalTokens') - input)
  const outputTokens = Math.min(MAX_OUTPUT_TOKENS, output)
  const cost = costOf?.({ inputTokens: input, outputTokens })
  const reservation = {
    ...least,
    outputTokens,
    durationMs: Math.min(MODEL_CALL_MS, remainingIn(account, 'maxDurationMs')),
    ...(cost !== undefined && { costMicros: Math.min(cost, remainingIn(account, 'maxCostMicros')) }),
  }
  return { reservation }
}
