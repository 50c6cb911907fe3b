import { Counter, Histogram, OTHER } from '../../base/metrics.ts'
import type { AttemptRecord, Kind, UsageRecord } from '../model.ts'

const MOST = { most: 5000 }
const SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 180, 600]
const SMALL_SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 1]
const NANO = 1e9
/** Of a label that does not apply. */
export const NONE = 'none'

export type Series = ReturnType<typeof createSeries>

/** Contract: gateway.md 11. */
export const createSeries = () => ({
  requests: new Counter('llm_gateway_requests_total', 'Inference requests that ended.', MOST),
  duration: new Histogram('llm_gateway_request_duration_seconds', 'How long requests took.', SECONDS, MOST),
  upstream: new Histogram('llm_gateway_upstream_duration_seconds', 'How long providers took.', SECONDS, MOST),
  firstToken: new Histogram('llm_gateway_first_token_seconds', 'Until the first content went out.', SECONDS, MOST),
  overhead: new Histogram('llm_gateway_overhead_seconds', 'What the gateway itself added.', SMALL_SECONDS, MOST),
  tokens: new Counter('llm_gateway_tokens_total', 'Tokens: input holds cached ones, output reasoning.', MOST),
  cost: new Counter('llm_gateway_cost_usd_total', 'What requests cost, where it is known.', { ...MOST, parts: NANO }),
  costUnknown: new Counter('llm_gateway_cost_unknown_total', 'Requests whose cost is not known.', MOST),
  attempts: new Counter('llm_gateway_attempts_total', 'Calls of providers, by what came of them.', MOST),
  fallbacks: new Counter('llm_gateway_fallbacks_total', 'Calls that went on to another credential.', MOST),
  rejected: new Counter('llm_gateway_rejected_total', 'Requests refused before a provider was called.', MOST),
  cache: new Counter('llm_gateway_cache_total', 'Requests that asked for the cache.', MOST),
})

export type RequestSeries = ReturnType<typeof requestSeries>

function requestSeries(series: Series, record: UsageRecord, model: string) {
  const { surface, outcome, stream, provider = NONE, credential_id = NONE, organization_id } = record
  const organization = String(organization_id)
  const credential = String(credential_id)
  const timed = { organization, surface, provider, model }
  const priced = { organization, provider, model, credential }
  const tokens = (kind: string): { value: number } => series.tokens.at({ ...priced, kind })
  return {
    requests: series.requests.at({ organization, surface, provider, model, credential, outcome }),
    duration: series.duration.at(timed),
    overhead: series.overhead.at({ surface, stream: String(stream) }),
    costUnknown: series.costUnknown.at(priced),
    served: wasServed(record)
      ? {
          upstream: series.upstream.at(timed),
          firstToken: series.firstToken.at(timed),
          input: tokens('input'),
          cacheRead: tokens('cache_read'),
          cacheWrite: tokens('cache_write'),
          output: tokens('output'),
          reasoning: tokens('reasoning'),
          cost: series.cost.at(priced),
        }
      : undefined,
  }
}

const wasServed = ({ attempts, outcome }: UsageRecord): boolean => attempts.length > 0 || outcome === 'cached'

/** Kinds that are kept at once: more cost time, nothing else. */
const MOST_KEPT = 10_000

/** The latest request of a credential, and where requests of its kind are counted. */
interface KeptRequest {
  readonly record: UsageRecord
  readonly label: string
  readonly series: RequestSeries
}

/** The series that requests of one kind add to: most are of the kind of the one before, and are found without a key. */
export class Kept {
  readonly #series: Series
  readonly #kindOf: (organizationId: number, credentialId: number) => Kind | undefined
  readonly #labelOf: (record: UsageRecord) => string
  /** By credential; 0 is none. */
  readonly #latest = new Map<number, KeptRequest>()
  readonly #requests = new Map<string, RequestSeries>()
  /** By credential, then by class. */
  readonly #attempts = new Map<number, Map<string, { value: number }>>()

  /** @param labelOf what series call the model of a record */
  constructor(
    series: Series,
    kindOf: (organizationId: number, credentialId: number) => Kind | undefined,
    labelOf: (record: UsageRecord) => string,
  ) {
    this.#series = series
    this.#kindOf = kindOf
    this.#labelOf = labelOf
  }

  ofRequest(record: UsageRecord): RequestSeries {
    const { credential_id: id = 0 } = record
    const latest = this.#latest.get(id)
    const known = latest && isSameKind(latest.record, record) ? latest : undefined
    if (known && known.label !== OTHER) return known.series
    // What had no name of its own may have one now.
    const label = this.#labelOf(record)
    if (known && label === OTHER) return known.series
    const series = this.#find(record, label)
    if (this.#latest.size >= MOST_KEPT) this.#latest.clear()
    this.#latest.set(id, { record, label, series })
    return series
  }

  #find(record: UsageRecord, label: string): RequestSeries {
    const { organization_id, surface, stream, provider, credential_id, outcome } = record
    const key = `${organization_id} ${surface} ${stream} ${provider} ${credential_id} ${outcome} ${wasServed(record)} ${label}`
    const known = this.#requests.get(key)
    if (known) return known
    if (this.#requests.size >= MOST_KEPT) this.#requests.clear()
    const found = requestSeries(this.#series, record, label)
    this.#requests.set(key, found)
    return found
  }

  ofAttempt(organizationId: number, { credential_id: id, class: outcome }: AttemptRecord): { value: number } {
    const known = this.#attempts.get(id)?.get(outcome)
    if (known) return known
    if (this.#attempts.size >= MOST_KEPT) this.#attempts.clear()
    const byClass = this.#attempts.get(id) ?? new Map<string, { value: number }>()
    this.#attempts.set(id, byClass)
    const provider = this.#kindOf(organizationId, id) ?? NONE
    const counter = this.#series.attempts.at({
      organization: String(organizationId),
      provider,
      credential: String(id),
      class: outcome,
    })
    byClass.set(outcome, counter)
    return counter
  }

  ofFallback(organizationId: number, { credential_id: from, class: outcome }: AttemptRecord, next: number) {
    const organization = String(organizationId)
    return this.#series.fallbacks.at({ organization, from: String(from), to: String(next), class: outcome })
  }
}

const isSameKind = (one: UsageRecord, other: UsageRecord): boolean =>
  one.outcome === other.outcome &&
  one.surface === other.surface &&
  one.stream === other.stream &&
  one.model_used === other.model_used &&
  one.model_requested === other.model_requested &&
  one.organization_id === other.organization_id &&
  one.provider === other.provider &&
  wasServed(one) === wasServed(other)
