import type { Claimed } from '../claim.ts'

type Settle = { resolve: (claimed: Claimed | undefined) => void; reject: (error: unknown) => void }

const AT_ONCE = 16

/** Claims of the workers of one pool: those that ask while one claim is under way share the next. */
export class SharedClaims {
  readonly #claim: (count: number) => Promise<Claimed[]>
  readonly #asking: Settle[] = []
  #isUnderWay = false

  constructor(claim: (count: number) => Promise<Claimed[]>) {
    this.#claim = claim
  }

  /** Undefined where there is nothing to claim. */
  next(): Promise<Claimed | undefined> {
    return new Promise((resolve, reject) => {
      this.#asking.push({ resolve, reject })
      if (!this.#isUnderWay) void this.#work()
    })
  }

  async #work(): Promise<void> {
    this.#isUnderWay = true
    while (this.#asking.length > 0) {
      await new Promise((soon) => setImmediate(soon))
      const asking = this.#asking.splice(0, AT_ONCE)
      try {
        const claimed = await this.#claim(asking.length)
        for (const [i, { resolve }] of asking.entries()) resolve(claimed[i])
      } catch (error) {
        for (const { reject } of asking) reject(error)
      }
    }
    this.#isUnderWay = false
  }
}
