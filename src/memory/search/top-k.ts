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
    const worst = this.#scores[0] ?? 0
    if (this.#size < this.#k) this.#rise(this.#size++, slot, score)
    else if (score > worst || (score === worst && !this.#comesAfter(slot, this.#slots[0] ?? 0))) this.#sink(slot, score)
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

  // One loop each, without calls: until the compiler has seen hundreds of queries, these would take five times as long.

  #rise(from: number, slot: number, score: number): void {
    const scores = this.#scores
    const slots = this.#slots
    let at = from
    while (at > 0) {
      const parent = (at - 1) >>> 1
      const other = scores[parent] ?? 0
      if (score > other || (score === other && !this.#comesAfter(slot, slots[parent] ?? 0))) break
      scores[at] = other
      slots[at] = slots[parent] ?? 0
      at = parent
    }
    scores[at] = score
    slots[at] = slot
  }

  /** In place of the worst one. */
  #sink(slot: number, score: number): void {
    const scores = this.#scores
    const slots = this.#slots
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= this.#size) break
      let other = scores[child] ?? 0
      const right = child + 1 < this.#size ? (scores[child + 1] ?? 0) : Infinity
      if (right < other || (right === other && this.#comesAfter(slots[child + 1] ?? 0, slots[child] ?? 0))) {
        child++
        other = right
      }
      if (score < other || (score === other && this.#comesAfter(slot, slots[child] ?? 0))) break
      scores[at] = other
      slots[at] = slots[child] ?? 0
      at = child
    }
    scores[at] = score
    slots[at] = slot
  }
}
