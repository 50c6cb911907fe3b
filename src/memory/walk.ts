import type { Clock } from '../base/clock.ts'
import type { Page } from '../base/pages.ts'
import type { Queryable } from '../database/database.ts'
import { MemoryError, notFound } from './errors.ts'
import type { Edge, EdgeType, MemoryHeader } from './model.ts'
import type { Direction, NeighborsRequest, TraverseRequest } from './requests.ts'
import type { Seams } from './seams.ts'
import { countEdgesByType, listEdges, listEdgesOfMany } from './store/edges.ts'
import { countMemories, findMemories, findMemory, toHeader, type MemoryRow, type Tags } from './store/memories.ts'
import { findTags } from './store/tags.ts'

const EDGES_PER_NODE = 200
const NODES_AT_ONCE = 50
const EDGES_WALKED_MAX = 10_000
/** Of one walk, and of all together that begin at the hits of a recall. */
const WALK_MS = 5000
const NEIGHBORS_DEFAULT = 50
const NEIGHBORS_MAX = 200

/** Depth caps: SQLite 3, PostgreSQL 5 (memory.md 8). */
const DEPTH_CAPS = { sqlite: 3, postgres: 5 } as const

export interface EdgesAnswer {
  edges: Edge[]
  neighbors: MemoryHeader[]
  next_cursor?: string
}

export interface TraverseAnswer {
  seed: MemoryHeader
  layers: { memory_id: string; via_edge_id: string; via_edge_type: EdgeType }[][]
  stats: { nodes_visited: number; edges_walked: number; truncated: boolean }
}

/** A Memory as a walk reached it. */
export interface Step {
  memory: MemoryRow
  from: string
  edge: Edge
}

export interface WalkResult {
  layers: Step[][]
  edgesWalked: number
  truncated: boolean
}

/** Reads of the graph. Contract: memory.md 3.3 and 8. */
export class Graph {
  readonly #metadata: Queryable
  readonly #graph: Queryable | undefined
  readonly #clock: Clock

  constructor(seams: Seams, clock: Clock) {
    this.#metadata = seams.metadata
    this.#graph = seams.graph
    this.#clock = clock
  }

  get isAvailable(): boolean {
    return this.#graph !== undefined
  }

  /** A page of a Memory's Edges with the headers of their far ends, each once, in Edge order. */
  async edges(
    workspaceId: string,
    memoryId: string,
    direction: Direction,
    types: readonly string[] | undefined,
    limit: number,
    before: string | undefined,
  ): Promise<EdgesAnswer> {
    await this.#require(workspaceId, memoryId)
    const page = await listEdges(this.#store, memoryId, direction, types, limit, before)
    return this.#withHeaders(workspaceId, memoryId, page)
  }

  /** The `k` newest Edges a direction, with the headers of their far ends. */
  async neighbors(workspaceId: string, request: NeighborsRequest): Promise<EdgesAnswer> {
    const { memory_id: memoryId, direction, types } = request
    await this.#require(workspaceId, memoryId)
    const k = request.k === undefined || request.k <= 0 ? NEIGHBORS_DEFAULT : Math.min(request.k, NEIGHBORS_MAX)
    const sides = direction === 'both' ? (['out', 'in'] as const) : ([direction] as const)
    const pages = await Promise.all(sides.map((side) => listEdges(this.#store, memoryId, side, types, k, undefined)))
    return this.#withHeaders(workspaceId, memoryId, { items: pages.flatMap((page) => page.items) })
  }

  /** Breadth first; the filter hides a Memory but it is walked through. @throws graph_traverse_depth_exceeded 400, 404. */
  async traverse(workspaceId: string, request: TraverseRequest): Promise<TraverseAnswer> {
    const depth = request.depth <= 0 ? 1 : request.depth
    this.refuseDepth(depth)
    const seed = await this.#require(workspaceId, request.seed_memory_id)
    const walk = await this.walk(workspaceId, [seed.memory_id], depth, request.direction, request.types)
    const steps = walk.layers.flat()
    const tags = await findTags(this.#metadata, [seed.memory_id, ...steps.map((step) => step.memory.memory_id)])
    const layers = walk.layers.map((layer) =>
      layer
        .filter(({ memory }) => isShown(memory, tags.get(memory.memory_id), request.filter))
        .map(({ memory, edge }) => ({
          memory_id: memory.memory_id,
          via_edge_id: edge.edge_id,
          via_edge_type: edge.edge_type,
        })),
    )
    return {
      seed: toHeader(seed, tags.get(seed.memory_id)),
      layers: layers.filter((layer) => layer.length > 0),
      stats: { nodes_visited: steps.length + 1, edges_walked: walk.edgesWalked, truncated: walk.truncated },
    }
  }

  async stats(workspaceId: string): Promise<{ node_count: number; edge_count_by_type: Record<string, number> }> {
    return {
      node_count: await countMemories(this.#metadata, workspaceId),
      edge_count_by_type: await countEdgesByType(this.#store, workspaceId),
    }
  }

  /** @throws graph_traverse_depth_exceeded 400. */
  refuseDepth(depth: number): void {
    const cap = DEPTH_CAPS[this.#store.dialect]
    if (depth <= cap) return
    throw new MemoryError('graph_traverse_depth_exceeded', `depth ${depth} is above this graph store's ${cap}`, {
      depth,
      max_depth: cap,
    })
  }

  /** When a walk that begins now ends at the latest (ms). */
  deadline(): number {
    return this.#clock.now() + WALK_MS
  }

  /**
   * Layers of live Memories around the seeds, each Memory once and no seed; at most 200 Edges a Memory and direction,
   * newest first; cut after 10,000 Edges, or at `deadline`.
   */
  async walk(
    workspaceId: string,
    seeds: readonly string[],
    depth: number,
    direction: Direction,
    types: readonly string[] | undefined,
    deadline = this.deadline(),
  ): Promise<WalkResult> {
    const visited = new Set(seeds)
    const result: WalkResult = { layers: [], edgesWalked: 0, truncated: false }
    const isSpent = (): boolean => result.edgesWalked >= EDGES_WALKED_MAX || this.#clock.now() > deadline
    for (let frontier = [...seeds]; result.layers.length < depth && frontier.length > 0 && !isSpent();) {
      const layer: Step[] = []
      let start = 0
      for (; start < frontier.length && !isSpent(); start += NODES_AT_ONCE) {
        const nodes = frontier.slice(start, start + NODES_AT_ONCE)
        const { edges, cut } = await listEdgesOfMany(this.#store, nodes, direction, types, EDGES_PER_NODE)
        const walked = edges.slice(0, EDGES_WALKED_MAX - result.edgesWalked)
        result.edgesWalked += walked.length
        result.truncated ||= cut || walked.length < edges.length
        layer.push(...(await this.#reach(workspaceId, walked, visited)))
      }
      result.truncated ||= start < frontier.length
      if (layer.length > 0) result.layers.push(layer)
      frontier = layer.map((step) => step.memory.memory_id)
      if (isSpent() && frontier.length > 0 && result.layers.length < depth) result.truncated = true
    }
    return result
  }

  /** The Memories that these Edges reach first. */
  async #reach(
    workspaceId: string,
    edges: readonly { from: string; edge: Edge }[],
    visited: Set<string>,
  ): Promise<Step[]> {
    const farEnds = edges.map(({ from, edge }) => farEnd(edge, from)).filter((id) => !visited.has(id))
    const memories = await findMemories(this.#metadata, workspaceId, [...new Set(farEnds)])
    return edges.flatMap(({ from, edge }) => {
      const memory = memories.get(farEnd(edge, from))
      if (!memory || visited.has(memory.memory_id)) return []
      visited.add(memory.memory_id)
      return [{ memory, from, edge }]
    })
  }

  get #store(): Queryable {
    if (!this.#graph) throw new Error('no graph store is configured')
    return this.#graph
  }

  async #require(workspaceId: string, memoryId: string): Promise<MemoryRow> {
    const memory = await findMemory(this.#metadata, workspaceId, memoryId)
    if (!memory) throw notFound('memory', memoryId)
    return memory
  }

  async #withHeaders(workspaceId: string, memoryId: string, page: Page<Edge>): Promise<EdgesAnswer> {
    const ids = [...new Set(page.items.map((edge) => farEnd(edge, memoryId)))]
    const memories = await findMemories(this.#metadata, workspaceId, ids)
    const tags = await findTags(this.#metadata, ids)
    return {
      // An Edge in another database may outlive its Memory by moments: metadata decides what is shown.
      edges: page.items.filter((edge) => memories.has(farEnd(edge, memoryId))),
      neighbors: ids.flatMap((id) => {
        const row = memories.get(id)
        return row ? [toHeader(row, tags.get(id))] : []
      }),
      ...(page.nextCursor !== undefined && { next_cursor: page.nextCursor }),
    }
  }
}

const farEnd = (edge: Edge, from: string): string =>
  edge.source_memory_id === from ? edge.target_memory_id : edge.source_memory_id

const isShown = (memory: MemoryRow, tags: Tags | undefined, filter: TraverseRequest['filter']): boolean =>
  (filter?.agent_id === undefined || memory.written_by_agent_id === filter.agent_id) &&
  Object.entries(filter?.tags ?? {}).every(([key, value]) => tags?.[key] === value)
