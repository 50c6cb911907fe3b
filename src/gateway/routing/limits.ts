import type { Clock } from '../../base/clock.ts'
import { GatewayError } from '../errors.ts'
import type { Limits } from '../model.ts'
import type { GatewayCaller, OpenKey } from '../state/organization-state.ts'
import { Quota } from './quota.ts'

/** Keys with limits that are remembered before those that use nothing of them are forgotten. */
const SWEEP_AT = 1000
/** When to come again where every slot is taken: nobody knows how long a call lasts. */
const SLOT_WAIT_MS = 1000

interface LimitsParts {
  readonly clock: Clock
  /** How many live processes share the limits. */
  readonly processes: () => number
}

/** The limits of virtual keys. Contract: gateway.md 4.6. */
export class CallerLimits {
  readonly #parts: LimitsParts
  readonly #quotas = new Map<number, Quota>()
  #sweepAt = SWEEP_AT

  constructor(parts: LimitsParts) {
    this.#parts = parts
  }

  /**
   * Takes one request of so many estimated tokens, and a slot; undefined where no limit applies.
   * @throws GatewayError 429 `rate_limit_exceeded`, `concurrency_exceeded`; nothing is taken then
   */
  take({ key }: GatewayCaller, tokens: number): LimitHold | undefined {
    if (!key || !isLimited(key.limits)) return undefined
    const quota = this.#quotaOf(key)
    const processes = this.#parts.processes()
    if (quota.isFull(processes)) {
      throw new GatewayError('concurrency_exceeded', 'This key runs as many calls at a time as it may', {
        retryAfterMs: SLOT_WAIT_MS,
      })
    }
    const waitMs = quota.waitMs(tokens, processes, this.#parts.clock.now())
    if (waitMs > 0) {
      throw new GatewayError('rate_limit_exceeded', `This key has used its ${ratesOf(key.limits)} a minute`, {
        retryAfterMs: waitMs,
      })
    }
    quota.take(tokens)
    return new LimitHold(quota, tokens)
  }

  /** `x-ratelimit-*` of the rates that the caller's key has, names and values in turn. Contract: gateway.md 3.3 */
  headers({ key }: GatewayCaller): readonly string[] {
    if (!key || !isLimited(key.limits)) return NONE
    const processes = this.#parts.processes()
    const headers: string[] = []
    for (const { name, limit, perMinute, spent } of this.#quotaOf(key).rates(processes, this.#parts.clock.now())) {
      const left = Math.max(0, Math.floor((perMinute - spent) * processes + 1e-6))
      const [ofLimit, ofRest, ofReset] = HEADERS[name]
      headers.push(ofLimit, `${limit}`, ofRest, `${left}`, ofReset, span((spent / perMinute) * 60_000))
    }
    return headers
  }

  #quotaOf(key: OpenKey): Quota {
    const known = this.#quotas.get(key.id)
    if (known) {
      known.limits = key.limits
      return known
    }
    if (this.#quotas.size >= this.#sweepAt) this.#sweep()
    const quota = new Quota(key.limits)
    this.#quotas.set(key.id, quota)
    return quota
  }

  #sweep(): void {
    const now = this.#parts.clock.now()
    for (const [id, quota] of this.#quotas) if (quota.isIdle(this.#parts.processes(), now)) this.#quotas.delete(id)
    this.#sweepAt = Math.max(SWEEP_AT, this.#quotas.size * 2)
  }
}

/** What one request has taken of its key's limits. */
export class LimitHold {
  readonly #quota: Quota
  readonly #estimated: number
  #isHeld = true

  constructor(quota: Quota, estimated: number) {
    this.#quota = quota
    this.#estimated = estimated
  }

  /** Gives the slot back, and puts the tokens used in the place of those estimated; the second time nothing happens. */
  end(tokens: number): void {
    if (!this.#isHeld) return
    this.#isHeld = false
    this.#quota.release()
    this.#quota.settle(this.#estimated, tokens)
  }
}

const NONE: readonly string[] = []

const headersOf = (name: string) =>
  [`x-ratelimit-limit-${name}`, `x-ratelimit-remaining-${name}`, `x-ratelimit-reset-${name}`] as const
const HEADERS = { requests: headersOf('requests'), tokens: headersOf('tokens') }

const isLimited = ({
  requests_per_minute: requests,
  tokens_per_minute: tokens,
  max_concurrency: calls,
}: Limits): boolean => requests !== undefined || tokens !== undefined || calls !== undefined

function ratesOf({ requests_per_minute: requests, tokens_per_minute: tokens }: Limits): string {
  const rates = [requests !== undefined && `${requests} requests`, tokens !== undefined && `${tokens} tokens`]
  return rates.filter(Boolean).join(' or ')
}

/** As providers write it: `350ms`, `12.5s`. */
const span = (ms: number): string => (ms < 1000 ? `${Math.ceil(ms)}ms` : `${Math.ceil(ms / 100) / 10}s`)
