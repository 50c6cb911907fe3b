/** Runs functions of one key one after the other; those of different keys side by side. */
export class KeyedMutex {
  readonly #tails = new Map<string, Promise<unknown>>()

  /** Whether one that is run now would wait. */
  isTaken(key: string): boolean {
    return this.#tails.has(key)
  }

  async run<T>(key: string, fn: () => Promise<T>): Promise<T> {
    const before = this.#tails.get(key)
    const mine = (before ?? Promise.resolve()).then(fn, fn)
    this.#tails.set(key, mine)
    try {
      return await mine
    } finally {
      if (this.#tails.get(key) === mine) this.#tails.delete(key)
    }
  }
}
