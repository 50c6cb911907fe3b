import type { Claimed } from '../claim.ts'

type Settle = { resolve: (claimed: Claimed | undefined) => void; reject: (error: unknown) => void }

const CLAIMS = 2
/** Fewer than that wait for the end of the one that is under way, and for others. */
const WORTH_ONE = 4
const [FEWEST, MOST] = [8, 16]

/** Half of those that wait: one group of workers is at the database while the other works. */
const groupOf = (waiting: number): number => Math.min(Math.max(Math.ceil(waiting / 2), FEWEST), MOST)

/** Claims of the workers of one pool: those that ask while others claim share the next. */
export class SharedClaims {
  readonly #claim: (count: number) => Promise<Claimed[]>
  readonly #asking: Settle[] = []
  #underWay = 0
  #isDue = false

  constructor(claim: (count: number) => Promise<Claimed[]>) {
    this.#claim = claim
  }

  /** Undefined where there is nothing to claim. */
  next(): Promise<Claimed | undefined> {
    return new Promise((resolve, reject) => {
      this.#asking.push({ resolve, reject })
      this.#start()
    })
  }

  #start(): void {
    const needed = this.#underWay === 0 ? 1 : WORTH_ONE
    if (this.#isDue || this.#underWay === CLAIMS || this.#asking.length < needed) return
    this.#isDue = true
    setImmediate(() => {
      this.#isDue = false
      this.#underWay++
      void this.#work(this.#asking.splice(0, groupOf(this.#asking.length)))
      this.#start()
    })
  }

  async #work(asking: readonly Settle[]): Promise<void> {
    try {
      const claimed = await this.#claim(asking.length)
      for (const [i, { resolve }] of asking.entries()) resolve(claimed[i])
    } catch (error) {
      for (const { reject } of asking) reject(error)
    }
    this.#underWay--
    this.#start()
  }
}
