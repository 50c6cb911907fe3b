import type { Clock } from '../base/clock.ts'
import { networkOf } from '../base/network.ts'

/** Wrong keys that an address may send before it has to wait: people mistype. */
const FREE = 5
const WAIT_MS = { first: 1000, most: 15 * 60_000 }
/** An address that was quiet for so long starts anew. */
const FORGET_MS = 60 * 60_000
/** Addresses known at once; the one that failed longest ago makes room. */
const ADDRESSES_MAX = 10_000
/** Wrong keys a minute of all addresses together: one guesser has many. Who is signed in is not held up. */
const TOGETHER = { most: 100, ms: 60_000 }

interface Failures {
  count: number
  lastAt: number
}

/** Slows down who guesses keys at the sign-in: twice the wait after each wrong one, by address and for all together. */
export class SignInBrake {
  readonly #clock: Clock
  /** The longest quiet first. */
  readonly #byAddress = new Map<string, Failures>()
  #together = { count: 0, since: 0 }

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Milliseconds until this address may try again; 0 = now. */
  waitMs(address: string): number {
    const now = this.#clock.now()
    const { count = 0, lastAt = 0 } = this.#byAddress.get(networkOf(address)) ?? {}
    const own = count < FREE ? 0 : lastAt + Math.min(WAIT_MS.first * 2 ** (count - FREE), WAIT_MS.most) - now
    const common = this.#together.count < TOGETHER.most ? 0 : this.#together.since + TOGETHER.ms - now
    return Math.max(0, own, common)
  }

  failed(address: string): void {
    const now = this.#clock.now()
    if (now - this.#together.since >= TOGETHER.ms) this.#together = { count: 0, since: now }
    this.#together.count++
    const network = networkOf(address)
    const known = this.#byAddress.get(network)
    const count = known && now - known.lastAt < FORGET_MS ? known.count : 0
    this.#byAddress.delete(network)
    this.#byAddress.set(network, { count: count + 1, lastAt: now })
    const [oldest] = this.#byAddress.keys()
    if (this.#byAddress.size > ADDRESSES_MAX && oldest !== undefined) this.#byAddress.delete(oldest)
  }

  succeeded(address: string): void {
    this.#byAddress.delete(networkOf(address))
  }
}
