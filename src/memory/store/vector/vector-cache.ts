/** What the vectors of some 17,000 short texts take. */
const MAX_BYTES = 16 * 1024 * 1024
const FIRST_BYTES = 64 * 1024
const LENGTH_BYTES = 4

/**
 * Bytes of vectors by Cell, those put last, so that a search that scores its candidates again reads no rows. A ring that
 * grows to its limit: there the new take the place of the oldest.
 */
export class VectorCache {
  readonly #maxBytes: number
  #bytes = new Uint8Array(0)
  /** The same, four at a time. */
  #lengths = new Uint32Array(0)
  /** Where the bytes of a Cell begin, behind their length; the oldest first. */
  readonly #starts = new Map<number, number>()
  #next = 0

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes
  }

  /** Good until the next one is put. */
  get(cellNo: number): Uint8Array | undefined {
    const start = this.#starts.get(cellNo)
    if (start === undefined) return undefined
    const from = start + LENGTH_BYTES
    return this.#bytes.subarray(from, from + (this.#lengths[start / 4] ?? 0))
  }

  /** Nothing happens for a Cell that is there: its text, and so its vector, never changes. */
  put(cellNo: number, vector: Uint8Array): void {
    // Floats are read in place, and must begin at a multiple of four.
    const size = LENGTH_BYTES + 4 * Math.ceil(vector.length / 4)
    if (this.#starts.has(cellNo) || size > this.#maxBytes) return
    this.#reserve(size)
    for (const [oldest, start] of this.#starts) {
      if (start < this.#next || start >= this.#next + size) break
      this.#starts.delete(oldest)
    }
    this.#lengths[this.#next / 4] = vector.length
    this.#bytes.set(vector, this.#next + LENGTH_BYTES)
    this.#starts.set(cellNo, this.#next)
    this.#next += size
  }

  /** Makes room at `next`: by growing, else by going back to the beginning. */
  #reserve(size: number): void {
    const end = this.#next + size
    if (end <= this.#bytes.length) return
    if (end <= this.#maxBytes) {
      const grown = new Uint8Array(Math.min(this.#maxBytes, Math.max(FIRST_BYTES, Math.ceil((1.5 * end) / 4) * 4)))
      grown.set(this.#bytes)
      this.#bytes = grown
      this.#lengths = new Uint32Array(grown.buffer, 0, grown.length >>> 2)
      return
    }
    // What lies behind is the oldest, and the first to go.
    for (const [oldest, start] of this.#starts) {
      if (start < this.#next) break
      this.#starts.delete(oldest)
    }
    this.#next = 0
  }
}
