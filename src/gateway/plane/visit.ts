import { uuidAt } from '../../base/ids.ts'
import type { IncomingHttpHeaders } from 'node:http'
import { toTimestamp } from '../../base/clock.ts'
import type { Content } from '../metering/metering.ts'
import type { GatewayErrorCode } from '../errors.ts'
import type { AnswerFacts, UpstreamFault } from '../exchange/exchange.ts'
import { nameTold } from '../exchange/facts.ts'
import type { AttemptRecord, Outcome, Surface, UsageRecord } from '../model.ts'
import type { Candidate } from '../routing/candidate.ts'
import type { GatewayCaller } from '../state/organization-state.ts'
import type { Client } from './client.ts'
import type { Inference } from './judge.ts'
import { keptContent } from './kept-content.ts'
import type { CacheResult, FinishedAttempt, LimitHold, PlaneParts } from './parts.ts'
import type { Place } from './paths.ts'
import { Tally } from './tally.ts'
import type { Turn } from './turn.ts'

const CLIENT_CHARACTERS = 100

/** How a request ended. */
export interface VisitEnd {
  readonly outcome: Outcome
  readonly status: number
  readonly code?: GatewayErrorCode | undefined
  readonly bytesOut: number
  readonly facts?: AnswerFacts | undefined
  /** Whose attempt was the last. */
  readonly candidate?: Candidate | undefined
  readonly attempts?: readonly FinishedAttempt[]
  readonly tally?: Tally
  readonly upstreamMs?: number
  /** Since the request came. */
  readonly firstTokenMs?: number | undefined
  readonly content?: Content | undefined
}

const NOTHING = new Tally()

type VisitFacts = Pick<Visit, 'caller' | 'headers' | 'client' | 'startedAt'> & {
  readonly place: Place
  readonly turn: Turn
}

/** An inference request of somebody known: what it takes and what its record tells. */
export class Visit {
  readonly caller: GatewayCaller
  readonly surface: Surface
  readonly headers: IncomingHttpHeaders
  readonly client: Client
  readonly turn: Turn
  /** Monotonic, and of the clock. */
  readonly startedAt: number
  readonly #beganAt: number
  readonly #parts: PlaneParts
  /** As asked; empty until it is known. */
  model = ''
  stream = false
  bytesIn = 0
  /** Spent waiting for the body. */
  bodyMs = 0
  request: Inference | undefined
  aliasId: number | undefined
  hold: LimitHold | undefined
  place = -1
  /** What may be stopped, once it runs. */
  call: { stop(fault: UpstreamFault): void } | undefined
  #end: VisitEnd | undefined
  #endedAt = 0
  #record: UsageRecord | undefined
  #isAnswered = false
  #cache: CacheResult | undefined

  constructor(parts: PlaneParts, facts: VisitFacts) {
    this.#parts = parts
    this.turn = facts.turn
    this.caller = facts.caller
    this.surface = facts.place.kind === 'inference' ? facts.place.surface : 'messages'
    this.headers = facts.headers
    this.client = facts.client
    this.startedAt = facts.startedAt
    this.#beganAt = parts.clock.now()
  }

  /** Milliseconds of our own until now. */
  overheadMs(upstreamMs: number): number {
    return Math.max(0, this.#parts.monotonic() - this.startedAt - this.bodyMs - upstreamMs)
  }

  /** Before the last byte of the answer goes out. Once. */
  end(end: VisitEnd): void {
    if (this.#end) return
    this.#end = end
    this.#endedAt = this.#parts.monotonic()
    this.hold?.end(end.tally?.tokens ?? 0)
    this.turn.record(() => this.#settle(end))
  }

  /** Leaves the record. */
  #settle(end: VisitEnd): void {
    this.#record = this.#recordOf(end)
    // Only now, behind the answers: a body full of images takes long to read.
    const content = end.content && { ...end.content, request: keptContent(end.content.request) }
    this.#parts.metering.record(this.#record, content)
    this.#tell()
  }

  /**
   * The answer has gone out. Once.
   * @param cache what the cache did, where it was asked
   */
  answered(cache?: CacheResult): void {
    if (this.#isAnswered) return
    this.#isAnswered = true
    this.#cache = cache
    this.#tell()
  }

  #tell(): void {
    if (!this.#isAnswered || !this.#record) return
    const { traceparent } = this.headers
    this.#parts.observer.finished({
      record: this.#record,
      caller: this.caller,
      request: this.request,
      attempts: this.#end?.attempts ?? [],
      traceparent: typeof traceparent === 'string' ? traceparent : undefined,
      cache: this.#cache,
    })
  }

  #recordOf(end: VisitEnd): UsageRecord {
    const { caller, headers } = this
    const { attempts = [], tally = NOTHING, upstreamMs = 0, facts } = end
    const { settings } = caller.state
    const { usage } = tally
    const durationMs = this.#endedAt - this.startedAt
    const cost =
      end.outcome === 'cached' && settings.cost_tracking
        ? { usd: '0', state: 'exact' as const }
        : tally.cost(settings.cost_tracking)
    const credential = end.candidate?.upstream.credential
    const retries = headers['x-stainless-retry-count']
    // Whatever a call was, its record has the same fields: code that reads records of many shapes takes longer.
    return {
      id: uuidAt(this.#beganAt),
      request_id: this.client.requestId,
      organization_id: caller.state.id,
      user_id: caller.userId,
      key_id: caller.key?.id,
      surface: this.surface,
      stream: this.stream,
      test: false,
      model_requested: this.model,
      alias_id: this.aliasId,
      credential_id: credential?.id,
      provider: credential?.kind,
      model_used: end.candidate?.model,
      response_model: nameTold(facts?.responseModel),
      outcome: end.outcome,
      status: end.status,
      error_code: end.code,
      finish_reason: facts?.finishReason,
      attempts: attempts.map(attemptRecord),
      input_tokens: usage?.input ?? null,
      cache_read_tokens: usage?.cacheRead ?? null,
      cache_write_tokens: usage?.cacheWrite ?? null,
      cache_write_1h_tokens: usage?.cacheWrite1h ?? null,
      output_tokens: usage?.output ?? null,
      reasoning_tokens: usage?.reasoning ?? null,
      cost_usd: cost.usd,
      cost_state: cost.state,
      model_table_version: this.#parts.table().version,
      started_at: toTimestamp(this.#beganAt),
      duration_ms: rounded(durationMs),
      upstream_ms: rounded(upstreamMs),
      overhead_ms: rounded(Math.max(0, durationMs - this.bodyMs - upstreamMs)),
      first_token_ms: end.firstTokenMs === undefined ? undefined : rounded(end.firstTokenMs),
      bytes_in: this.bytesIn,
      bytes_out: end.bytesOut,
      client: headers['user-agent']?.slice(0, CLIENT_CHARACTERS),
      retry_count: typeof retries === 'string' && /^\d{1,4}$/.test(retries) ? Number(retries) : undefined,
    }
  }
}

const attemptRecord = ({
  candidate,
  class: outcome,
  status,
  startedAt,
  durationMs,
}: FinishedAttempt): AttemptRecord => ({
  credential_id: candidate.upstream.credential.id,
  model: candidate.model,
  class: outcome,
  status,
  started_at: toTimestamp(startedAt),
  duration_ms: rounded(durationMs),
})

/** To the microsecond. */
const rounded = (ms: number): number => Math.round(ms * 1000) / 1000
