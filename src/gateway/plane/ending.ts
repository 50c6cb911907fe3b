import { priceCall } from '../cost/pricing.ts'
import type { GatewayError } from '../errors.ts'
import type { AnswerFacts, JsonAnswer, UpstreamFault } from '../exchange/exchange.ts'
import type { Outcome } from '../model.ts'
import { usedBy, type Used } from './account.ts'
import type { Attempt, AttemptEnd } from './attempt.ts'
import type { CallOrder } from './call.ts'
import { factsOf } from './candidate-facts.ts'
import { CLOSED } from './faults.ts'
import { listed, printable } from './header-text.ts'
import { keptContent } from './kept-content.ts'
import type { FinishedAttempt, PlaneParts, RunResult } from './parts.ts'
import { refusalBody, refusalHeaders } from './refusal.ts'
import { STREAM_HEADERS, type AnswerSink } from './sink.ts'
import { Tally } from './tally.ts'

const COST_BYTES = 1024 * 1024

/** What a call has come to so far, and how the client and the record are told of it. */
export class Ending {
  readonly attempts: FinishedAttempt[] = []
  readonly #parts: PlaneParts
  readonly #order: CallOrder
  readonly #sink: AnswerSink
  readonly #tally = new Tally()
  #last: Attempt | undefined
  #upstreamMs = 0

  constructor(parts: PlaneParts, order: CallOrder, sink: AnswerSink) {
    this.#parts = parts
    this.#order = order
    this.#sink = sink
  }

  /** Counts an attempt that is over. @returns its tokens and cost, where there are any */
  count(
    attempt: Attempt,
    { fault, answer }: AttemptEnd,
    startedAt: number,
  ): (Used & { cost: bigint | undefined }) | undefined {
    const { candidate, firstTokenAt } = attempt
    const durationMs = (attempt.endedAt ?? attempt.startedAt) - attempt.startedAt
    const facts = answer?.facts ?? attempt.facts ?? fault?.facts
    this.#last = attempt
    this.#upstreamMs += durationMs
    this.attempts.push({
      candidate,
      number: this.attempts.length + 1,
      startedAt,
      durationMs,
      firstChunkMs: firstTokenAt === undefined ? undefined : firstTokenAt - attempt.startedAt,
      class: fault?.class ?? 'ok',
      status: attempt.status,
      unreached: fault?.class === 'connect' ? fault.message : undefined,
      origin: attempt.origin,
      facts,
    })
    const used = usedBy(this.#order.request, fault ? (attempt.hasContent ? 'begun' : 'none') : 'whole', facts)
    if (!used) return undefined
    const names = {
      response: facts?.responseModel,
      upstream: candidate.model,
      base: factsOf(candidate, this.#parts.settings).baseModel,
    }
    const cost = priceCall(this.#parts.table(), candidate.upstream.credential.kind, names, used.usage)
    this.#tally.add(used.usage, cost, used.isEstimated)
    return { usage: used.usage, isEstimated: used.isEstimated, cost }
  }

  /** The head of a stream: from here on no other candidate answers. */
  commit(attempt: Attempt): void {
    const upstreamMs = this.#upstreamMs + this.#parts.monotonic() - attempt.startedAt
    const headers = [...STREAM_HEADERS]
    this.#addHeaders(headers, attempt, this.attempts.length + 1, upstreamMs)
    this.#sink.head(200, headers)
  }

  answered(attempt: Attempt, { body, facts }: JsonAnswer): RunResult {
    const type = attempt.exchange.isRelay ? attempt.contentType : undefined
    const headers = ['content-type', type ?? 'application/json', 'content-length', `${body.length}`]
    this.#addHeaders(headers, attempt, this.attempts.length, this.#upstreamMs)
    const { usd } = this.#tally.cost(this.#settings.cost_tracking)
    if (usd !== null && body.length <= COST_BYTES) headers.push('x-mem-cost', usd)
    if (this.#settings.content_logging) attempt.out.keep(keptContent(body))
    this.#record('ok', 200, body.length, facts)
    this.#sink.head(200, headers)
    this.#sink.end(body)
    return { ok: true, facts }
  }

  /** A stream has come to its end. */
  streamed(attempt: Attempt, last: readonly Buffer[]): RunResult {
    const { facts } = attempt
    const bytes = last.length === 0 ? undefined : Buffer.concat(last)
    if (bytes) attempt.out.keep(bytes)
    this.#record('ok', 200, attempt.out.bytes + (bytes?.length ?? 0), facts)
    this.#sink.end(bytes)
    return { ok: true, facts }
  }

  /** A stream failed after its head: the client is told inside of it. */
  brokenOff(attempt: Attempt, fault: UpstreamFault, last: readonly Buffer[]): RunResult {
    const { facts } = attempt
    if (this.#sink.isGone) {
      this.#record('client_closed', CLOSED, attempt.out.bytes, facts)
      return { ok: false, facts }
    }
    const bytes = Buffer.concat([...last, ...attempt.failureBytes(fault.error, this.#order.family.requestId)])
    attempt.out.keep(bytes)
    this.#record('error', 200, attempt.out.bytes + bytes.length, facts, fault.error.code)
    this.#sink.end(bytes)
    return { ok: false, facts, ...this.#sharedOf(fault, fault.error) }
  }

  /** No answer began: the client is told why. @param fault that it comes of, where an attempt did */
  refused(error: GatewayError, fault: UpstreamFault | undefined): RunResult {
    const refused = { ok: false, facts: undefined, ...(fault && this.#sharedOf(fault, error)) }
    if (this.#sink.isGone) {
      this.#record('client_closed', CLOSED, 0, undefined)
      return refused
    }
    const hasTried = this.attempts.length > 0
    const body = refusalBody(error, this.#order.family)
    const headers = refusalHeaders(error, body)
    if (this.#last) this.#addHeaders(headers, this.#last, this.attempts.length, this.#upstreamMs)
    if (hasTried && error.code !== 'budget_exceeded') headers.push('x-should-retry', 'false')
    const isRejected = !hasTried && error.status !== 500 && error.status !== 504
    this.#record(isRejected ? 'rejected' : 'error', error.status, body.length, undefined, error.code)
    this.#sink.head(error.status, headers)
    this.#sink.end(body)
    return refused
  }

  /** Time and connection are the caller's own, and who takes no other candidate may have failed where others would not. */
  #sharedOf({ class: failure }: UpstreamFault, error: GatewayError): Pick<RunResult, 'shared'> {
    const isOwn =
      failure === 'deadline' || failure === 'closed' || this.#order.visit.headers['x-mem-fallback'] === 'off'
    return isOwn ? {} : { shared: error }
  }

  get #settings() {
    return this.#order.visit.caller.state.settings
  }

  #record(
    outcome: Outcome,
    status: number,
    bytesOut: number,
    facts: AnswerFacts | undefined,
    code?: GatewayError['code'],
  ): void {
    const { visit, request } = this.#order
    const last = this.#last
    visit.end({
      outcome,
      status,
      code,
      bytesOut,
      facts,
      candidate: last?.candidate,
      attempts: this.attempts,
      tally: this.#tally,
      upstreamMs: this.#upstreamMs,
      firstTokenMs: last?.firstTokenAt === undefined ? undefined : last.firstTokenAt - visit.startedAt,
      content:
        last && this.#settings.content_logging
          ? { request: request.body, response: Buffer.concat(last.out.content) }
          : undefined,
    })
  }

  /** What every answer tells of the attempt that made it. */
  #addHeaders(headers: string[], attempt: Attempt, number: number, upstreamMs: number): void {
    for (const part of factsOf(attempt.candidate, this.#parts.settings).headers) headers.push(part)
    const overheadMs = this.#order.visit.overheadMs(upstreamMs)
    headers.push('x-mem-attempts', `${number}`, 'x-mem-overhead-ms', overheadMs.toFixed(2))
    const { dropped } = attempt.exchange
    if (attempt.upstreamRequestId !== undefined) {
      headers.push('x-upstream-request-id', printable(attempt.upstreamRequestId))
    }
    if (dropped.length > 0) headers.push('x-mem-dropped', listed(dropped))
  }
}
