import { CodeMemory } from './code-memory.ts'
import { type Ranked, TopK } from './top-k.ts'

/** Rows a call of the kernel: its lists stay in the processor's caches, and everything before ROWS in the first page. */
const BLOCK = 2_048
/** Addresses. The query takes two bytes for each of a row: at most 8,224. */
const QUERY = 0
const SLOTS = 16_384
const SCORES = SLOTS + 4 * BLOCK
const ROWS = SCORES + 4 * BLOCK

type Kernel = (
  rows: number,
  stride: number,
  query: number,
  factor: number,
  slots: number,
  count: number,
  scores: number,
) => unknown

/**
 * Vectors as int8 codes by slot, and an exact scan over them. Scores are cosines, off by some 0.005: take four times what
 * is wanted and score those again with the vectors. A vector of zeros is none: it empties its slot.
 */
export interface Codes {
  /** Keeps the direction of `vector`. @throws RangeError on another dimension, or when 4 GiB are full */
  put(slot: number, vector: Float32Array): void
  clear(slot: number): void
  has(slot: number): boolean
  /**
   * The k best slots, fewer if there are no more; of equal scores the lower slot first.
   * @param mask 1 at each slot that may be a hit
   */
  top(query: Float32Array, k: number, mask?: Uint8Array): Ranked
  /** Scores of these slots, in their order: -Infinity where there is no vector, everywhere if the query is zero. */
  scoreAt(slots: Uint32Array, query: Float32Array): Float32Array
}

/**
 * Codes row by row, with one scale each. Holds up to 4 GiB (4,129,000 vectors of 1024 values), and nothing while empty.
 * Contract: memory.md 6.1, 9.1.
 *
 * Measured on one core: 0.4 ms over 10,000 x 1024, 4 over 100,000, 39 over 1,000,000. Two threads at once, on two cores, took
 * twice as long each, so there is one.
 */
export class VectorCodes implements Codes {
  readonly dimension: number
  readonly #stride: number
  /** Past the highest slot ever filled. The row there is in memory and empty: all slots beyond read as it. */
  #end = 0
  readonly #memory: CodeMemory
  #kernel: Kernel | undefined
  #bytes = new Int8Array(0)
  #floats = new Float32Array(0)
  #slots = new Uint32Array(0)
  #scores = new Float32Array(0)

  /** @throws RangeError when `dimension` is not in 1 to 4096 */
  constructor(dimension: number) {
    refuseDimension(dimension)
    this.dimension = dimension
    this.#memory = new CodeMemory(`vectors of ${dimension} values`)
    this.#stride = 16 * Math.ceil((dimension + 4) / 16)
  }

  /** Of the memory held. */
  get byteLength(): number {
    return this.#memory.byteLength
  }

  put(slot: number, vector: Float32Array): void {
    const { largest, norm } = measure(vector, this.dimension)
    if (norm === 0) return this.clear(slot)
    this.#reserve(slot + 2)
    this.#end = Math.max(this.#end, slot + 1)
    const factor = 127 / largest
    quantize(vector, factor, this.#bytes, this.#address(slot))
    this.#floats[this.#address(slot + 1) / 4 - 1] = 1 / (factor * norm)
  }

  clear(slot: number): void {
    if (slot < this.#end) this.#bytes.fill(0, this.#address(slot), this.#address(slot + 1))
  }

  has(slot: number): boolean {
    return slot < this.#end && this.#floats[this.#address(slot + 1) / 4 - 1] !== 0
  }

  top(query: Float32Array, k: number, mask?: Uint8Array): Ranked {
    const best = new TopK(k)
    const factor = this.#load(query)
    const slots = this.#slots
    const scores = this.#scores
    for (let from = 0; factor > 0 && from < this.#end; from += BLOCK) {
      const count = this.#choose(from, Math.min(from + BLOCK, this.#end), mask)
      this.#score(count, factor)
      for (let i = 0; i < count; i++) {
        const score = scores[i] ?? 0
        const slot = slots[i] ?? 0
        if (score > best.floor && (!mask || mask[slot] === 1)) best.push(slot, score)
      }
    }
    return best.ranked()
  }

  scoreAt(slots: Uint32Array, query: Float32Array): Float32Array {
    const scores = new Float32Array(slots.length).fill(-Infinity)
    const factor = this.#load(query)
    for (let from = 0; factor > 0 && from < slots.length; from += BLOCK) {
      const block = slots.subarray(from, from + BLOCK)
      block.forEach((slot, i) => (this.#slots[i] = Math.min(slot, this.#end)))
      this.#score(block.length, factor)
      scores.set(this.#scores.subarray(0, block.length), from)
    }
    return scores
  }

  /**
   * Brings the query where the kernel reads it, as fine as 32-bit sums of its products with codes allow.
   * @returns the factor of its scale, 0 when nothing can be a hit
   */
  #load(query: Float32Array): number {
    const { largest, norm } = measure(query, this.dimension)
    const { buffer } = this.#memory
    if (norm === 0 || !buffer) return 0
    const factor = finest(this.dimension) / largest
    quantize(query, factor, new Int16Array(buffer), QUERY / 2)
    return 1 / (factor * norm)
  }

  /**
   * Lists what to score of a block: what the mask allows if that is little, else everything. A row by itself takes up to
   * six times as long as one that follows another: 240 ns against 40 at 1024 values.
   */
  #choose(from: number, end: number, mask: Uint8Array | undefined): number {
    const slots = this.#slots
    let count = 0
    if (mask) for (let slot = from; slot < end; slot++) if (mask[slot] === 1) slots[count++] = slot
    if (mask && 6 * count < end - from) return count
    for (let slot = from; slot < end; slot++) slots[slot - from] = slot
    return end - from
  }

  #score(count: number, factor: number): void {
    this.#kernel?.(ROWS, this.#stride, QUERY, factor, SLOTS, count, SCORES)
  }

  #address(slot: number): number {
    return ROWS + slot * this.#stride
  }

  #reserve(rows: number): void {
    if (!this.#memory.reserve(this.#address(rows))) return
    const { buffer } = this.#memory
    if (!buffer) return
    this.#kernel = this.#memory.kernel('score')
    this.#bytes = new Int8Array(buffer)
    this.#floats = new Float32Array(buffer)
    this.#slots = new Uint32Array(buffer, SLOTS, BLOCK)
    this.#scores = new Float32Array(buffer, SCORES, BLOCK)
  }
}

/** @throws RangeError when `dimension` is not in 1 to 4096 */
export function refuseDimension(dimension: number): void {
  if (Number.isInteger(dimension) && dimension >= 1 && dimension <= 4_096) return
  throw new RangeError(`vectors of ${dimension} values cannot be searched here: 1 to 4096`)
}

/** Norm 0 also for a vector that holds a value that is no finite number. @throws RangeError on another dimension */
export function measure(vector: Float32Array, dimension: number): { largest: number; norm: number } {
  if (vector.length !== dimension) {
    throw new RangeError(`a vector of ${vector.length} values among vectors of ${dimension}`)
  }
  let largest = 0
  let squares = 0
  for (let i = 0; i < vector.length; i++) {
    const value = vector[i] ?? 0
    largest = Math.max(largest, Math.abs(value))
    squares += value * value
  }
  return { largest, norm: Number.isFinite(squares) ? Math.sqrt(squares) : 0 }
}

/** The largest value of a query that keeps 32-bit sums of its products with codes from overflowing. */
export const finest = (dimension: number): number => Math.min(32_767, Math.floor((2 ** 31 - 1) / (127 * dimension)))

/** `Math.round` would guess at each value which way to go: 7 µs for 1024, this 1. */
export const quantized = (value: number): number => Math.floor(value + 0.5)

function quantize(vector: Float32Array, factor: number, into: Int8Array | Int16Array, at: number): void {
  for (let i = 0; i < vector.length; i++) into[at + i] = quantized((vector[i] ?? 0) * factor)
}
