import { RecentCounts } from './recent-counts.ts'

const WINDOW_MS = 30_000
const MIN_CALLS = 5
const FAILED_SHARE = 0.5
const FIRST_OPEN_MS = 5_000
const MAX_OPEN_MS = 120_000
/** When to come again while a probe is under way. */
const PROBE_MS = 1_000

/**
 * Whether calls of a (credential, model) may go out: opens when half of at least five calls of 30 s failed, then lets one
 * probe through at a time. Calls that were under way when it opened neither close it nor keep it open for longer.
 * Contract: gateway.md 4.5.
 */
export class Breaker {
  readonly #failed = new RecentCounts(WINDOW_MS)
  /** 0 while it is closed. */
  #openMs = 0
  #openUntil = 0
  #isProbing = false

  /** When it lets a call through (epoch ms); 0 while it does. */
  restsUntil(now: number): number {
    if (this.#openMs === 0) return 0
    if (this.#isProbing) return Math.max(this.#openUntil, now + PROBE_MS)
    return this.#openUntil > now ? this.#openUntil : 0
  }

  /** Whether calls failed within the window. */
  isDegraded(now: number): boolean {
    return this.#failed.at(now).some > 0
  }

  /** Tells that a call goes out. @returns whether it is the probe, for its end to say so */
  begin(): boolean {
    if (this.#openMs === 0) return false
    this.#isProbing = true
    return true
  }

  /** A call that said nothing of the provider: given up, or refused for its content. */
  forget(isProbe: boolean): void {
    if (isProbe) this.#isProbing = false
  }

  succeed(isProbe: boolean, now: number): void {
    if (isProbe) this.reset()
    this.#failed.add(now, false)
  }

  fail(isProbe: boolean, now: number): void {
    this.#failed.add(now, true)
    const { all, some } = this.#failed
    if (isProbe) this.#open(Math.min(this.#openMs * 2, MAX_OPEN_MS), now)
    else if (this.#openMs === 0 && all >= MIN_CALLS && some >= FAILED_SHARE * all) this.#open(FIRST_OPEN_MS, now)
  }

  reset(): void {
    this.#failed.clear()
    this.#openMs = 0
    this.#isProbing = false
  }

  #open(ms: number, now: number): void {
    this.#openMs = ms
    this.#openUntil = now + ms
    this.#isProbing = false
  }
}
