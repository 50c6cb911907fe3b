import { documentTerms } from './analysis.ts'

/** A list entry is 32 bits: a slot or a term number, then a count that stops at 255. */
const COUNT_BITS = 8
const COUNT_MASK = 0xff
const NUMBERS = 2 ** (32 - COUNT_BITS)

export interface Bm25 {
  k1: number
  b: number
}

/**
 * The words of a workspace's Cells by slot, and BM25 over them. Statistics are exact after every removal, because each Cell
 * keeps the list of its terms: 8 bytes a distinct word of a Cell in all. Holds 16,777,216 slots and as many terms.
 *
 * A query adds up all postings of its terms into one array of scores. Measured 2-3 ns a posting: skipping (MaxScore) would
 * save less than it costs, and every Cell's score is at hand for its neighbours, for counting and for feedback.
 */
export class LexicalIndex {
  readonly #numbers = new Map<string, number>()
  readonly #terms: string[] = []
  readonly #free: number[] = []
  readonly #postings: Uint32Array[] = []
  readonly #frequencies: number[] = []
  /** By slot: where its terms begin in the log, how many they are, and its length in words. */
  #starts = new Uint32Array(64)
  #counts = new Uint32Array(64)
  #lengths = new Uint32Array(64)
  #log = new Uint32Array(1024)
  #logEnd = 0
  #logLive = 0
  #size = 0
  #words = 0

  /** Cells in the index. */
  get size(): number {
    return this.#size
  }

  /** Puts a text into an empty slot. @throws RangeError when the index is full */
  add(slot: number, text: string): void {
    if (slot >= NUMBERS) throw new RangeError(`more than ${NUMBERS} Cells in a workspace`)
    const counts = new Map<string, number>()
    let length = 0
    for (const term of documentTerms(text)) {
      counts.set(term, (counts.get(term) ?? 0) + 1)
      length++
    }
    this.#reserve(slot, counts.size)
    this.#starts[slot] = this.#logEnd
    this.#counts[slot] = counts.size
    this.#lengths[slot] = length
    for (const [term, count] of counts) {
      const number = this.#number(term)
      this.#log[this.#logEnd++] = pack(number, count)
      this.#insert(number, pack(slot, count))
    }
    this.#logLive += counts.size
    this.#words += length
    this.#size++
  }

  remove(slot: number): void {
    for (const entry of this.#entries(slot)) this.#delete(entry >>> COUNT_BITS, slot)
    this.#logLive -= this.#counts[slot] ?? 0
    this.#words -= this.#lengths[slot] ?? 0
    this.#counts[slot] = 0
    this.#lengths[slot] = 0
    this.#size--
  }

  /** Inverse document frequency: ln(1 + (N - n + ½) / (n + ½)). */
  idf(term: string): number {
    const n = this.#frequencies[this.#numbers.get(term) ?? -1] ?? 0
    return Math.log(1 + (this.#size - n + 0.5) / (n + 0.5))
  }

  /** BM25 of every slot for weighted terms; 0 = none of them is in it. */
  scores(query: ReadonlyMap<string, number>, { k1, b }: Bm25): Float32Array {
    const scores = new Float32Array(this.#lengths.length)
    const average = this.#words / Math.max(1, this.#size)
    const slope = (k1 * b) / Math.max(1, average)
    const base = k1 * (1 - b)
    const lengths = this.#lengths
    for (const [term, weight] of query) {
      const number = this.#numbers.get(term)
      const postings = number === undefined ? undefined : this.#postings[number]
      if (number === undefined || !postings) continue
      const most = weight * this.idf(term) * (k1 + 1)
      const n = this.#frequencies[number] ?? 0
      for (let i = 0; i < n; i++) {
        const posting = postings[i] ?? 0
        const slot = posting >>> COUNT_BITS
        const count = posting & COUNT_MASK
        scores[slot] = (scores[slot] ?? 0) + (most * count) / (count + base + slope * (lengths[slot] ?? 0))
      }
    }
    return scores
  }

  /** The terms of a Cell, each with its count. */
  *termsAt(slot: number): Generator<[term: string, count: number]> {
    for (const entry of this.#entries(slot)) yield [this.#terms[entry >>> COUNT_BITS] ?? '', entry & COUNT_MASK]
  }

  /** Words of a Cell, repetitions included. */
  lengthAt(slot: number): number {
    return this.#lengths[slot] ?? 0
  }

  #entries(slot: number): Uint32Array {
    const start = this.#starts[slot] ?? 0
    return this.#log.subarray(start, start + (this.#counts[slot] ?? 0))
  }

  #number(term: string): number {
    let number = this.#numbers.get(term)
    if (number === undefined) {
      number = this.#free.pop() ?? this.#terms.length
      if (number >= NUMBERS) throw new RangeError(`more than ${NUMBERS} different words in a workspace`)
      this.#numbers.set(term, number)
      this.#terms[number] = term
      this.#frequencies[number] = 0
      this.#postings[number] = EMPTY
    }
    return number
  }

  /** Keeps slot order; a new slot is the last one, but for a slot used again. */
  #insert(number: number, posting: number): void {
    const n = this.#frequencies[number] ?? 0
    let list = this.#postings[number] ?? EMPTY
    if (n === list.length) this.#postings[number] = list = grown(list, n === 0 ? 1 : Math.ceil(n * 1.5) + 2)
    const at = n === 0 || (list[n - 1] ?? 0) < posting ? n : lowerBound(list, n, posting)
    list.copyWithin(at + 1, at, n)
    list[at] = posting
    this.#frequencies[number] = n + 1
  }

  #delete(number: number, slot: number): void {
    const list = this.#postings[number] ?? EMPTY
    const n = this.#frequencies[number] ?? 0
    const at = lowerBound(list, n, pack(slot, 0))
    list.copyWithin(at, at + 1, n)
    this.#frequencies[number] = n - 1
    if (n > 1) return
    this.#numbers.delete(this.#terms[number] ?? '')
    this.#terms[number] = ''
    this.#postings[number] = EMPTY
    this.#free.push(number)
  }

  #reserve(slot: number, entries: number): void {
    if (slot >= this.#lengths.length) {
      const slots = Math.max(slot + 1, Math.ceil(this.#lengths.length * 1.5))
      this.#starts = grown(this.#starts, slots)
      this.#counts = grown(this.#counts, slots)
      this.#lengths = grown(this.#lengths, slots)
    }
    if (this.#logEnd + entries <= this.#log.length) return
    const old = this.#log
    this.#log = new Uint32Array(Math.ceil((this.#logLive + entries) * 1.5))
    this.#logEnd = 0
    this.#counts.forEach((count, at) => {
      const start = this.#starts[at] ?? 0
      this.#log.set(old.subarray(start, start + count), this.#logEnd)
      this.#starts[at] = this.#logEnd
      this.#logEnd += count
    })
  }
}

const EMPTY = new Uint32Array(0)

const pack = (number: number, count: number): number => number * (COUNT_MASK + 1) + Math.min(count, COUNT_MASK)

function grown(values: Uint32Array, length: number): Uint32Array<ArrayBuffer> {
  const out = new Uint32Array(length)
  out.set(values)
  return out
}

/** The first of n ascending values that is not below `value`. */
function lowerBound(list: Uint32Array, n: number, value: number): number {
  let low = 0
  let high = n
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((list[middle] ?? 0) < value) low = middle + 1
    else high = middle
  }
  return low
}
