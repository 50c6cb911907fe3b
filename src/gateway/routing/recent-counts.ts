const SLOTS = 10

/** How many things happened of late, and how many of them were of one sort: a window that slides by tenths. */
export class RecentCounts {
  readonly #slotMs: number
  readonly #all = new Uint32Array(SLOTS)
  readonly #some = new Uint32Array(SLOTS)
  #slot = 0
  /** In the window that ended with the last call of `at` or `add`. */
  all = 0
  some = 0

  constructor(windowMs: number) {
    this.#slotMs = windowMs / SLOTS
  }

  add(now: number, isOfTheSort: boolean): void {
    this.at(now)
    const i = this.#slot % SLOTS
    this.#all[i] = (this.#all[i] ?? 0) + 1
    this.all++
    if (!isOfTheSort) return
    this.#some[i] = (this.#some[i] ?? 0) + 1
    this.some++
  }

  /** Forgets what lies longer ago than the window. */
  at(now: number): this {
    const slot = Math.floor(now / this.#slotMs)
    for (let passed = Math.max(this.#slot + 1, slot - SLOTS + 1); passed <= slot; passed++) this.#empty(passed % SLOTS)
    this.#slot = Math.max(this.#slot, slot)
    return this
  }

  clear(): void {
    for (let i = 0; i < SLOTS; i++) this.#empty(i)
  }

  #empty(i: number): void {
    this.all -= this.#all[i] ?? 0
    this.some -= this.#some[i] ?? 0
    this.#all[i] = 0
    this.#some[i] = 0
  }
}
