import type { CellTable } from './cell-table.ts'
import type { LexicalIndex, QueryTerm } from './lexical.ts'
import { type Listed, listRanked, rankMemories } from './memory-list.ts'
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
  readonly list: Listed[]
  /** No Memory outside the list scores higher. */
  readonly rest: number
  /** The slots that were scored. */
  readonly scored: number[] = []
  readonly #scores: Float32Array
  /** By slot: 1 where the common terms are in; undefined when they are in everywhere. */
  readonly #complete: Uint8Array | undefined
  readonly #scoreOf: (slot: number) => number

  /**
   * @param scores zeros by slot, to work in
   * @param common terms with more postings than this are common
   */
  constructor(
    lexical: LexicalIndex,
    table: CellTable,
    terms: readonly QueryTerm[],
    { mask, depth, scores }: { mask: Uint8Array | undefined; depth: number; scores: Float32Array },
    common = lexical.size < PRUNED_FROM ? Infinity : COMMON_SHARE * lexical.size,
  ) {
    this.#scoreOf = lexical.scorer(terms)
    const telling = terms.filter(({ postings }) => postings <= common)
    const rest = terms.filter(({ postings }) => postings > common)
    this.#scores = scores
    lexical.addScores(telling, scores, this.scored)
    const rank = (slots: readonly number[], floor = 0): TopK =>
      rankMemories(table, { scores, slots, mask, depth, floor })
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
        lexical.addScores(rest, scores, this.scored)
        best = rank(this.scored, last - ROUNDING * last)
      }
    }
    this.rest = Math.max(0, best.floor)
    this.list = listRanked(table, best.ranked())
  }

  /** BM25 of a Cell; 0 = none of the terms is in it. */
  at(slot: number): number {
    if (this.#complete?.[slot] === 0) {
      const score = this.#scoreOf(slot)
      if (score > 0 && this.#scores[slot] === 0) this.scored.push(slot)
      this.#scores[slot] = score
      this.#complete[slot] = 1
    }
    return this.#scores[slot] ?? 0
  }

  /** Whether the Cell was scored. */
  has(slot: number): boolean {
    return (this.#scores[slot] ?? 0) > 0
  }
}
