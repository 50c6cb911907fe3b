import type { Clock } from '../../base/clock.ts'

const WINDOW_MS = 30_000
const SLOTS = 10
const MIN_CALLS = 5
const FAILED_SHARE = 0.5
const FIRST_OPEN_MS = 5_000
const MAX_OPEN_MS = 120_000

/**
 * Whether calls of a (credential, model) may go out: opens when half of at least five calls of 30 s failed, then lets one
 * probe through at a time. Contract: gateway.md 4.5.
 */
export class Breaker {
  readonly #clock: Clock
  readonly #calls = new Uint32Array(SLOTS)
  readonly #failed = new Uint32Array(SLOTS)
  /** The slot of time that the counts end with. */
  #slot = 0
  #openMs = 0
  #openUntil = 0
  #probing = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** When it lets calls through again; undefined while it does. */
  get openUntil(): number | undefined {
    if (this.#openMs === 0) return undefined
    return this.#probing || this.#openUntil > this.#clock.now() ? this.#openUntil : undefined
  }

  /** Tells that a call goes out; of an open breaker it is the probe. */
  begin(): void {
    if (this.#openMs > 0) this.#probing = true
  }

  /** A call that said nothing of the provider: given up, refused for its content. */
  forget(): void {
    this.#probing = false
  }

  succeed(): void {
    if (this.#openMs > 0) {
      this.#calls.fill(0)
      this.#failed.fill(0)
    }
    this.#openMs = 0
    this.#probing = false
    increment(this.#calls, this.#now())
  }

  fail(): void {
    const slot = this.#now()
    increment(this.#calls, slot)
    increment(this.#failed, slot)
    if (this.#openMs > 0) this.#open(Math.min(this.#openMs * 2, MAX_OPEN_MS))
    else if (sum(this.#calls) >= MIN_CALLS && sum(this.#failed) >= FAILED_SHARE * sum(this.#calls)) {
      this.#open(FIRST_OPEN_MS)
    }
  }

  #open(ms: number): void {
    this.#openMs = ms
    this.#openUntil = this.#clock.now() + ms
    this.#probing = false
  }

  /** The slot of now; those that time has passed since are emptied. */
  #now(): number {
    const slot = Math.floor(this.#clock.now() / (WINDOW_MS / SLOTS))
    for (let passed = Math.max(this.#slot + 1, slot - SLOTS + 1); passed <= slot; passed++) {
      this.#calls[passed % SLOTS] = 0
      this.#failed[passed % SLOTS] = 0
    }
    this.#slot = Math.max(this.#slot, slot)
    return slot % SLOTS
  }
}

const increment = (counts: Uint32Array, slot: number): void => {
  counts[slot] = (counts[slot] ?? 0) + 1
}

const sum = (counts: Uint32Array): number => counts.reduce((total, count) => total + count, 0)
