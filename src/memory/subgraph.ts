import type { Edge } from './model.ts'
import type { MemoryService } from './service.ts'
import { listEdgesOfMany } from './store/edges.ts'
import { findMemory, listMemories } from './store/memories.ts'
import { notFound } from './errors.ts'

/** As many as a page can draw and a person can read. */
const NODES_MAX = 300
const NEWEST = 100
const EDGES_PER_NODE = 200

export interface Subgraph {
  /** Nearest first. */
  memoryIds: string[]
  /** Those between these Memories. */
  edges: Edge[]
  /** There is more than what is shown. */
  truncated: boolean
}

/**
 * The surroundings of a Memory, Edges followed both ways; without a seed the newest Memories and what they touch.
 * @throws not_found 404, graph_traverse_depth_exceeded 400.
 */
export async function subgraph(
  { seams, graph }: MemoryService,
  workspaceId: string,
  seed: string | undefined,
  depth: number,
): Promise<Subgraph> {
  if (!seams.graph) return { memoryIds: [], edges: [], truncated: false }
  graph.refuseDepth(depth)
  const starts = seed === undefined ? await newest(seams.metadata, workspaceId) : [seed]
  if (seed !== undefined && !(await findMemory(seams.metadata, workspaceId, seed))) throw notFound('memory', seed)
  const walk = await graph.walk(workspaceId, starts, seed === undefined ? 1 : depth, 'both', undefined)
  const reached = [...starts, ...walk.layers.flat().map((step) => step.memory.memory_id)]
  const memoryIds = reached.slice(0, NODES_MAX)
  const shown = new Set(memoryIds)
  const { edges, cut } = await listEdgesOfMany(seams.graph, memoryIds, 'out', undefined, EDGES_PER_NODE)
  return {
    memoryIds,
    edges: edges.map(({ edge }) => edge).filter((edge) => shown.has(edge.target_memory_id)),
    truncated: cut || walk.truncated || reached.length > NODES_MAX,
  }
}

async function newest(db: Parameters<typeof listMemories>[0], workspaceId: string): Promise<string[]> {
  const { items } = await listMemories(db, workspaceId, undefined, NEWEST, undefined)
  return items.map((row) => row.memory_id)
}
