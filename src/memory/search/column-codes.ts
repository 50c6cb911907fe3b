import { CodeMemory } from './code-memory.ts'
import { type Codes, finest, measure, quantized, refuseDimension } from './codes.ts'
import { type Ranked, TopK } from './top-k.ts'

/** Rows of a block: of each column they lie side by side, behind a scale and a score of each row. */
const ROWS = 128
const COLUMNS = 8 * ROWS
/** Addresses. Two columns of a query take 12 bytes: at most 24 KiB. */
const TERMS = 0
const TERM_BYTES = 12
const FOUND = 32_768
const BLOCKS = 65_536

type Scan = (
  block: number,
  terms: number,
  end: number,
  factor: number,
  floor: number,
  found: number,
) => number | undefined

/** A query as the kernel reads it. */
interface Loaded {
  factor: number
  /** Where its terms end: `TERMS` when nothing can be a hit. */
  end: number
}

/**
 * The same as `VectorCodes`, for vectors of which a query has few values other than zero, as those of a hashing embedder:
 * codes lie column by column, and only the columns that a query names are read. Measured on one core, for three words of 1024
 * values: 0.13 ms over 10,000 instead of 0.95.
 */
export class ColumnCodes implements Codes {
  readonly #dimension: number
  readonly #blockBytes: number
  #end = 0
  readonly #memory: CodeMemory
  #scan: Scan | undefined
  #bytes = new Int8Array(0)
  #terms = new Int32Array(0)
  #found = new Uint8Array(0)
  /** Of each block: what makes the rows' sums of products cosines, but for the query's part (0 = no vector); then scores. */
  #floats = new Float32Array(0)
  /** Of which the scores in the blocks are: what is around its best is asked for next. */
  #scored: Float32Array | undefined

  /** @throws RangeError when `dimension` is not in 1 to 4096 */
  constructor(dimension: number) {
    refuseDimension(dimension)
    this.#memory = new CodeMemory(`vectors of ${dimension} values`)
    this.#dimension = dimension
    this.#blockBytes = COLUMNS + ROWS * dimension
  }

  put(slot: number, vector: Float32Array): void {
    const { largest, norm } = measure(vector, this.#dimension)
    this.clear(slot)
    if (norm === 0) return
    this.#scored = undefined
    this.#reserve(slot)
    this.#end = Math.max(this.#end, slot + 1)
    const factor = 127 / largest
    const at = this.#block(slot) + COLUMNS + (slot % ROWS)
    for (let column = 0; column < vector.length; column++) {
      const code = quantized((vector[column] ?? 0) * factor)
      if (code !== 0) this.#bytes[at + column * ROWS] = code
    }
    this.#floats[this.#scaleAt(slot)] = 1 / (factor * norm)
  }

  clear(slot: number): void {
    if (!this.has(slot)) return
    const at = this.#block(slot) + COLUMNS + (slot % ROWS)
    for (let column = 0; column < this.#dimension; column++) this.#bytes[at + column * ROWS] = 0
    this.#floats[this.#scaleAt(slot)] = 0
  }

  has(slot: number): boolean {
    return slot < this.#end && this.#floats[this.#scaleAt(slot)] !== 0
  }

  top(query: Float32Array, k: number, mask?: Uint8Array): Ranked {
    const best = new TopK(k)
    const { factor, end } = this.#load(query)
    this.#scored = undefined
    const found = this.#found
    let allowed = 0
    for (let from = 0; end > TERMS && from < this.#end; from += ROWS) {
      if (mask && allowed <= from) allowed = mask.indexOf(1, from)
      if (allowed < 0) break
      if (allowed >= from + ROWS) continue
      const count = this.#scan?.(this.#block(from), TERMS, end, factor, best.floor, FOUND) ?? 0
      const scores = this.#scaleAt(from) + ROWS
      for (let i = 0; i < count; i++) {
        const row = found[i] ?? 0
        const score = this.#floats[scores + row] ?? 0
        if (score > best.floor && (!mask || mask[from + row] === 1)) best.push(from + row, score)
      }
    }
    if (!mask && end > TERMS) this.#scored = query
    return best.ranked()
  }

  scoreAt(slots: Uint32Array, query: Float32Array): Float32Array {
    const scores = new Float32Array(slots.length).fill(-Infinity)
    const isKnown = query === this.#scored
    const loaded = isKnown ? { factor: 0, end: TERMS } : this.#load(query)
    if (!isKnown && loaded.end === TERMS) return scores
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i] ?? 0
      if (!this.has(slot)) continue
      scores[i] = isKnown ? (this.#floats[this.#scaleAt(slot) + ROWS] ?? 0) : this.#cosine(slot, loaded)
    }
    return scores
  }

  /** In 32 bits, as the kernel does it. */
  #cosine(slot: number, { factor, end }: Loaded): number {
    const terms = this.#terms
    const at = this.#block(slot) + (slot % ROWS)
    let sum = 0
    for (let term = TERMS / 4; term < end / 4; term += 3) {
      const weights = terms[term + 2] ?? 0
      sum += (this.#bytes[at + (terms[term] ?? 0)] ?? 0) * ((weights << 16) >> 16)
      sum += (this.#bytes[at + (terms[term + 1] ?? 0)] ?? 0) * (weights >> 16)
    }
    return Math.fround(Math.fround((this.#floats[this.#scaleAt(slot)] ?? 0) * Math.fround(factor)) * Math.fround(sum))
  }

  /** Brings what the query names to where the kernel reads it, two columns at a time. */
  #load(query: Float32Array): Loaded {
    const { largest, norm } = measure(query, this.#dimension)
    if (norm === 0 || this.#memory.byteLength === 0) return { factor: 0, end: TERMS }
    const factor = finest(this.#dimension) / largest
    const terms = this.#terms
    let count = 0
    for (let column = 0; column < query.length; column++) {
      const weight = quantized((query[column] ?? 0) * factor)
      if (weight === 0) continue
      const at = 3 * (count >>> 1)
      const offset = COLUMNS + column * ROWS
      if (count++ % 2 === 1) {
        terms[at + 1] = offset
        terms[at + 2] = (terms[at + 2] ?? 0) | (weight << 16)
      } else {
        terms[at] = offset
        terms[at + 1] = offset
        terms[at + 2] = weight & 0xffff
      }
    }
    return { factor: 1 / (factor * norm), end: TERMS + TERM_BYTES * Math.ceil(count / 2) }
  }

  /** Address of the slot's block. */
  #block(slot: number): number {
    return BLOCKS + Math.floor(slot / ROWS) * this.#blockBytes
  }

  /** Where the slot's scale is among the floats. */
  #scaleAt(slot: number): number {
    return this.#block(slot) / 4 + (slot % ROWS)
  }

  #reserve(slot: number): void {
    const grew = this.#memory.reserve(this.#block(slot) + this.#blockBytes)
    const { buffer } = this.#memory
    if (!grew || !buffer) return
    this.#scan = this.#memory.kernel('scan')
    this.#bytes = new Int8Array(buffer)
    this.#floats = new Float32Array(buffer)
    this.#terms = new Int32Array(buffer, TERMS, FOUND / 4)
    this.#found = new Uint8Array(buffer, FOUND, ROWS)
  }
}
