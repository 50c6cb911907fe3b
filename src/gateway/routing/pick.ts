/** What a pick chooses from: the order of tiers is the caller's. */
export interface Choice {
  readonly id: string
  /** Share within its tier, in thousandths; 0 follows the rest. */
  readonly weight: number
}

/**
 * Smooth weighted round-robin: at every pick each available choice gains its weight, and the highest, the one picked,
 * loses the sum. Counts of any run stay within two of their shares while the set stays. Contract: gateway.md 4.3.
 */
export class WeightedPick<T extends Choice> {
  readonly #choices: readonly T[]
  readonly #gained: Float64Array

  /** @param turn where in its sequence it begins, a whole number. */
  constructor(choices: readonly T[], turn = 0) {
    this.#choices = choices
    this.#gained = new Float64Array(choices.length)
    for (let i = 0; i < turn; i++) this.next(() => true)
  }

  /** The next one of those available; those of weight 0 only when there is no other, in their order. */
  next(isAvailable: (choice: T) => boolean): T | undefined {
    let total = 0
    let best = -1
    let last: T | undefined
    for (const [i, choice] of this.#choices.entries()) {
      if (!isAvailable(choice)) continue
      if (choice.weight === 0) {
        last ??= choice
        continue
      }
      total += choice.weight
      const gained = (this.#gained[i] ?? 0) + choice.weight
      this.#gained[i] = gained
      if (best < 0 || gained > (this.#gained[best] ?? 0)) best = i
    }
    if (best < 0) return last
    this.#gained[best] = (this.#gained[best] ?? 0) - total
    return this.#choices[best]
  }
}
