import { embedQuery } from '../embedder/hash.ts'
import { queryTerms } from './analysis.ts'
import { type CellEntry, CellTable, type MemoryEntry } from './cell-table.ts'
import { VectorCodes } from './codes.ts'
import { fuseWeighted, fuseWithContext, type Fused } from './fusion.ts'
import { LexicalIndex } from './lexical.ts'
import { hitsOf } from './hits.ts'
import { foundSignal, keywordSignal, type Rescore, type Signal, type Signals, vectorSignal } from './signals.ts'
import type { CellDocument, MemoryCells, SearchAnswer, SearchQuery } from './types.ts'

const BM25 = { k1: 1.2, b: 0.75 }
/** Memories of each list that take part in a fusion, and for each hit wanted. */
const DEPTH = 200
const DEPTH_PER_HIT = 4

/**
 * All Cells of one workspace, to be searched by keyword, by vector, or by both. It holds words and vector codes, no text
 * and no vectors; `rescore` gives the vectors of a few candidates, whose cosines are then exact. Contract: memory.md 4.
 */
export class WorkspaceIndex {
  readonly #table = new CellTable()
  readonly #lexical = new LexicalIndex()
  readonly #rescore: Rescore | undefined
  #codes: VectorCodes | undefined
  /** By slot: 1 where a vector other than zero is. */
  #embedded = new Uint8Array(64)
  readonly #waiting = new Set<number>()

  constructor(rescore?: Rescore) {
    this.#rescore = rescore
  }

  /** Cells held. */
  get size(): number {
    return this.#table.size
  }

  /** Cells that wait for a vector. */
  get pending(): number {
    return this.#waiting.size
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
  }

  /** The k best Memories for a query. Contract: memory.md 4.2, 4.3. */
  async search(query: SearchQuery): Promise<SearchAnswer> {
    const mask = this.#table.mask(query.filter)
    const depth = Math.max(DEPTH, DEPTH_PER_HIT * query.k)
    const bm25 = query.mode === 'vector' ? NO_SCORES : this.#lexical.scores(weighed(queryTerms(query.text)), BM25)
    const keyword = query.mode === 'vector' ? NOTHING : keywordSignal(this.#table, bm25, mask, depth)
    const vector = query.mode === 'keyword' ? NOTHING : await this.#vectorSignal(query, mask, depth)
    const signals = { keyword, vector, fusionWeight: query.fusionWeight }
    const ranked = fuse(query, signals, mask).slice(0, query.k)
    return {
      hits: hitsOf(ranked, signals, query.includeCells),
      scanned: this.#scanned(bm25, vector, mask),
    }
  }

  async #vectorSignal({ text, vector, k }: SearchQuery, mask: Uint8Array | undefined, depth: number): Promise<Signal> {
    if (vector !== null && vector !== 'hash' && 'scores' in vector) return foundSignal(this.#table, vector.scores, mask)
    if (vector === null || !this.#codes) return NOTHING
    const values = vector === 'hash' ? embedQuery(text, (stem) => this.#lexical.idf(stem)) : vector
    const wanted = { depth, exact: DEPTH_PER_HIT * k, rescore: this.#rescore }
    return vectorSignal(this.#table, this.#codes, values, mask, wanted)
  }

  #put(cell: CellDocument): void {
    const known = this.#table.cell(cell.cellNo)
    if (known) this.#table.move(known, cell.seq)
    const { slot } = known ?? this.#table.add(cell)
    if (!known) this.#lexical.add(slot, cell.text)
    if (cell.vector) {
      this.#codes ??= new VectorCodes(cell.vector.length)
      this.#codes.put(slot, cell.vector)
      this.#waiting.delete(cell.cellNo)
    } else {
      this.#codes?.clear(slot)
      this.#waiting.add(cell.cellNo)
    }
    if (slot >= this.#embedded.length) this.#embedded = grownBytes(this.#embedded, slot)
    this.#embedded[slot] = this.#codes?.has(slot) ? 1 : 0
  }

  #remove(cell: CellEntry): void {
    this.#lexical.remove(cell.slot)
    this.#codes?.clear(cell.slot)
    this.#embedded[cell.slot] = 0
    this.#waiting.delete(cell.cellNo)
    this.#table.remove(cell)
  }

  /** Cells that got a score of either kind. */
  #scanned(bm25: Float32Array, vector: Signal, mask: Uint8Array | undefined): number {
    const withVectors = vector.list.length > 0
    let scanned = 0
    for (let slot = 0; slot < this.#table.slots; slot++) {
      if (mask && mask[slot] !== 1) continue
      if ((bm25[slot] ?? 0) > 0 || (withVectors && this.#embedded[slot] === 1)) scanned++
    }
    return scanned
  }
}

const NO_SCORES = new Float32Array(0)
const NOTHING: Signal = { list: [], scoresAt: (slots) => new Float32Array(slots.length).fill(-Infinity) }

function grownBytes(bytes: Uint8Array, slot: number): Uint8Array<ArrayBuffer> {
  const grown = new Uint8Array(Math.ceil((slot + 1) * 1.5))
  grown.set(bytes)
  return grown
}

function weighed(terms: readonly string[]): Map<string, number> {
  const weights = new Map<string, number>()
  for (const term of terms) weights.set(term, (weights.get(term) ?? 0) + 1)
  return weights
}

function fuse({ mode, weights }: SearchQuery, signals: Signals, mask: Uint8Array | undefined): readonly Fused[] {
  if (mode === 'keyword') return signals.keyword.list
  if (mode === 'vector') return signals.vector.list
  if (weights) return fuseWeighted(signals.keyword.list, signals.vector.list, weights)
  const passes = ({ cells }: MemoryEntry): boolean => !mask || mask[cells[0]?.slot ?? -1] === 1
  return fuseWithContext(signals, passes)
}
