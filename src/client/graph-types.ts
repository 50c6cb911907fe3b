import type { JsonObject, Listed, MemoryHeader, Page, Tags } from './types.ts'

/** The wire shapes of the graph: memory.md 1.7 and 3.3. */

/** What a client may link with. */
export type LinkType = 'parent_of' | 'derived_from' | 'supersedes' | 'references' | 'session_of' | 'mentions'
export type EdgeType = LinkType | 'vector_neighbor'
export type Direction = 'out' | 'in' | 'both'

export interface Edge {
  edge_id: string
  workspace_id: string
  source_memory_id: string
  target_memory_id: string
  edge_type: EdgeType
  properties_json?: JsonObject
  created_by_agent_id: string
  created_at: string
  watermark: string
}

export interface LinkRequest {
  target_memory_id: string
  edge_type: LinkType
  properties_json?: JsonObject | undefined
}

export interface LinkResult {
  edge: Edge
  ledger_id: string
}

export interface BatchEdge extends LinkRequest {
  source_memory_id: string
}

export interface LinkBatchRequest {
  edges: BatchEdge[]
}

export interface LinkBatchResult {
  results: {
    index: number
    status: 'ok' | 'error'
    edge_id?: string
    ledger_id?: string
    error?: string
    error_code?: string
  }[]
  ok: number
  failed: number
}

export interface EdgeListQuery extends Page {
  direction?: Direction | undefined
  /** Comma list. */
  type?: string | undefined
}

export type EdgeList = Listed<'edges', Edge> & { neighbors: MemoryHeader[] }

export interface NeighborsRequest {
  memory_id: string
  direction?: Direction | undefined
  edge_types?: EdgeType[] | undefined
  /** Per direction, at most 200. */
  k?: number | undefined
}

export interface NeighborsResult {
  edges: Edge[]
  neighbors: MemoryHeader[]
}

export interface TraverseRequest {
  seed_memory_id: string
  depth?: number | undefined
  direction?: Direction | undefined
  edge_types?: EdgeType[] | undefined
  filter?: { agent_id?: string | undefined; tags?: Tags | undefined } | undefined
}

export interface TraverseResult {
  seed: MemoryHeader
  layers: { memory_id: string; via_edge_id: string; via_edge_type: EdgeType }[][]
  stats: { nodes_visited: number; edges_walked: number; truncated: boolean }
}

export interface GraphStats {
  node_count: number
  edge_count_by_type: Partial<Record<EdgeType, number>>
}
