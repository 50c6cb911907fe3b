import type { Clock } from '../../base/clock.ts'
import type { IdSource } from '../../base/ids.ts'
import type { RequestLine } from '../../base/log.ts'
import type { ModelTable } from '../cost/model-table.ts'
import type { GatewayError, GatewayErrorCode } from '../errors.ts'
import type { AnswerFacts, InferenceRequest, MakeExchange } from '../exchange/exchange.ts'
import type { Budgets, Metering } from '../metering/metering.ts'
import type { FailureClass, Surface, UsageRecord } from '../model.ts'
import type { Candidate, Selection } from '../routing/candidate.ts'
import type { GatewayCaller, OpenKey, OrganizationState } from '../state/organization-state.ts'
import type { AnswerSink } from './sink.ts'

/** What the data plane stands on. Contract: gateway.md 3-9. */
export interface PlaneParts {
  readonly clock: Clock
  /** Milliseconds that only go forward, from any beginning: for durations and time limits. */
  readonly monotonic: () => number
  /** In [0, 1): for back-off. */
  readonly random: () => number
  readonly ids: IdSource
  /** Resolves after so many milliseconds, or at once when the signal aborts. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>
  readonly log: PlaneLog
  /** @param isPlain nothing of the line is the client's */
  readonly logRequest: (line: RequestLine, isPlain: boolean) => void
  readonly settings: PlaneSettings
  readonly states: States
  readonly sessions: SessionFinder
  /** Rejects while there is no organization; asked only for a token that nothing knows. */
  readonly requireInitialized: () => Promise<void>
  readonly router: RouterPort
  /** Of keys. */
  readonly limits: CallerLimitsPort
  readonly makeExchange: MakeExchange
  /** The prices in use now. */
  readonly table: () => ModelTable
  readonly metering: Metering
  readonly budgets: Budgets
  readonly observer: PlaneObserver
  readonly cache: AnswerCache
}

export interface PlaneLog {
  error(fields: object, message: string): void
}

/** From the configuration: `gateway`, and what of `server` and `platform` says which pages may call. */
export interface PlaneSettings {
  readonly maxRequestBytes: number
  readonly maxResponseBytes: number
  /** Milliseconds; a credential may have its own. */
  readonly timeouts: {
    readonly connect: number
    readonly first_byte: number
    readonly idle: number
    readonly total: number
  }
  readonly commitAfterMs: number
  readonly maxAttempts: number
  readonly maxRetryAfterMs: number
  readonly maxActiveRequests: number
  /** Beside this server's own. */
  readonly allowedOrigins: readonly string[]
}

/** The state of organizations in this process. */
export interface States {
  /** Whose key, good now, has this SHA-256, hex. */
  findKey(tokenHash: string): { readonly state: OrganizationState; readonly key: OpenKey } | undefined
  get(organizationId: number): OrganizationState | undefined
}

export interface SessionFinder {
  /** Another number whenever sessions have ended in this process. */
  readonly ended: number
  find(token: string): Promise<{ readonly user: { readonly id: number; readonly organization_id: number } } | undefined>
}

export interface RouterPort {
  /**
   * The candidates of a name for a caller.
   * @throws GatewayError 403 `model_not_allowed`, `model_blocked`, `credential_not_allowed`, 404 `model_not_found`
   */
  select(
    caller: GatewayCaller,
    name: string,
    surface: Surface,
    options: { readonly pin: string | undefined; readonly fallback: boolean },
  ): Selection
  /** The names that a caller may use, in the order of GET `v1/models`. */
  models(caller: GatewayCaller): readonly ListedModel[]
}

export interface ListedModel {
  readonly id: string
  /** A kind, or `alias`. */
  readonly owned_by: string
  /** Epoch seconds. */
  readonly created: number
}

export interface CallerLimitsPort {
  /**
   * Takes a place and its share of the rates of the caller's key; undefined where no limit applies.
   * @param tokens estimated
   * @throws GatewayError 429 `rate_limit_exceeded`, `concurrency_exceeded`
   */
  take(caller: GatewayCaller, tokens: number): LimitHold | undefined
  /** `x-ratelimit-*` as things stand, names and values in turn; none where no rate is limited. */
  headers(caller: GatewayCaller): readonly string[]
}

export interface LimitHold {
  /** Gives the place back, and settles the tokens by their true number. */
  end(tokens: number): void
}

/** An attempt that has ended, as metrics and spans tell it. */
export interface FinishedAttempt {
  readonly candidate: Candidate
  /** From 1. */
  readonly number: number
  /** Epoch ms. */
  readonly startedAt: number
  readonly durationMs: number
  /** From the start of the attempt to the first bytes of the answer. */
  readonly firstChunkMs: number | undefined
  readonly class: FailureClass | 'ok'
  readonly status: number | undefined
  /** Of one that did not reach its provider: why, without internal addresses. */
  readonly unreached?: string | undefined
  /** Where it went, `https://host:port`; undefined when it never came so far. */
  readonly origin: string | undefined
  /** Of an answer that was one, or began to be. */
  readonly facts: AnswerFacts | undefined
}

/** An authenticated inference call that has ended. */
export interface FinishedCall {
  readonly record: UsageRecord
  readonly caller: GatewayCaller
  /** Undefined when it was refused before its body was understood. */
  readonly request: InferenceRequest | undefined
  readonly attempts: readonly FinishedAttempt[]
  /** As the client sent it. */
  readonly traceparent: string | undefined
  /** What the cache said of it, where it was asked. */
  readonly cache: CacheResult | undefined
}

/** Whoever counts and traces calls. It must neither throw nor wait. */
export interface PlaneObserver {
  /** Called once for each usage record, in the turn in which it is made. */
  finished(call: FinishedCall): void
  /** A refusal of somebody who is not known, which leaves no record. */
  rejected(code: GatewayErrorCode): void
}

/** What the client or the alias wishes of the cache; only then it is asked. Contract: gateway.md 8. */
export interface CacheWish {
  /** `refresh` makes the call whatever is kept, and keeps its answer. */
  readonly mode: 'on' | 'refresh'
  readonly ttlMs: number
}

export interface CacheCall {
  readonly request: InferenceRequest
  readonly caller: GatewayCaller
  /** The value of `x-mem-credential`. */
  readonly pin: string | undefined
  /** Values of the client's headers that may go to the provider, in their order. */
  readonly forwarded: readonly string[]
  readonly wish: CacheWish
  /** Milliseconds that it may still wait for the call of another. */
  readonly leftMs: () => number
  /** Milliseconds of our own until now. */
  readonly overheadMs: () => number
  /** The client. */
  readonly sink: AnswerSink
  /**
   * Makes the call into a sink: the client's, or one that stands between or collects. It writes the usage record itself,
   * ends the sink, and never rejects; it goes on until its sink is gone. At most once.
   */
  run(sink: AnswerSink): Promise<RunResult>
}

/** How a call that was made ended. */
export interface RunResult {
  /** A complete 200 answer went into the sink. */
  readonly ok: boolean
  readonly facts: AnswerFacts | undefined
  /** Why there is none, where that is not this caller's own doing: what equal calls would be told too. */
  readonly shared?: GatewayError
}

/** `hit`: answered without a call of its own, from what is kept or with the call of another; the rest ran. */
export type CacheResult = 'hit' | 'stored' | 'miss'

/** Answers kept in memory. */
export interface AnswerCache {
  /**
   * Answers a call into its sink, by what is kept, by an equal call that is under way, or by `run`. What it gives instead of
   * a result is why that call under way has no answer: the client is still to be told. Headers of the cache
   * (`x-mem-cache`, `age`) are its own to add; those of a hit are all its own, but for the ids of the request
   * (`x-request-id`, `request-id`, `x-ratelimit-*`), which the sink adds to every head.
   */
  serve(call: CacheCall): Promise<CacheResult | GatewayError>
}
