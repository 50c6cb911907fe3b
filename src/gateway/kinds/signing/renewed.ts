import { backOff } from '../../../base/back-off.ts'
import type { Clock } from '../../../base/clock.ts'
import { errorText } from '../../../base/errors.ts'
import type { Logger } from '../../../platform/ports.ts'

/** Something that holds for a time. */
export interface Lease<T> {
  readonly value: T
  /** Epoch ms. */
  readonly endsAt: number
}

export interface RenewalParts {
  readonly clock: Clock
  readonly random: () => number
  readonly log: Logger
}

const EARLY_MS = 5 * 60_000
const RETRY_MS = 1000
const RETRY_MOST_MS = 60_000
const MOST_KEPT = 10_000

/**
 * Keeps something that holds for a time: asked for when first needed, and again 5 min before its end, or half-way when
 * it holds for less than ten; by one call however many need it. What holds is used while its successor is on the way.
 */
export class Renewed<T> {
  readonly #parts: RenewalParts
  readonly #what: string
  readonly #obtain: () => Promise<Lease<T>>
  #lease: (Lease<T> & { readonly renewAt: number }) | undefined
  #running: Promise<T> | undefined
  #failures = 0
  #retryAt = 0

  /** @param what for the log */
  constructor(parts: RenewalParts, what: string, obtain: () => Promise<Lease<T>>) {
    this.#parts = parts
    this.#what = what
    this.#obtain = obtain
  }

  /** @throws what obtaining throws, when there is nothing that holds */
  get(): T | Promise<T> {
    const lease = this.#lease
    const now = this.#parts.clock.now()
    if (lease && now < lease.renewAt) return lease.value
    if (!lease || now >= lease.endsAt) return this.#renew()
    if (!this.#running && now >= this.#retryAt) this.#renew().catch((error: unknown) => this.#putOff(error))
    return lease.value
  }

  #renew(): Promise<T> {
    this.#running ??= this.#take().finally(() => (this.#running = undefined))
    return this.#running
  }

  async #take(): Promise<T> {
    const { value, endsAt } = await this.#obtain()
    const now = this.#parts.clock.now()
    this.#lease = { value, endsAt, renewAt: endsAt - Math.min(EARLY_MS, Math.max(0, endsAt - now) / 2) }
    this.#failures = 0
    return value
  }

  #putOff(error: unknown): void {
    const { clock, random, log } = this.#parts
    this.#failures++
    this.#retryAt = clock.now() + backOff(this.#failures, RETRY_MS, RETRY_MOST_MS, random)
    log.warn({ what: this.#what, reason: errorText(error) }, 'an early renewal failed; the old one is used to its end')
  }
}

/** Makes one for each key, and keeps so many: the one made first goes first. */
export class Renewals<T> {
  readonly #parts: RenewalParts
  readonly #kept = new Map<string, Renewed<T>>()

  constructor(parts: RenewalParts) {
    this.#parts = parts
  }

  of(key: string, what: string, obtain: () => Promise<Lease<T>>): Renewed<T> {
    const known = this.#kept.get(key)
    if (known) return known
    const renewed = new Renewed(this.#parts, what, obtain)
    this.#kept.set(key, renewed)
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MOST_KEPT) break
      this.#kept.delete(oldest)
    }
    return renewed
  }
}
