import type { Limits } from '../model.ts'

const MINUTE_MS = 60_000

/** A token bucket, kept as what is spent: limits may change while it is in use. */
class Bucket {
  #spent = 0
  #at = 0

  /** What is spent and not given back by time yet. */
  spent(perMinute: number, now: number): number {
    const passed = Math.max(0, now - this.#at)
    this.#spent = Math.max(0, this.#spent - (passed * perMinute) / MINUTE_MS)
    this.#at = now // also back: a clock that is set back must not stop the refill
    return this.#spent
  }

  /** Milliseconds until so much fits, 0 = now. More than fits at all waits for the whole bucket. */
  waitMs(amount: number, perMinute: number, now: number): number {
    const capacity = capacityOf(perMinute)
    const over = this.spent(perMinute, now) + Math.min(amount, capacity) - capacity
    return over <= 1e-6 ? 0 : Math.ceil((over * MINUTE_MS) / perMinute)
  }

  add(amount: number): void {
    this.#spent += amount
  }
}

/** A share below one still lets one through. */
const capacityOf = (perMinute: number): number => Math.max(1, perMinute)

/** The limits of a credential or key and what is used of them: of N live processes each has an N-th. Contract: gateway.md 4.6. */
export class Quota {
  limits: Limits
  active = 0
  readonly #requests = new Bucket()
  readonly #tokens = new Bucket()

  constructor(limits: Limits) {
    this.limits = limits
  }

  isFull(processes: number): boolean {
    const { max_concurrency: most } = this.limits
    return most !== undefined && this.active >= Math.max(1, Math.floor(most / processes))
  }

  /** Milliseconds until rates let one call of so many tokens through, 0 = now. */
  waitMs(tokens: number, processes: number, now: number): number {
    const { requests_per_minute: requests, tokens_per_minute: perMinute } = this.limits
    return Math.max(
      requests === undefined ? 0 : this.#requests.waitMs(1, requests / processes, now),
      perMinute === undefined ? 0 : this.#tokens.waitMs(tokens, perMinute / processes, now),
    )
  }

  take(tokens: number): void {
    this.active++
    if (this.limits.requests_per_minute !== undefined) this.#requests.add(1)
    if (this.limits.tokens_per_minute !== undefined) this.#tokens.add(tokens)
  }

  release(): void {
    this.active--
  }

  /** What was taken for a call that is not made. */
  giveBack(tokens: number): void {
    this.release()
    if (this.limits.requests_per_minute !== undefined) this.#requests.add(-1)
    this.settle(tokens, 0)
  }

  /** Puts what was used in the place of what was estimated. */
  settle(estimated: number, used: number): void {
    if (this.limits.tokens_per_minute !== undefined) this.#tokens.add(used - estimated)
  }

  /** Nothing of it is used: it may be forgotten. */
  isIdle(processes: number, now: number): boolean {
    if (this.active > 0) return false
    return this.rates(processes, now).every(({ spent }) => spent === 0)
  }

  /** The limits on rates and what is spent of this process's share. */
  rates(processes: number, now: number): SpentRate[] {
    const { requests_per_minute: requests, tokens_per_minute: tokens } = this.limits
    const rates: SpentRate[] = []
    if (requests !== undefined) rates.push(spentOf('requests', requests, processes, this.#requests, now))
    if (tokens !== undefined) rates.push(spentOf('tokens', tokens, processes, this.#tokens, now))
    return rates
  }
}

/** Of one process. */
interface SpentRate {
  readonly name: 'requests' | 'tokens'
  /** Of all processes. */
  readonly limit: number
  readonly perMinute: number
  readonly spent: number
}

function spentOf(name: SpentRate['name'], limit: number, processes: number, bucket: Bucket, now: number): SpentRate {
  const perMinute = limit / processes
  return { name, limit, perMinute, spent: bucket.spent(perMinute, now) }
}
