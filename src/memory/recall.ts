import { parseTimestamp } from '../base/clock.ts'
import { errorText } from '../base/errors.ts'
import { span } from '../base/trace.ts'
import type { Caller } from './caller.ts'
import { HASH_MODEL } from './embedder/hash.ts'
import type { Embedder } from './embedder/types.ts'
import type { Embedding } from './embedding.ts'
import { invalidInput } from './errors.ts'
import { passes } from './filter.ts'
import { expand, type GraphHit } from './graph-expansion.ts'
import type { RecallAnswer, RecallHit, RecallMode, Workspace } from './model.ts'
import { elapsedMs } from './mutation.ts'
import { readFirstCells } from './first-cells.ts'
import type { Logger, SearchIndex } from './ports.ts'
import type { RecallFilters, RecallRequest } from './requests.ts'
import type { ScoreParts, SearchAnswer, SearchFilter, SearchHit, SearchQuery, VectorSignal } from './search/types.ts'
import type { Seams } from './seams.ts'
import type { Cell } from './store/content/bodies.ts'
import { findHits, tagsOf, type HitRow } from './store/hits.ts'
import { findMemories, hasUnembedded, type MemoryRow, type Tags } from './store/memories.ts'
import { optional } from './store/rows.ts'
import { findTagged, findTags } from './store/tags.ts'
import { findVersions } from './store/versions.ts'
import type { Graph } from './walk.ts'

const K_DEFAULT = 5
const K_MAX = 100
const VECTOR_UNAVAILABLE = 'vector_unavailable'

/** Who asks matters only to what is written down. */
type Asker = Pick<Caller, 'startedAt' | 'signal'>

/** Finds Memories by a query. Contract: memory.md 4. */
export class Recall {
  readonly #seams: Seams
  readonly #index: SearchIndex
  readonly #embedding: Embedding
  readonly #graph: Graph
  readonly #log: Logger

  constructor(parts: { seams: Seams; index: SearchIndex; embedding: Embedding; graph: Graph; log: Logger }) {
    this.#seams = parts.seams
    this.#index = parts.index
    this.#embedding = parts.embedding
    this.#graph = parts.graph
    this.#log = parts.log
  }

  /**
   * @param explains says also what each score is made of; not part of the API
   * @throws invalid_input 400, graph_traverse_depth_exceeded 400.
   */
  async run(
    caller: Asker,
    workspace: Workspace,
    request: RecallRequest,
    explains = false,
  ): Promise<RecallAnswer & { results: ExplainedHit[] }> {
    const { mode, graph_expansion: expansion } = request
    if (mode === 'lookup' && !request.memory_ids) throw invalidInput('mode lookup needs memory_ids', 'memory_ids')
    if (mode !== 'lookup' && request.query.trim() === '') throw invalidInput('query must not be blank', 'query')
    if (expansion && this.#graph.isAvailable) this.#graph.refuseDepth(expansion.depth)
    const filter = await span('recall.filter', {}, () => this.#filter(workspace.id, request.filters))
    const embedder = this.#embedding.of(workspace)
    const found =
      mode === 'lookup'
        ? await this.#lookup(workspace.id, request.memory_ids ?? [], filter)
        : await this.#search(caller, workspace, embedder, request, filter, explains)
    const graph =
      expansion &&
      (await span('recall.expand', {}, () => expand(this.#graph, workspace.id, found.results, expansion, filter)))
    const neighbors = graph && expansion.include_neighbors_in_response ? await this.#graphHits(graph.hits) : []
    return {
      results: joined(mode, found.results, neighbors),
      total_candidates_scanned: found.scanned,
      graph_nodes_expanded: graph?.expanded,
      latency_ms: elapsedMs(caller),
      embedding_pending: found.isPending ?? (await hasUnembedded(this.#seams.metadata, workspace.id, embedder.model)),
      warnings: found.warnings.length > 0 ? found.warnings : undefined,
    }
  }

  async #search(
    caller: Asker,
    workspace: Workspace,
    embedder: Embedder,
    request: RecallRequest,
    filter: SearchFilter,
    explains: boolean,
  ): Promise<Found> {
    const { mode } = request
    if (mode === 'lookup') throw new Error('lookup does not search')
    const vector = mode === 'keyword' ? null : await this.#vectorSignal(embedder, request.query, caller.signal)
    const warnings = vector === null && mode !== 'keyword' ? [VECTOR_UNAVAILABLE] : []
    if (vector === null && mode === 'vector') return { results: [], scanned: 0, warnings }
    const query: SearchQuery = {
      text: request.query,
      mode,
      vector,
      k: request.k === undefined || request.k <= 0 ? K_DEFAULT : Math.min(request.k, K_MAX),
      weights: weightsOf(request.weights),
      fusionWeight: embedder.fusionWeight,
      filter,
      includeCells: request.include_cells,
    }
    const answer = await span('recall.search', { 'mem.recall.mode': mode }, () =>
      this.#index.search(workspace.id, embedder.model, query, caller.signal),
    )
    const { results, isPending } = await span('recall.read', {}, () =>
      this.#hits(workspace.id, embedder.model, answer, explains),
    )
    return { results, isPending, scanned: answer.scanned, warnings }
  }

  /** Null when the provider does not answer: recall goes on without vectors. */
  async #vectorSignal(embedder: Embedder, text: string, signal: AbortSignal): Promise<VectorSignal> {
    if (embedder.model === HASH_MODEL) return 'hash'
    try {
      return await this.#embedding.query(embedder, text, signal)
    } catch (error) {
      signal.throwIfAborted()
      this.#log.warn({ model: embedder.model, reason: errorText(error) }, 'the query could not be embedded')
      return null
    }
  }

  /** Tag filters become sets of Memories; each further key narrows the set. */
  async #filter(workspaceId: string, filters: RecallFilters | undefined): Promise<SearchFilter> {
    if (!filters) return {}
    const { collection_id, agent_id, agent_id_in, agent_id_not_in, ts_after, ts_before } = filters
    const writers = agent_id === undefined ? agent_id_in : [agent_id].filter((id) => agent_id_in?.includes(id) ?? true)
    return {
      ...optional('collectionId', collection_id),
      ...optional('agentIn', writers && new Set(writers)),
      ...optional('agentNotIn', agent_id_not_in && new Set(agent_id_not_in)),
      ...optional('after', timeOf(ts_after, 'filters.ts_after')),
      ...optional('before', timeOf(ts_before, 'filters.ts_before')),
      ...optional('memoryIds', filters.tags && (await this.#tagged(workspaceId, filters.tags))),
    }
  }

  async #tagged(workspaceId: string, tags: NonNullable<RecallFilters['tags']>): Promise<Set<string> | undefined> {
    let ids: Set<string> | undefined
    for (const [key, accepted] of Object.entries(tags)) {
      const values = typeof accepted === 'string' ? [accepted] : accepted
      const tagged = await findTagged(this.#seams.metadata, workspaceId, key, values)
      ids = ids ? new Set([...ids].filter((id) => tagged.has(id))) : tagged
      if (ids.size === 0) break
    }
    return ids
  }

  async #lookup(workspaceId: string, ids: readonly string[], filter: SearchFilter): Promise<Found> {
    const { metadata, bodies } = this.#seams
    const found = await metadata.snapshot(async (view) => {
      const memories = await findMemories(view, workspaceId, ids)
      const rows = [...new Set(ids)].flatMap((id) => memories.get(id) ?? []).filter((row) => passes(row, filter))
      const versions = await findVersions(
        view,
        rows.map((row) => row.head_watermark),
      )
      const tags = await findTags(
        view,
        rows.map((row) => row.memory_id),
      )
      return { rows, versions, tags }
    })
    const contents = await bodies.contents(workspaceId, [...found.versions.values()])
    const results = found.rows.flatMap((row) => {
      const content = contents.get(row.head_watermark)
      if (content === undefined) return []
      return [{ ...hitOf(row, found.tags.get(row.memory_id), 0, content), via: 'seed' as const }]
    })
    return { results, scanned: results.length, warnings: [] }
  }

  /** The hits with their texts. One that was forgotten since the search is left out. */
  async #hits(
    workspaceId: string,
    model: string,
    { hits }: SearchAnswer,
    explains: boolean,
  ): Promise<{ results: ExplainedHit[]; isPending: boolean }> {
    const cellNos = hits.flatMap((hit) => [hit.cellNo, ...(hit.cells ?? []).map((cell) => cell.cellNo)])
    const { rows, isPending } = await findHits(this.#seams.metadata, workspaceId, model, cellNos)
    const cells = new Map<number, Cell<HitRow>>()
    for (const cell of await this.#seams.bodies.texts(rows)) cells.set(cell.cell_no, cell)
    const results: ExplainedHit[] = []
    for (const hit of hits) {
      const cell = cells.get(hit.cellNo)
      if (!cell) continue
      results.push({
        memory_id: cell.memory_id,
        score: hit.score,
        text: cell.text,
        tags: tagsOf(cell),
        watermark: cell.head_watermark,
        written_by_agent_id: cell.written_by_agent_id,
        cell_id: cell.cell_id,
        vector_score: hit.vectorScore,
        keyword_score: hit.keywordScore,
        via: 'seed',
        parts: explains ? hit.parts : undefined,
        cells: hit.cells && scoredCells(hit.cells, cells),
      })
    }
    return { results, isPending }
  }

  async #graphHits(hits: readonly GraphHit[]): Promise<RecallHit[]> {
    const ids = hits.map(({ step }) => step.memory.memory_id)
    const tags = await findTags(this.#seams.metadata, ids)
    const cells = await readFirstCells(this.#seams, ids)
    return hits.map(({ step, score, layer }) => {
      const cell = cells.get(step.memory.memory_id)
      return {
        ...hitOf(step.memory, tags.get(step.memory.memory_id), score, cell?.text ?? ''),
        ...optional('cell_id', cell?.cell_id),
        via: 'graph' as const,
        graph_provenance: {
          from_memory_id: step.from,
          edge_id: step.edge.edge_id,
          edge_type: step.edge.edge_type,
          layer,
        },
      }
    })
  }
}

/** A hit with what its score is made of, where the default fusion made it. */
export type ExplainedHit = RecallHit & { parts?: ScoreParts | undefined }

interface Found {
  results: ExplainedHit[]
  scanned: number
  warnings: string[]
  /** Whether Cells wait for vectors, where it was read along. */
  isPending?: boolean | undefined
}

const hitOf = (
  row: Pick<MemoryRow, 'memory_id' | 'head_watermark' | 'written_by_agent_id'>,
  tags: Tags | undefined,
  score: number,
  text: string,
) => ({
  memory_id: row.memory_id,
  score,
  text,
  tags,
  watermark: row.head_watermark,
  written_by_agent_id: row.written_by_agent_id,
})

const scoredCells = (
  scored: NonNullable<SearchHit['cells']>,
  cells: ReadonlyMap<number, Cell<HitRow>>,
): NonNullable<RecallHit['cells']> =>
  scored.flatMap(({ cellNo, score }) => {
    const cell = cells.get(cellNo)
    return cell ? [{ cell_id: cell.cell_id, seq: cell.seq, text: cell.text, score }] : []
  })

/** In the order of scores; a lookup, which has none, keeps the order that was asked for. */
function joined(mode: RecallMode, direct: ExplainedHit[], neighbors: RecallHit[]): ExplainedHit[] {
  if (neighbors.length === 0) return direct
  const all = [...direct, ...neighbors]
  return mode === 'lookup' ? all : all.sort(byScore)
}

const byScore = (a: RecallHit, b: RecallHit): number => b.score - a.score || (a.memory_id < b.memory_id ? -1 : 1)

/** Both 0 is as absent: the default fusion. */
function weightsOf(weights: RecallRequest['weights']): SearchQuery['weights'] {
  const { vector = 0, keyword = 0 } = weights ?? {}
  return vector === 0 && keyword === 0 ? undefined : { vector, keyword }
}

function timeOf(text: string | undefined, field: string): number | undefined {
  if (text === undefined) return undefined
  const ms = parseTimestamp(text)
  if (ms === undefined) throw invalidInput(`${field} is not an ISO 8601 time`, field)
  return ms
}
