import { compounds, documentTerms, isAscii } from './analysis.ts'
import { detached } from './detached.ts'
import { stem } from './stemmer.ts'
import { WordTable } from './word-table.ts'

/** A list entry is 32 bits: a slot or a term number, then a count that stops at 255. */
const COUNT_BITS = 8
const COUNT_MASK = 0xff
const NUMBERS = 2 ** (32 - COUNT_BITS)

/**
 * BM25 with every length taken LENGTH_OFFSET words longer than it is: of short texts the longer ones say more, of long ones
 * they only use more words, so the usual `b` should be some 0.4 for chat turns of 25 words and 0.9 for passages of 200. The
 * offset gives each its own: b = average / (average + offset).
 */
const K1 = 1.8
const LENGTH_OFFSET = 30

/** Words of each Cell that likeness looks at. */
const COMPARED = 64

/** A term by number, the Cells it is in, and the most it can add to a score. */
export interface QueryTerm {
  number: number
  postings: number
  most: number
}

/** What the scores of a query are worked out in, as long as there are slots. */
export interface ScoreArrays {
  /** By slot; zeros at first. */
  scores: Float32Array
  /** The slots that have a score, in the order they got it. */
  touched: Uint32Array
}

/**
 * The words of a workspace's Cells by slot, and BM25 over them. Statistics are exact after every removal, because each Cell
 * keeps the list of its terms: 8 bytes a distinct word of a Cell in all. Holds 16,777,216 slots and as many terms.
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
  /** By term number: how often the text at hand has it; zeros between texts. */
  #tally = new Uint32Array(64)
  #spare: ScoreArrays | undefined
  /** By term number: what the terms of the last query weigh, and zeros. An array anew for each query would be 4 bytes a term. */
  #weights = new Float32Array(0)
  #weighed: readonly QueryTerm[] = []
  /** By term number: one more than its place in the query at hand; zeros between queries. */
  #columns = new Uint8Array(0)
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
    const distinct: number[] = []
    let length = 0
    let tally = this.#tally
    const take = (number: number): void => {
      if (number >= tally.length) this.#tally = tally = grown(tally, Math.ceil(number * 1.5))
      const count = tally[number] ?? 0
      if (count === 0) distinct.push(number)
      tally[number] = count + 1
      length++
    }
    const numberOf = (word: string): number => this.#number(stem(word))
    if (isAscii(text)) {
      knownTo(this).read(text, numberOf, take)
      for (const word of compounds(text)) take(numberOf(word))
    } else {
      for (const term of documentTerms(text)) take(this.#number(term))
    }
    this.#reserve(slot, distinct.length)
    this.#starts[slot] = this.#logEnd
    this.#counts[slot] = distinct.length
    this.#lengths[slot] = length
    for (const number of distinct) {
      const count = tally[number] ?? 0
      tally[number] = 0
      this.#log[this.#logEnd++] = pack(number, count)
      this.#insert(number, pack(slot, count))
    }
    this.#logLive += distinct.length
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
    return this.#idf(this.#frequencies[this.#numbers.get(term) ?? -1] ?? 0)
  }

  /** The known terms of a query, the most telling first; repetitions count. */
  query(terms: readonly string[]): QueryTerm[] {
    const counts = new Map<string, number>()
    for (const term of terms) counts.set(term, (counts.get(term) ?? 0) + 1)
    return [...counts]
      .flatMap(([term, count]) => {
        const number = this.#numbers.get(term)
        if (number === undefined) return []
        return { number, postings: this.#frequencies[number] ?? 0, most: count * this.idf(term) * (K1 + 1) }
      })
      .sort((a, b) => b.most - a.most)
  }

  /**
   * Arrays for the scores of one query. Give them back: 4 MB anew for each question at 1,000,000 Cells make the collector run
   * every few questions, 0.3 s each time.
   */
  takeScores(): ScoreArrays {
    const spare = this.#spare
    this.#spare = undefined
    const { length } = this.#lengths
    if (spare?.scores.length !== length) return { scores: new Float32Array(length), touched: new Uint32Array(length) }
    spare.scores.fill(0)
    return spare
  }

  giveBack(arrays: ScoreArrays): void {
    this.#spare = arrays
  }

  /**
   * Adds what these terms give to the BM25 of every slot, of which it reads all postings.
   * @param known how many slots have a score already
   * @returns how many have one now
   */
  addScores(query: readonly QueryTerm[], { scores, touched }: ScoreArrays, known: number): number {
    const { base, slope } = this.#norm()
    const lengths = this.#lengths
    let count = known
    for (const { number, most } of query) {
      const postings = this.#postings[number] ?? EMPTY
      const n = this.#frequencies[number] ?? 0
      for (let i = 0; i < n; i++) {
        const posting = postings[i] ?? 0
        const slot = posting >>> COUNT_BITS
        const times = posting & COUNT_MASK
        const before = scores[slot] ?? 0
        if (before === 0) touched[count++] = slot
        scores[slot] = before + (most * times) / (times + base + slope * (lengths[slot] ?? 0))
      }
    }
    return count
  }

  /** BM25 of a slot, from its own list of terms. Good until the next one is asked for. */
  scorer(query: readonly QueryTerm[]): (slot: number) => number {
    const { base, slope } = this.#norm()
    const most = this.#weigh(query)
    return (slot) => {
      const norm = base + slope * (this.#lengths[slot] ?? 0)
      const start = this.#starts[slot] ?? 0
      const end = start + (this.#counts[slot] ?? 0)
      let score = 0
      for (let at = start; at < end; at++) {
        const entry = this.#log[at] ?? 0
        const weight = most[entry >>> COUNT_BITS] ?? 0
        if (weight === 0) continue
        const count = entry & COUNT_MASK
        score += (weight * count) / (count + norm)
      }
      return score
    }
  }

  /** What each term (255 at most) adds to the BM25 of each of these slots: a row of terms a slot. */
  shares(query: readonly QueryTerm[], slots: Uint32Array): Float32Array {
    const shares = new Float32Array(query.length * slots.length)
    const { base, slope } = this.#norm()
    if (this.#columns.length < this.#terms.length) this.#columns = new Uint8Array(Math.ceil(this.#terms.length * 1.5))
    const columns = this.#columns
    query.forEach(({ number }, column) => (columns[number] = column + 1))
    for (let row = 0; row < slots.length; row++) {
      const slot = slots[row] ?? 0
      const norm = base + slope * (this.#lengths[slot] ?? 0)
      const start = this.#starts[slot] ?? 0
      const end = start + (this.#counts[slot] ?? 0)
      for (let at = start; at < end; at++) {
        const entry = this.#log[at] ?? 0
        const column = (columns[entry >>> COUNT_BITS] ?? 0) - 1
        if (column < 0) continue
        const count = entry & COUNT_MASK
        shares[row * query.length + column] = ((query[column]?.most ?? 0) * count) / (count + norm)
      }
    }
    for (const { number } of query) columns[number] = 0
    return shares
  }

  #weigh(query: readonly QueryTerm[]): Float32Array {
    for (const { number } of this.#weighed) this.#weights[number] = 0
    if (this.#weights.length < this.#terms.length) this.#weights = new Float32Array(Math.ceil(this.#terms.length * 1.5))
    for (const { number, most } of query) this.#weights[number] = most
    this.#weighed = query
    return this.#weights
  }

  /** How alike a Cell is to others: cosines of the different words they begin with, weighed by idf. */
  similarities(slot: number, others: readonly number[]): number[] {
    const beginning = (of: number): Uint32Array => this.#entries(of).subarray(0, COMPARED)
    const own = new Set<number>()
    let ownSquares = 0
    for (const entry of beginning(slot)) {
      own.add(entry >>> COUNT_BITS)
      ownSquares += this.#squaredIdf(entry >>> COUNT_BITS)
    }
    return others.map((other) => {
      let common = 0
      let squares = 0
      for (const entry of beginning(other)) {
        const square = this.#squaredIdf(entry >>> COUNT_BITS)
        squares += square
        if (own.has(entry >>> COUNT_BITS)) common += square
      }
      return common === 0 ? 0 : common / Math.sqrt(ownSquares * squares)
    })
  }

  /** The part of BM25 that grows with a Cell's length: `base + slope * length`. */
  #norm(): { base: number; slope: number } {
    const slope = K1 / (LENGTH_OFFSET + this.#words / Math.max(1, this.#size))
    return { base: slope * LENGTH_OFFSET, slope }
  }

  #idf(frequency: number): number {
    return Math.log(1 + (this.#size - frequency + 0.5) / (frequency + 0.5))
  }

  #squaredIdf(number: number): number {
    return this.#idf(this.#frequencies[number] ?? 0) ** 2
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
      const kept = detached(term)
      this.#numbers.set(kept, number)
      this.#terms[number] = kept
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
    if (n === 0 || (list[n - 1] ?? 0) < posting) {
      list[n] = posting
    } else {
      const at = lowerBound(list, n, posting)
      list.copyWithin(at + 1, at, n)
      list[at] = posting
    }
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
    knownTo(this).clear()
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

/**
 * Numbers of words in the index filled last: 2.6 MB a thread. Without cutting, hashing and stemming each word anew a Cell of
 * 80 words takes half the time.
 */
let known: { of: LexicalIndex; words: WordTable } | undefined

function knownTo(index: LexicalIndex): WordTable {
  known ??= { of: index, words: new WordTable() }
  if (known.of !== index) known.words.clear()
  known.of = index
  return known.words
}

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
