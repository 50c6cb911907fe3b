export interface Ranked {
  slots: Uint32Array
  /** Best first. */
  scores: Float32Array
}

/** Keeps the k best of a stream; of equal scores those that came first. */
export class TopK {
  /** What does not exceed it cannot get in: ask before `push`, then most of a stream costs one comparison. */
  floor = -Infinity
  readonly #k: number
  #kept: { slot: number; score: number }[] = []

  /** @param k at least 1 */
  constructor(k: number) {
    this.#k = k
  }

  push(slot: number, score: number): void {
    this.#kept.push({ slot, score })
    if (this.#kept.length >= 2 * this.#k) this.#cut()
  }

  ranked(): Ranked {
    this.#cut()
    return {
      slots: Uint32Array.from(this.#kept, ({ slot }) => slot),
      scores: Float32Array.from(this.#kept, ({ score }) => score),
    }
  }

  #cut(): void {
    this.#kept = this.#kept.sort((a, b) => b.score - a.score).slice(0, this.#k)
    if (this.#kept.length === this.#k) this.floor = this.#kept.at(-1)?.score ?? -Infinity
  }
}
