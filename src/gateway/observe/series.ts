import { Counter, Histogram } from '../../base/metrics.ts'
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
          costUnknown: series.costUnknown.at(priced),
        }
      : undefined,
  }
}

const wasServed = ({ attempts, outcome }: UsageRecord): boolean => attempts.length > 0 || outcome === 'cached'

/** Keys that are kept at once: more cost time, nothing else. */
const MOST_KEPT = 10_000

/** The series that requests of one kind add to, found by one key. */
export class Kept {
  readonly #series: Series
  readonly #kindOf: (organizationId: number, credentialId: number) => Kind | undefined
  readonly #requests = new Map<string, RequestSeries>()
  readonly #counters = new Map<string, { value: number }>()

  constructor(series: Series, kindOf: (organizationId: number, credentialId: number) => Kind | undefined) {
    this.#series = series
    this.#kindOf = kindOf
  }

  ofRequest(record: UsageRecord, model: string): RequestSeries {
    const { organization_id, surface, stream, provider, credential_id, outcome } = record
    const key = `${organization_id} ${surface} ${stream} ${provider} ${credential_id} ${outcome} ${wasServed(record)} ${model}`
    return keep(this.#requests, key, () => requestSeries(this.#series, record, model))
  }

  ofAttempt(organizationId: number, { credential_id: id, class: outcome }: AttemptRecord): { value: number } {
    const organization = String(organizationId)
    return keep(this.#counters, `${organization} ${id} ${outcome}`, () => {
      const provider = this.#kindOf(organizationId, id) ?? NONE
      return this.#series.attempts.at({ organization, provider, credential: String(id), class: outcome })
    })
  }

  ofFallback(organizationId: number, failed: AttemptRecord, next: number): { value: number } {
    const organization = String(organizationId)
    const { credential_id: from, class: outcome } = failed
    return keep(this.#counters, `${organization} ${from} ${next} ${outcome}`, () =>
      this.#series.fallbacks.at({ organization, from: String(from), to: String(next), class: outcome }),
    )
  }
}

function keep<T>(kept: Map<string, T>, key: string, find: () => T): T {
  const known = kept.get(key)
  if (known !== undefined) return known
  if (kept.size >= MOST_KEPT) kept.clear()
  const found = find()
  kept.set(key, found)
  return found
}
