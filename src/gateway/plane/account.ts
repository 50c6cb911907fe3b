import type { Usage } from '../chat/events.ts'
import { estimateUsage } from '../exchange/estimate.ts'
import type { AnswerFacts, InferenceRequest } from '../exchange/exchange.ts'

const BYTES_PER_TOKEN = 4

/** How far an attempt came: it answered whole, said something, or nothing. */
export type Progress = 'whole' | 'begun' | 'none'

export interface Used {
  readonly usage: Usage
  readonly isEstimated: boolean
}

/**
 * The tokens of an attempt: as reported; of a whole answer, or one that broke off, estimated where they were not. A failure that
 * said nothing cost nothing unless it reported so. Contract: gateway.md 7.2.
 */
export function usedBy(
  request: InferenceRequest,
  progress: Progress,
  facts: AnswerFacts | undefined,
): Used | undefined {
  const usage = facts?.usage
  if (progress === 'none') return usage && { usage, isEstimated: false }
  if (!usage) return { usage: estimateUsage(request, facts ?? { textBytes: 0 }), isEstimated: true }
  if (progress === 'whole') return { usage, isEstimated: false }
  // What was reported so far is less than what was said.
  const said = Math.ceil((facts?.textBytes ?? 0) / BYTES_PER_TOKEN)
  return { usage: { ...usage, output: Math.max(usage.output, said) }, isEstimated: true }
}
