import type { Usage } from '../model/budget.ts'
import type { TurnUsage } from '../model/turn.ts'

/** A guess where a provider names no tokens. Contract: kernel-1.md 14.3. */
export const estimateTokens = (text: string): number => Math.ceil(Buffer.byteLength(text) / 4)

/** What a turn costs the budget of its run. */
export const chargeOf = ({ inputTokens = 0, outputTokens = 0, costMicros = 0, durationMs = 0 }: TurnUsage): Usage => ({
  turns: 1,
  inputTokens,
  outputTokens,
  ...(costMicros > 0 && { costMicros }),
  durationMs,
})
