import { setImmediate } from 'node:timers/promises'
import { toTimestamp } from '../base/clock.ts'
import { errorText } from '../base/errors.ts'
import type { IdSource } from '../base/ids.ts'
import type { Embedder } from './embedder/types.ts'
import { AUTO_LINK_AGENT, SYNTHETIC_EDGE_TYPE, type Workspace } from './model.ts'
import type { Mutation } from './mutation.ts'
import type { Logger, SearchIndex } from './ports.ts'
import type { Limits } from './quota.ts'
import { NOTHING_ASKED } from './search/types.ts'
import type { Seams } from './seams.ts'
import { findCells, findCellsByNo } from './store/cells.ts'
import { countIncomingSynthetic, countOutEdges } from './store/edges.ts'
import { findMemory } from './store/memories.ts'

const DAY_MS = 24 * 3600 * 1000
const QUERY_TIMEOUT_MS = 100
/** Of all queries of a Memory, and of an index that has to be filled for them: a write waits for no more. */
const RUN_TIMEOUT_MS = 10_000

/** The best pair of Cells that joins the new Memory to an older one. */
export interface Link {
  memoryId: string
  cosine: number
  newSeq: number
  oldCellNo: number
}

/** What the search found; with a failure nothing is linked and the ledger tells why. */
export type LinkSearch = { model: string; links: Link[] } | { failure: 'vector_error' | 'timeout' }

/** Joins a new Memory to those whose Cells are near. Contract: memory.md 7. */
export class AutoLink {
  readonly #seams: Seams
  readonly #index: SearchIndex
  readonly #ids: IdSource
  readonly #limits: Limits
  readonly #log: Logger

  constructor(seams: Seams, index: SearchIndex, ids: IdSource, limits: Limits, log: Logger) {
    this.#seams = seams
    this.#index = index
    this.#ids = ids
    this.#limits = limits
    this.#log = log
  }

  applies(workspace: Workspace): boolean {
    return workspace.auto_link_enabled && this.#seams.graph !== undefined
  }

  /** Nearest older Memories of each new Cell, best first: above the threshold, one pair a Memory. */
  async search(
    workspace: Workspace,
    embedder: Embedder,
    cells: readonly { seq: number; vector: Float32Array | undefined }[],
    self?: string,
  ): Promise<LinkSearch> {
    const best = new Map<string, Link>()
    const end = AbortSignal.timeout(RUN_TIMEOUT_MS)
    try {
      await this.#index.search(workspace.id, embedder.model, NOTHING_ASKED, end)
      for (const [place, { seq, vector }] of cells.entries()) {
        if (!vector) continue
        // Lets other requests in, and the end.
        if (place > 0) await setImmediate()
        end.throwIfAborted()
        for (const link of await this.#nearest(workspace, embedder, seq, vector)) {
          const known = best.get(link.memoryId)
          if (link.memoryId !== self && (!known || known.cosine < link.cosine)) best.set(link.memoryId, link)
        }
      }
    } catch (error) {
      this.#log.warn({ workspace: workspace.id, reason: errorText(error) }, 'auto-link was skipped')
      return { failure: error instanceof Error && error.name === 'TimeoutError' ? 'timeout' : 'vector_error' }
    }
    const links = [...best.values()]
      .filter((link) => link.cosine >= workspace.auto_link_threshold)
      .sort((a, b) => b.cosine - a.cosine || (a.memoryId < b.memoryId ? -1 : 1))
    return { model: embedder.model, links: links.slice(0, workspace.auto_link_max_edges) }
  }

  async #nearest(workspace: Workspace, embedder: Embedder, seq: number, vector: Float32Array): Promise<Link[]> {
    const { hits } = await this.#index.search(
      workspace.id,
      embedder.model,
      {
        text: '',
        mode: 'vector',
        vector,
        // One more than wanted: the new Memory itself may be the nearest.
        k: workspace.auto_link_max_edges + 1,
        fusionWeight: 1,
        includeCells: false,
      },
      AbortSignal.timeout(QUERY_TIMEOUT_MS),
    )
    return hits.map((hit) => ({
      memoryId: hit.memoryId,
      cosine: hit.vectorScore ?? 0,
      newSeq: seq,
      oldCellNo: hit.cellNo,
    }))
  }

  /** Those of the links that still stand and fit the limits; silently fewer at a limit. */
  async admit(
    mutation: Mutation,
    workspace: Workspace,
    memoryId: string,
    search: LinkSearch | undefined,
  ): Promise<Link[]> {
    const graph = this.#seams.graphView(mutation.tx)
    if (!graph || !search || 'failure' in search || search.links.length === 0) return []
    const most = this.#limits.out_edges || Infinity
    const out = await countOutEdges(graph, memoryId)
    const admitted: Link[] = []
    for (const link of search.links) {
      if (out + admitted.length >= most) break
      if (!(await findMemory(mutation.tx, workspace.id, link.memoryId))) continue
      const incoming = await countIncomingSynthetic(graph, link.memoryId, mutation.now - DAY_MS)
      if (incoming < workspace.auto_link_max_incoming_per_day) admitted.push(link)
    }
    return admitted
  }

  /** Writes the Edges of a Memory whose Cells are stored, and the ledger's word of each, or of the failure. */
  async write(
    mutation: Mutation,
    workspaceId: string,
    memoryId: string,
    search: LinkSearch | undefined,
    links: readonly Link[],
  ): Promise<void> {
    if (!search) return
    if ('failure' in search) {
      mutation.record('auto_link_skipped', {
        target: memoryId,
        agentId: AUTO_LINK_AGENT,
        metadata: { reason: search.failure },
      })
      return
    }
    if (links.length === 0) return
    const cells = await findCells(mutation.tx, memoryId)
    const old = await findCellsByNo(
      mutation.tx,
      links.map((link) => link.oldCellNo),
    )
    for (const link of links) {
      const pair = [cells[link.newSeq]?.cell_id ?? '', old.get(link.oldCellNo)?.cell_id ?? '']
      const facts = { cosine_score: link.cosine, via_cell_pair: pair, embedding_model: search.model }
      const edge = {
        edge_id: this.#ids('edg_'),
        workspace_id: workspaceId,
        source_memory_id: memoryId,
        target_memory_id: link.memoryId,
        edge_type: SYNTHETIC_EDGE_TYPE,
        properties_json: { auto_source: SYNTHETIC_EDGE_TYPE, ...facts },
        created_by_agent_id: AUTO_LINK_AGENT,
        created_at: toTimestamp(mutation.now),
        watermark: this.#ids('wmk_'),
      } as const
      await this.#seams.insertEdge(mutation.tx, edge)
      mutation.record('graph_link', {
        target: memoryId,
        agentId: AUTO_LINK_AGENT,
        metadata: {
          trigger: 'auto_link',
          edge_id: edge.edge_id,
          edge_type: edge.edge_type,
          source_memory_id: memoryId,
          target_memory_id: link.memoryId,
          ...facts,
        },
      })
    }
  }
}
