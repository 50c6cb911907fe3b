/** One Cell as the search index holds it. */
export interface CellDocument {
  /** Database key: a positive integer, unique, never used again. */
  cellNo: number
  cellId: string
  memoryId: string
  /** Position in its Memory, from 0. */
  seq: number
  text: string
  /** The Memory's collection, writer and creation time (ms). */
  collectionId: string | null
  agentId: string
  createdAt: number
  /**
   * Unit-length vector of the workspace's current model; `elsewhere` = it has one, in a database that searches by itself;
   * null while it waits for one.
   */
  vector: Float32Array | 'elsewhere' | null
}

export interface SearchFilter {
  collectionId?: string
  agentIn?: ReadonlySet<string>
  agentNotIn?: ReadonlySet<string>
  /** `createdAt` bounds in ms: from (inclusive) and until (exclusive). */
  after?: number
  before?: number
  /** Only these Memories (tag filters come resolved to ids). */
  memoryIds?: ReadonlySet<string>
}

/**
 * What the vector signal is asked with: `hash` = the index embeds the query itself with its own word statistics; a vector =
 * of a model asked outside; null = no vector signal.
 */
export type VectorSignal = 'hash' | Float32Array | null

export interface SearchQuery {
  text: string
  mode: 'keyword' | 'vector' | 'hybrid'
  vector: VectorSignal
  /** Number of Memories wanted. */
  k: number
  /** The caller's own weights (memory.md 4.2); absent = the default fusion. */
  weights?: { vector: number; keyword: number } | undefined
  /** Of the embedder, in (0, 1]: how much its vectors count in the default fusion. */
  fusionWeight: number
  filter?: SearchFilter
  /** Also list up to 10 scored Cells of each hit. */
  includeCells: boolean
}

/** Asks for nothing: it brings the index of a workspace up to date. */
export const NOTHING_ASKED: SearchQuery = {
  text: '',
  mode: 'keyword',
  vector: null,
  k: 1,
  fusionWeight: 1,
  includeCells: false,
}

/** What a score of the default fusion is made of; the parts add up to it. */
export interface ScoreParts {
  /** Of the Memory itself, and what those around it lend. */
  words: number
  wordsAround: number
  meaning: number
  meaningAround: number
  /** For being said by whom the query asks for. */
  speaker: number
}

export interface SearchHit {
  memoryId: string
  /** The best Cell. */
  cellNo: number
  score: number
  /** In the default fusion. */
  parts?: ScoreParts | undefined
  /** Cosine and BM25 of the best Cell of each list, where it is in that list. */
  vectorScore?: number | undefined
  keywordScore?: number | undefined
  cells?: { cellNo: number; seq: number; score: number }[] | undefined
}

export interface SearchAnswer {
  /** Score descending, then memoryId ascending. */
  hits: SearchHit[]
  /** Distinct Cells actually scored after filters. */
  scanned: number
}

export interface ScoredCell {
  cellNo: number
  cosine: number
}

/** The vectors of one workspace and model, in a database that searches by itself. Answers are best first. */
export interface VectorSearch {
  /** The nearest Cells of the workspace, or nearly so. Fewer than `limit`: the search gave up, or there are no more. */
  nearest(query: Float32Array, limit: number): Promise<ScoredCell[]>
  /** The nearest of these Cells (at most `limit`, else all that have a vector), exactly. */
  compare(query: Float32Array, cellNos: readonly number[], limit?: number): Promise<ScoredCell[]>
}

/** What the indexes of a thread hold together. */
export interface IndexSizes {
  indexes: number
  cells: number
}

/** A Memory as recall sees it now: all its Cells, and none once it is forgotten. */
export interface MemoryCells {
  memoryId: string
  cells: CellDocument[]
}

/** After it, everything that changed up to and including `seq` has been told, and maybe some of what changed next. */
export interface ChangeBatch {
  seq: number
  memories: MemoryCells[]
}

/** Where an index gets its content from: a reader of the database, in the thread of the index. */
export interface CellSource {
  /** Cells of a workspace, more or less: tells where its index should live. */
  count(workspaceId: string): Promise<number>
  /**
   * What changed after `sinceSeq` (from 0: all that lives), with vectors of `model`; nothing when nothing did. Batches of
   * some 500 Cells. A workspace that was replaced by an import tells of what it has now, not that the rest is gone.
   */
  changes(workspaceId: string, model: string, sinceSeq: number): AsyncIterable<ChangeBatch>
  /** Whether there is such a Cell. Numbers are never used again. */
  has(cellNo: number): Promise<boolean>
  /** Stays while nothing at all is written; undefined where that is not known. */
  version(): number | undefined
  /** Scores candidates again, by their vectors; a Cell that has none is not in the answer. */
  cosines?: (model: string, query: Float32Array, cellNos: readonly number[]) => Promise<ReadonlyMap<number, number>>
  /** Where a database searches vectors by itself; `changes` says `elsewhere` then. */
  vectorSearch?(workspaceId: string, model: string): VectorSearch
  close(): Promise<void>
}
