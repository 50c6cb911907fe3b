import { embedQuery } from '../embedder/hash.ts'
import { queryTerms } from './analysis.ts'
import { type CellEntry, CellTable } from './cell-table.ts'
import { type Codes, VectorCodes } from './codes.ts'
import { ColumnCodes } from './column-codes.ts'
import { Coherence } from './coherence.ts'
import { asFused, type Context, fuseWeighted, fuseWithContext, type Fused } from './fusion.ts'
import { KeywordScores } from './keyword-scores.ts'
import { LexicalIndex, type QueryTerm, type ScoreArrays } from './lexical.ts'
import { hitsOf } from './hits.ts'
import { speakersAskedFor } from './speakers.ts'
import { databaseSignal } from './database-signal.ts'
import { keywordSignal, type Rescore, type Signal, type Signals, vectorSignal } from './signals.ts'
import type { CellDocument, MemoryCells, SearchAnswer, SearchQuery, VectorSearch } from './types.ts'

/** Memories of each list that take part in a fusion, and for each hit wanted. */
const DEPTH = 100
const DEPTH_PER_HIT = 4

interface IndexOptions {
  rescore?: Rescore | undefined
  database?: VectorSearch | undefined
  isSparse?: boolean
}

/**
 * All Cells of one workspace, to be searched by keyword, by vector, or by both. It holds words and vector codes, no text
 * and no vectors; `rescore` gives the exact cosines of a few candidates. With a `database` that
 * searches vectors it holds words only. Contract: memory.md 4.
 */
export class WorkspaceIndex {
  readonly #table = new CellTable()
  readonly #lexical = new LexicalIndex()
  readonly #coherence = new Coherence(this.#table, this.#lexical)
  readonly #rescore: Rescore | undefined
  readonly #database: VectorSearch | undefined
  readonly #isSparse: boolean
  #codes: Codes | undefined
  /** By slot: 1 where a vector other than zero is. */
  #embedded = new Uint8Array(64)
  /** How many of these are 1. */
  #withVector = 0

  /** @param isSparse whether vectors of queries have few values other than zero */
  constructor({ rescore, database, isSparse = false }: IndexOptions = {}) {
    this.#rescore = rescore
    this.#database = database
    this.#isSparse = isSparse
  }

  /** Cells held. */
  get size(): number {
    return this.#table.size
  }

  /** The number of the Cell that was put in first. */
  get oldest(): number | undefined {
    return this.#table.oldest
  }

  /**
   * Makes each Memory's Cells exactly those given; none = forgotten. A Cell held keeps its text, and takes `seq` and vector.
   * @throws RangeError when a vector has another dimension than those before, or when the index is full
   */
  apply(memories: readonly MemoryCells[]): void {
    for (const { memoryId, cells } of memories) {
      const kept = new Set(cells.map(({ cellNo }) => cellNo))
      const gone = (this.#table.memory(memoryId)?.cells ?? []).filter(({ cellNo }) => !kept.has(cellNo))
      for (const cell of cells) this.#put(cell)
      for (const cell of gone) this.#remove(cell)
    }
    this.#coherence.forget()
  }

  /** The k best Memories for a query; nothing may be applied meanwhile. Contract: memory.md 4.2, 4.3. */
  async search(query: SearchQuery): Promise<SearchAnswer> {
    const arrays = this.#lexical.takeScores()
    try {
      return await this.#search(query, arrays)
    } finally {
      this.#lexical.giveBack(arrays)
    }
  }

  async #search(query: SearchQuery, arrays: ScoreArrays): Promise<SearchAnswer> {
    const mask = this.#table.mask(query.filter)
    const depth = Math.max(DEPTH, DEPTH_PER_HIT * query.k)
    const terms = query.mode === 'vector' ? [] : this.#lexical.query(queryTerms(query.text))
    const bm25 = new KeywordScores(this.#lexical, this.#table, terms, { mask, depth, arrays })
    const keyword = keywordSignal(bm25)
    const vector = query.mode === 'keyword' ? NOTHING : await this.#vectorSignal(query, mask, depth)
    const signals = { keyword, vector, fusionWeight: query.fusionWeight }
    const ranked = await this.#rank(query, signals, { terms, bm25, mask })
    await vector.gather?.(ranked.map(({ memory }) => memory))
    return {
      hits: hitsOf(this.#table, ranked, signals, query.includeCells),
      scanned: this.#scanned(bm25, vector, mask),
    }
  }

  async #rank(
    { mode, text, weights, k }: SearchQuery,
    signals: Signals,
    { terms, bm25, mask }: { terms: QueryTerm[]; bm25: KeywordScores; mask: Uint8Array | undefined },
  ): Promise<readonly Fused[]> {
    if (mode === 'keyword') return asFused(this.#table, signals.keyword.list, k)
    if (mode === 'vector') return asFused(this.#table, signals.vector.list, k)
    if (weights) return fuseWeighted(this.#table, signals, weights).slice(0, k)
    let asked: ReturnType<typeof speakersAskedFor> | undefined
    const context: Context = {
      table: this.#table,
      lexical: this.#lexical,
      terms,
      bm25,
      coherence: (stream) => this.#coherence.of(stream),
      passes: ({ cells }) => !mask || mask[cells[0]?.slot ?? -1] === 1,
      spokenAsAsked: this.#table.hasSpeakers
        ? (memory) => {
            const speaker = this.#table.speaker(memory)
            return speaker !== undefined && (asked ??= speakersAskedFor(text))(speaker)
          }
        : undefined,
    }
    return fuseWithContext(signals, context, k)
  }

  async #vectorSignal({ text, vector, k }: SearchQuery, mask: Uint8Array | undefined, depth: number): Promise<Signal> {
    if (vector === null) return NOTHING
    const values = vector === 'hash' ? embedQuery(text, (stem) => this.#lexical.idf(stem)) : vector
    if (this.#database) {
      return databaseSignal(this.#table, this.#database, values, { mask, embedded: this.#embedded, depth, memories: k })
    }
    if (!this.#codes) return NOTHING
    const wanted = { depth, exact: DEPTH_PER_HIT * k, rescore: this.#rescore }
    return vectorSignal(this.#table, this.#codes, values, mask, wanted)
  }

  #put(cell: CellDocument): void {
    const known = this.#table.cell(cell.cellNo)
    if (known) this.#table.move(known, cell.seq)
    const { slot } = known ?? this.#table.add(cell)
    if (!known) this.#lexical.add(slot, cell.text)
    const { vector } = cell
    if (vector instanceof Float32Array) {
      this.#codes ??= this.#isSparse ? new ColumnCodes(vector.length) : new VectorCodes(vector.length)
      this.#codes.put(slot, vector)
    } else {
      this.#codes?.clear(slot)
    }
    this.#setEmbedded(slot, vector === 'elsewhere' || this.#codes?.has(slot) ? 1 : 0)
  }

  #remove(cell: CellEntry): void {
    this.#lexical.remove(cell.slot)
    this.#codes?.clear(cell.slot)
    this.#setEmbedded(cell.slot, 0)
    this.#table.remove(cell)
  }

  #setEmbedded(slot: number, is: 0 | 1): void {
    if (slot >= this.#embedded.length) this.#embedded = grownBytes(this.#embedded, slot)
    this.#withVector += is - (this.#embedded[slot] ?? 0)
    this.#embedded[slot] = is
  }

  /** Cells that got a score of either kind. */
  #scanned(bm25: KeywordScores, vector: Signal, mask: Uint8Array | undefined): number {
    const withVectors = vector.list.numbers.length > 0
    if (!mask) {
      const { scored } = bm25
      if (!withVectors) return scored.length
      let sum = this.#withVector
      for (let i = 0; i < scored.length; i++) if (this.#embedded[scored[i] ?? 0] !== 1) sum++
      return sum
    }
    let scanned = 0
    for (let slot = 0; slot < this.#table.slots; slot++) {
      if (mask[slot] !== 1) continue
      if (bm25.has(slot) || (withVectors && this.#embedded[slot] === 1)) scanned++
    }
    return scanned
  }
}

const NOTHING: Signal = {
  list: { numbers: new Uint32Array(0), slots: new Uint32Array(0), scores: new Float32Array(0) },
  rest: -Infinity,
  scoresAt: (slots) => new Float32Array(slots.length).fill(-Infinity),
}

function grownBytes(bytes: Uint8Array, slot: number): Uint8Array<ArrayBuffer> {
  const grown = new Uint8Array(Math.ceil((slot + 1) * 1.5))
  grown.set(bytes)
  return grown
}
