import { NO_USAGE, type Usage } from '../chat/events.ts'
import { formatUsd } from '../cost/money.ts'
import type { CostState } from '../model.ts'

/** Tokens and cost of a request over all its attempts. Contract: gateway.md 7.2. */
export class Tally {
  /** Undefined while nothing was reported or estimated. */
  usage: Usage | undefined
  /** Nano-dollars of what has a price. */
  #cost = 0n
  #isEstimated = false
  #isUnknown = false

  /** @param cost nano-dollars; undefined when a price is unknown */
  add(usage: Usage, cost: bigint | undefined, isEstimated: boolean): void {
    this.usage = this.usage ? sum(this.usage, usage) : usage
    if (cost === undefined) this.#isUnknown = true
    else this.#cost += cost
    this.#isEstimated ||= isEstimated
  }

  get tokens(): number {
    const { input, output } = this.usage ?? NO_USAGE
    return input + output
  }

  /** @param isTracked the organization's `cost_tracking` */
  cost(isTracked: boolean): { usd: string | null; state: CostState } {
    if (!isTracked) return { usd: null, state: 'disabled' }
    if (!this.usage) return { usd: null, state: 'no_usage' }
    if (this.#isUnknown) return { usd: null, state: 'unknown_price' }
    return { usd: formatUsd(this.#cost), state: this.#isEstimated ? 'estimated' : 'exact' }
  }
}

const sum = (a: Usage, b: Usage): Usage => ({
  input: a.input + b.input,
  cacheRead: a.cacheRead + b.cacheRead,
  cacheWrite: a.cacheWrite + b.cacheWrite,
  cacheWrite1h: a.cacheWrite1h + b.cacheWrite1h,
  output: a.output + b.output,
  reasoning: a.reasoning + b.reasoning,
})
