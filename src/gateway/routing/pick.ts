/** What a pick chooses from: the order of tiers is the caller's. */
export interface Choice {
  /** Share within its tier, in thousandths; 0 follows the rest. */
  readonly weight: number
}

/** Who says which choices are available now. */
export interface Gate<T> {
  admits(choice: T): boolean
}

/**
 * Smooth weighted round-robin: at every pick each available choice gains its weight, and the highest, the one picked,
 * loses the sum. Counts of any run stay within two of their shares while the set stays. Contract: gateway.md 4.3.
 */
export class WeightedPick<T extends Choice> {
  /** Those before win a tie. */
  readonly choices: readonly T[]
  readonly #gained: Float64Array

  /** @param gained one number for each choice; picks that are to share one sequence share it */
  constructor(choices: readonly T[], gained = new Float64Array(choices.length)) {
    this.choices = choices
    this.#gained = gained
  }

  /** The next one of those available; those of weight 0 only when there is no other, in their order. */
  next(gate: Gate<T>): T | undefined {
    const { choices } = this
    const gained = this.#gained
    let total = 0
    let best = -1
    let last: T | undefined
    for (let i = 0; i < choices.length; i++) {
      const choice = choices[i]
      if (choice === undefined || !gate.admits(choice)) continue
      if (choice.weight === 0) {
        last ??= choice
        continue
      }
      total += choice.weight
      const sum = (gained[i] ?? 0) + choice.weight
      gained[i] = sum
      if (best < 0 || sum > (gained[best] ?? 0)) best = i
    }
    if (best < 0) return last
    gained[best] = (gained[best] ?? 0) - total
    return choices[best]
  }

  /** Goes on in its sequence as if so many picks had been made. */
  skip(picks: number): void {
    for (let i = 0; i < picks; i++) this.next(EVERY)
  }
}

const EVERY: Gate<unknown> = { admits: () => true }
