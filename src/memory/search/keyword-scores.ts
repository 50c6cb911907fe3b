import type { CellTable } from './cell-table.ts'
import type { LexicalIndex, QueryTerm, ScoreArrays } from './lexical.ts'
import { listRanked, type MemoryList, rankMemories } from './memory-list.ts'
import type { TopK } from './top-k.ts'

/** From so many Cells on, words that more than this share of them have are read only where they can matter. */
const PRUNED_FROM = 10_000
const COMMON_SHARE = 0.1
/** Of a score in 32 bits, depending on the order in which its terms are added. */
const ROUNDING = 1e-5

/**
 * BM25 of a query's terms. Of a large index not every posting is read: the telling terms choose the Cells, and the common
 * ones are added, from a Cell's own list of terms, only to those that they can still bring into the list (MaxScore: Turtle
 * and Flood 1995). The list is the same as if all were read, and so is every score that is asked for.
 */
export class KeywordScores {
  /** The best Memories, `depth` of them at most. */
  readonly list: MemoryList
  /** No Memory outside the list scores higher. */
  readonly rest: number
  readonly #arrays: ScoreArrays
  /** How many slots were scored. */
  #count: number
  /** By slot: 1 where the common terms are in; undefined when they are in everywhere. */
  readonly #complete: Uint8Array | undefined
  readonly #scoreOf: (slot: number) => number

  /**
   * @param arrays to work in, as `lexical` gives them
   * @param common terms with more postings than this are common
   */
  constructor(
    lexical: LexicalIndex,
    table: CellTable,
    terms: readonly QueryTerm[],
    { mask, depth, arrays }: { mask: Uint8Array | undefined; depth: number; arrays: ScoreArrays },
    common = lexical.size < PRUNED_FROM ? Infinity : COMMON_SHARE * lexical.size,
  ) {
    this.#scoreOf = lexical.scorer(terms)
    const telling = terms.filter(({ postings }) => postings <= common)
    const rest = terms.filter(({ postings }) => postings > common)
    const { scores } = arrays
    this.#arrays = arrays
    this.#count = lexical.addScores(telling, arrays, 0)
    const rank = (slots: Uint32Array, floor = 0): TopK => rankMemories(table, { scores, slots, mask, depth, floor })
    let best = rank(this.scored)
    if (rest.length > 0) {
      const gain = rest.reduce((sum, { most }) => sum + most, 0)
      const last = Math.max(0, best.floor)
      if (last > gain) {
        const possible = this.scored.filter((slot) => (scores[slot] ?? 0) + gain >= last)
        this.#complete = new Uint8Array(scores.length)
        for (const slot of possible) this.at(slot)
        best = rank(possible, last - ROUNDING * last)
      } else {
        this.#count = lexical.addScores(rest, arrays, this.#count)
        best = rank(this.scored, last - ROUNDING * last)
      }
    }
    this.rest = Math.max(0, best.floor)
    this.list = listRanked(table, best.ranked())
  }

  /** The slots that were scored. */
  get scored(): Uint32Array {
    return this.#arrays.touched.subarray(0, this.#count)
  }

  /** BM25 of a Cell; 0 = none of the terms is in it. */
  at(slot: number): number {
    const { scores, touched } = this.#arrays
    if (this.#complete?.[slot] === 0) {
      const score = this.#scoreOf(slot)
      if (score > 0 && scores[slot] === 0) touched[this.#count++] = slot
      scores[slot] = score
      this.#complete[slot] = 1
    }
    return scores[slot] ?? 0
  }

  /** Whether the Cell was scored. */
  has(slot: number): boolean {
    return (this.#arrays.scores[slot] ?? 0) > 0
  }
}
