import { CodeMemory } from './code-memory.ts'
import { type Codes, finest, measure, quantized, refuseDimension } from './codes.ts'
import { type Ranked, TopK } from './top-k.ts'

/** Rows of a block: of each column they lie side by side. */
const ROWS = 128
/** Addresses. A term takes 8 bytes: at most 32 KiB. */
const TERMS = 0
const SUMS = 32_768
const BLOCKS = 65_536

type Accumulate = (block: number, terms: number, end: number, sums: number) => unknown

/**
 * The same as `VectorCodes`, for vectors of which a query has few values other than zero, as those of a hashing embedder:
 * codes lie column by column, and only the columns that a query names are read. Measured on one core, for three words of 1024
 * values: 0.21 ms over 10,000 instead of 0.95, 5 over 200,000 instead of 34; for twenty words 22.
 */
export class ColumnCodes implements Codes {
  readonly #dimension: number
  readonly #blockBytes: number
  /** By slot: what makes a sum of products a cosine, but for the query's part; 0 where there is no vector. */
  #scales = new Float32Array(0)
  #end = 0
  readonly #memory: CodeMemory
  #accumulate: Accumulate | undefined
  #bytes = new Int8Array(0)
  #terms = new Int32Array(0)
  #sums = new Int32Array(0)
  /** By slot, of the query that all slots were scored for last: what is around its best is asked for next. */
  #scores = new Float32Array(0)
  #scored: Float32Array | undefined

  /** @throws RangeError when `dimension` is not in 1 to 4096 */
  constructor(dimension: number) {
    refuseDimension(dimension)
    this.#memory = new CodeMemory(`vectors of ${dimension} values`)
    this.#dimension = dimension
    this.#blockBytes = ROWS * dimension
  }

  put(slot: number, vector: Float32Array): void {
    const { largest, norm } = measure(vector, this.#dimension)
    this.clear(slot)
    if (norm === 0) return
    this.#scored = undefined
    this.#reserve(slot)
    this.#end = Math.max(this.#end, slot + 1)
    const factor = 127 / largest
    const at = this.#address(slot)
    for (let column = 0; column < vector.length; column++) {
      const code = quantized((vector[column] ?? 0) * factor)
      if (code !== 0) this.#bytes[at + column * ROWS] = code
    }
    this.#scales[slot] = 1 / (factor * norm)
  }

  clear(slot: number): void {
    if (!this.has(slot)) return
    const at = this.#address(slot)
    for (let column = 0; column < this.#dimension; column++) this.#bytes[at + column * ROWS] = 0
    this.#scales[slot] = 0
  }

  has(slot: number): boolean {
    return (this.#scales[slot] ?? 0) !== 0
  }

  top(query: Float32Array, k: number, mask?: Uint8Array): Ranked {
    const best = new TopK(k)
    this.#scored = undefined
    const { factor, terms } = this.#load(query)
    if (terms === 0) return best.ranked()
    const scales = this.#scales
    const sums = this.#sums
    const all = this.#scores
    let allowed = 0
    for (let from = 0, block = BLOCKS; from < this.#end; from += ROWS, block += this.#blockBytes) {
      if (mask && allowed <= from) allowed = mask.indexOf(1, from)
      if (allowed < 0) break
      if (allowed >= from + ROWS) continue
      this.#accumulate?.(block, TERMS, TERMS + 8 * terms, SUMS)
      const end = Math.min(this.#end - from, ROWS)
      for (let row = 0; row < end; row++) {
        const scale = scales[from + row] ?? 0
        const score = scale === 0 ? -Infinity : cosine(scale, factor, sums[row] ?? 0)
        all[from + row] = score
        if (score > best.floor && (!mask || mask[from + row] === 1)) best.push(from + row, score)
      }
    }
    if (!mask) this.#scored = query
    return best.ranked()
  }

  scoreAt(slots: Uint32Array, query: Float32Array): Float32Array {
    if (query === this.#scored) return this.#known(slots)
    const { factor, terms } = this.#load(query)
    const scores = new Float32Array(slots.length).fill(-Infinity)
    if (terms === 0) return scores
    const weights = this.#terms
    const bytes = this.#bytes
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i] ?? 0
      const scale = this.#scales[slot] ?? 0
      if (scale === 0) continue
      const at = this.#address(slot)
      let sum = 0
      for (let term = 0; term < 2 * terms; term += 2) {
        sum += (bytes[at + (weights[term] ?? 0)] ?? 0) * (weights[term + 1] ?? 0)
      }
      scores[i] = cosine(scale, factor, sum)
    }
    return scores
  }

  #known(slots: Uint32Array): Float32Array {
    const scores = new Float32Array(slots.length)
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i] ?? 0
      scores[i] = this.has(slot) ? (this.#scores[slot] ?? 0) : -Infinity
    }
    return scores
  }

  /** Brings what the query names to where the kernel reads it. No terms when nothing can be a hit. */
  #load(query: Float32Array): { factor: number; terms: number } {
    const { largest, norm } = measure(query, this.#dimension)
    if (norm === 0 || this.#memory.byteLength === 0) return { factor: 0, terms: 0 }
    const factor = finest(this.#dimension) / largest
    let terms = 0
    for (let column = 0; column < query.length; column++) {
      const weight = quantized((query[column] ?? 0) * factor)
      if (weight === 0) continue
      this.#terms[2 * terms] = column * ROWS
      this.#terms[2 * terms + 1] = weight
      terms++
    }
    return { factor: 1 / (factor * norm), terms }
  }

  /** Of the slot's code in the first column. */
  #address(slot: number): number {
    return BLOCKS + Math.floor(slot / ROWS) * this.#blockBytes + (slot % ROWS)
  }

  #reserve(slot: number): void {
    const grew = this.#memory.reserve(BLOCKS + (Math.floor(slot / ROWS) + 1) * this.#blockBytes)
    if (slot >= this.#scales.length) {
      const scales = new Float32Array(Math.ceil((slot + 1) * 1.5))
      scales.set(this.#scales)
      this.#scales = scales
      this.#scores = new Float32Array(scales.length)
    }
    const { buffer } = this.#memory
    if (!grew || !buffer) return
    this.#accumulate = this.#memory.kernel('accumulate')
    this.#bytes = new Int8Array(buffer)
    this.#terms = new Int32Array(buffer, TERMS, 2 * this.#dimension)
    this.#sums = new Int32Array(buffer, SUMS, ROWS)
  }
}

/** In 32 bits, so that it is the same wherever it is told. */
const cosine = (scale: number, factor: number, sum: number): number => Math.fround(Math.fround(scale * factor) * sum)
