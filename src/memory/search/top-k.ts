export interface Ranked {
  /** What was pushed: slots, or other numbers. */
  slots: Uint32Array
  /** Best first. */
  scores: Float32Array
}

/** Keeps the k best of a stream, of equal scores those with the lower number. A heap with the worst one on top. */
export class TopK {
  /** What is below it cannot get in: ask before `push`, then most of a stream costs one comparison. */
  floor = -Infinity
  readonly #k: number
  readonly #comesAfter: (a: number, b: number) => boolean
  /** In the order of the heap. */
  readonly #scores: Float32Array
  readonly #slots: Uint32Array
  #size = 0

  /**
   * @param k at least 1
   * @param comesAfter another order of equal scores
   */
  constructor(k: number, comesAfter = (a: number, b: number): boolean => a > b) {
    this.#k = k
    this.#comesAfter = comesAfter
    this.#scores = new Float32Array(k)
    this.#slots = new Uint32Array(k)
  }

  push(slot: number, score: number): void {
    if (this.#size < this.#k) this.#rise(this.#size++, slot, score)
    else if (!this.#isWorse(slot, score, 0)) this.#sink(slot, score)
    if (this.#size === this.#k) this.floor = this.#scores[0] ?? 0
  }

  /** All that were kept; it is empty then. */
  ranked(): Ranked {
    const slots = new Uint32Array(this.#size)
    const scores = new Float32Array(this.#size)
    while (this.#size > 0) {
      const last = --this.#size
      slots[last] = this.#slots[0] ?? 0
      scores[last] = this.#scores[0] ?? 0
      this.#sink(this.#slots[last] ?? 0, this.#scores[last] ?? 0)
    }
    this.floor = -Infinity
    return { slots, scores }
  }

  /** Whether one is to leave before another. */
  #isWorse(slot: number, score: number, at: number): boolean {
    const other = this.#scores[at] ?? 0
    return score < other || (score === other && this.#comesAfter(slot, this.#slots[at] ?? 0))
  }

  #rise(from: number, slot: number, score: number): void {
    let at = from
    while (at > 0) {
      const parent = (at - 1) >>> 1
      if (!this.#isWorse(slot, score, parent)) break
      this.#move(parent, at)
      at = parent
    }
    this.#set(at, slot, score)
  }

  /** In place of the worst one. */
  #sink(slot: number, score: number): void {
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= this.#size) break
      const right = child + 1
      if (right < this.#size && this.#isWorse(this.#slots[right] ?? 0, this.#scores[right] ?? 0, child)) child = right
      if (this.#isWorse(slot, score, child)) break
      this.#move(child, at)
      at = child
    }
    this.#set(at, slot, score)
  }

  #move(from: number, to: number): void {
    this.#set(to, this.#slots[from] ?? 0, this.#scores[from] ?? 0)
  }

  #set(at: number, slot: number, score: number): void {
    this.#scores[at] = score
    this.#slots[at] = slot
  }
}
