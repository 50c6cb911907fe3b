import { estimateInputTokens } from '../exchange/estimate.ts'
import type { Candidate } from '../routing/candidate.ts'
import { Attempt, type AttemptEnd } from './attempt.ts'
import { factsOf } from './candidate-facts.ts'
import { goneFault, lateFault } from './faults.ts'
import { forwardedOf } from './forwarded.ts'
import type { Inference } from './judge.ts'
import type { PlaneParts } from './parts.ts'
import type { AnswerSink } from './sink.ts'
import type { Turn } from './turn.ts'
import type { Watch } from './watch.ts'

interface CountOrder {
  readonly request: Inference
  readonly candidates: readonly Candidate[]
  readonly headers: Parameters<typeof forwardedOf>[1]
  readonly sink: AnswerSink
  readonly watch: Watch
  readonly turn: Turn
}

export interface TokenCount {
  /** `{"input_tokens": …}` */
  readonly body: Buffer
  readonly isEstimated: boolean
}

/**
 * The tokens of a prompt as Anthropic counts them, where a candidate that speaks its dialect serves the model; else, and when
 * that one fails, an estimate. Contract: gateway.md 3.2.
 * @throws GatewayError what the provider finds wrong with the request
 */
export async function countTokens(parts: PlaneParts, order: CountOrder): Promise<TokenCount> {
  const candidate = order.candidates.find(({ dialect }) => dialect === 'anthropic')
  const end = candidate && (await relay(parts, order, candidate))
  if (end?.answer) return { body: end.answer.body, isEstimated: false }
  if (end?.fault?.class === 'client') throw end.fault.error
  return { body: Buffer.from(JSON.stringify({ input_tokens: estimateInputTokens(order.request) })), isEstimated: true }
}

function relay(parts: PlaneParts, order: CountOrder, candidate: Candidate): Promise<AttemptEnd> {
  const { settings, monotonic, log } = parts
  const { request, headers, sink, watch, turn } = order
  const { limits } = factsOf(candidate, settings)
  return new Promise((resolve) => {
    const attempt = new Attempt({
      candidate,
      exchange: parts.makeExchange(request, candidate),
      surface: 'count_tokens',
      stream: false,
      forwarded: forwardedOf(candidate, headers),
      limits,
      sink,
      keepsContent: false,
      owner: {
        commit: () => undefined,
        ended: (_attempt, end) => {
          watch.delete(watched)
          resolve(end)
        },
      },
      watch,
      turn,
      monotonic,
      log,
    })
    const deadlineAt = attempt.startedAt + limits.totalMs
    const watched = {
      place: -1,
      tick: (now: number) => (now > deadlineAt ? attempt.stop(lateFault()) : attempt.tick(now)),
    }
    watch.add(watched)
    sink.onGone(() => attempt.stop(goneFault()))
    attempt.run()
  })
}
