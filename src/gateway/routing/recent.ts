/** The values of the keys asked for of late: between `size` and twice as many, at the price of a look-up. */
export class Recent<K, V> {
  readonly #size: number
  #young = new Map<K, V>()
  #old = new Map<K, V>()

  constructor(size: number) {
    this.#size = size
  }

  get(key: K): V | undefined {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const old = this.#old.get(key)
    if (old !== undefined) this.set(key, old)
    return old
  }

  set(key: K, value: V): void {
    if (this.#young.size >= this.#size) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, value)
  }

  delete(key: K): void {
    this.#young.delete(key)
    this.#old.delete(key)
  }

  /** Every value that is kept, the young ones first. */
  *entries(): Generator<[K, V]> {
    yield* this.#young
    for (const entry of this.#old) if (!this.#young.has(entry[0])) yield entry
  }
}
