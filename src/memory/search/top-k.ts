export interface Ranked {
  slots: Uint32Array
  /** Best first. */
  scores: Float32Array
}

/** Keeps the k best of a stream; of equal scores those that came first. A heap with the worst one on top. */
export class TopK {
  /** What does not exceed it cannot get in: ask before `push`, then most of a stream costs one comparison. */
  floor = -Infinity
  readonly #k: number
  /** In the order of the heap; `#turns` tells the order in which they came. */
  readonly #scores: Float32Array
  readonly #slots: Uint32Array
  readonly #turns: Uint32Array
  #size = 0
  #pushed = 0

  /** @param k at least 1 */
  constructor(k: number) {
    this.#k = k
    this.#scores = new Float32Array(k)
    this.#slots = new Uint32Array(k)
    this.#turns = new Uint32Array(k)
  }

  /** The lowest score kept; -Infinity while there is none. */
  get worst(): number {
    return this.#size === 0 ? -Infinity : (this.#scores[0] ?? 0)
  }

  push(slot: number, score: number): void {
    const turn = this.#pushed++
    if (this.#size < this.#k) this.#rise(this.#size++, slot, score, turn)
    else this.#sink(slot, score, turn)
    if (this.#size === this.#k) this.floor = this.worst
  }

  ranked(): Ranked {
    const scores = this.#scores
    const turns = this.#turns
    const order = Array.from({ length: this.#size }, (_, i) => i).sort(
      (a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || (turns[a] ?? 0) - (turns[b] ?? 0),
    )
    return {
      slots: Uint32Array.from(order, (i) => this.#slots[i] ?? 0),
      scores: Float32Array.from(order, (i) => scores[i] ?? 0),
    }
  }

  /** Whether one is to leave before another. */
  #isWorse(score: number, turn: number, at: number): boolean {
    const other = this.#scores[at] ?? 0
    return score < other || (score === other && turn > (this.#turns[at] ?? 0))
  }

  #rise(from: number, slot: number, score: number, turn: number): void {
    let at = from
    while (at > 0) {
      const parent = (at - 1) >>> 1
      if (!this.#isWorse(score, turn, parent)) break
      this.#move(parent, at)
      at = parent
    }
    this.#set(at, slot, score, turn)
  }

  /** In place of the worst one. */
  #sink(slot: number, score: number, turn: number): void {
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= this.#size) break
      const right = child + 1
      if (right < this.#size && this.#isWorse(this.#scores[right] ?? 0, this.#turns[right] ?? 0, child)) child = right
      if (this.#isWorse(score, turn, child)) break
      this.#move(child, at)
      at = child
    }
    this.#set(at, slot, score, turn)
  }

  #move(from: number, to: number): void {
    this.#set(to, this.#slots[from] ?? 0, this.#scores[from] ?? 0, this.#turns[from] ?? 0)
  }

  #set(at: number, slot: number, score: number, turn: number): void {
    this.#scores[at] = score
    this.#slots[at] = slot
    this.#turns[at] = turn
  }
}
