/** Remembers where it stands in a roster; -1 while in none. */
export interface Listed {
  place: number
}

/**
 * Who is there, in no order. A Set would do, but for this: it leaves tables behind as it changes, and these, old and dead,
 * keep what they name alive through many collections, every request with all that it holds. That doubled the cost of a call.
 */
export class Roster<T extends Listed> {
  readonly #all: T[] = []

  get size(): number {
    return this.#all.length
  }

  add(one: T): void {
    one.place = this.#all.length
    this.#all.push(one)
  }

  /** The second time nothing happens. */
  delete(one: T): void {
    const { place } = one
    if (this.#all[place] !== one) return
    one.place = -1
    const last = this.#all.pop()
    if (last === undefined || last === one) return
    this.#all[place] = last
    last.place = place
  }

  /** From the end, so that those visited may leave. */
  each(visit: (one: T) => void): void {
    for (let i = this.#all.length - 1; i >= 0; i--) {
      const one = this.#all[i]
      if (one) visit(one)
    }
  }
}
