/**
 * The wire shapes of the memory service (memory.md 1, 3, 4) but for those of the graph, as plain types: what
 * `MemoryClient` sends and receives.
 * Times are RFC 3339 UTC with milliseconds; an absent key has no value (never null).
 */

import type { Direction, EdgeType } from './graph-types.ts'

export type Tags = Record<string, string>
/** A free-form JSON object. */
export type JsonObject = Record<string, unknown>
/** Any list answer: `next_cursor` only when more rows exist. */
export type Listed<Key extends string, Item> = Record<Key, Item[]> & { next_cursor?: string }

export interface Page {
  limit?: number | undefined
  cursor?: string | undefined
}

// Workspaces and collections (1.2, 1.3)

export interface WorkspaceRequest {
  name: string
  region?: string | undefined
  chunker_id?: string | undefined
  /** `provider:model` */
  embedding_model?: string | undefined
  meta?: JsonObject | undefined
  auto_link_enabled?: boolean | undefined
  auto_link_threshold?: number | undefined
  auto_link_max_edges?: number | undefined
  auto_link_max_incoming_per_day?: number | undefined
}

export interface Workspace extends WorkspaceRequest {
  id: string
  auto_link_enabled: boolean
  auto_link_threshold: number
  auto_link_max_edges: number
  auto_link_max_incoming_per_day: number
  created_at: string
  updated_at: string
}

export interface CollectionRequest {
  name: string
}

export interface Collection {
  id: string
  workspace_id: string
  name: string
  created_at: string
}

// Memories (1.4 to 1.6, 3.2)

export interface Memory {
  id: string
  workspace_id: string
  collection_id?: string
  content: string
  content_md5: string
  head_watermark: string
  created_watermark: string
  written_by_agent_id: string
  last_modified_by_agent_id: string
  tags?: Tags
  chunker_id?: string
  chunker_config?: Record<string, string>
  recall_ready: boolean
  created_at: string
  updated_at: string
}

/** A Memory of a list; `include_content: false` leaves `content` out. */
export type ListedMemory = Omit<Memory, 'content'> & { content?: string }

export interface MemoryWithCells extends Memory {
  cells: Cell[]
}

/** A past version; `head_watermark` is the asked one, `current_watermark` the head's. */
export interface MemoryVersion extends Memory {
  current_watermark: string
}

export interface MemoryHeader {
  memory_id: string
  workspace_id: string
  collection_id?: string
  content_md5: string
  head_watermark: string
  tags?: Tags
}

export interface Cell {
  cell_id: string
  memory_id: string
  seq: number
  text: string
  text_md5: string
  written_by_agent_id: string
  embedding_model?: string
  vector_key?: string
  metadata_json?: JsonObject
  created_at: string
}

export interface ImprintRequest {
  content: string
  collection_id?: string | undefined
  tags?: Tags | undefined
  chunker_id?: string | undefined
  chunker_config?: Record<string, string> | undefined
  auto_link?: boolean | undefined
}

export interface ImprintResult {
  memory_id: string
  watermark: string
  content_md5: string
  cells_created: number
  recall_ready: boolean
  auto_linked_edges?: number
  written_by_agent_id: string
  ledger_id: string
  latency_ms: number
}

export interface UpdateRequest {
  content: string
  /** Absent keeps the tags, present replaces all. */
  tags?: Tags | undefined
}

export interface PatchOperation {
  old_string: string
  new_string: string
  replace_all?: boolean | undefined
}

export interface PatchRequest {
  patch: PatchOperation[]
}

export interface AppendRequest {
  content: string
}

/** What update, patch and append have in common. */
export interface EditResult {
  memory_id: string
  watermark: string
  content_md5: string
  cells_skipped: number
  last_modified_by_agent_id: string
  ledger_id: string
  latency_ms: number
}

export interface UpdateResult extends EditResult {
  cells_re_embedded: number
}

/** `ledger_id` is absent when the text did not change. */
export interface PatchResult extends Omit<EditResult, 'ledger_id'> {
  ledger_id?: string
  patches_applied: number
  cells_re_embedded: number
  cells_added: number
  cells_removed: number
}

export interface AppendResult extends EditResult {
  cells_added: number
}

export interface ForgetQuery {
  redact_audit?: boolean | undefined
}

export interface ForgetResult {
  memory_id: string
  watermark: string
  cascaded_edges: number
  redacted_entries?: number
  warnings?: string[]
  ledger_id: string
}

export interface MemoryListQuery extends Page {
  collection_id?: string | undefined
  include_content?: boolean | undefined
}

export interface WatermarkEntry {
  target_id: string
  watermark: string
  op: 'imprint' | 'update' | 'patch' | 'append'
  agent_id: string
  created_at: string
  content_md5_before?: string
  content_md5_after: string
}

// Recall and pins (4, 1.8)

export type RecallMode = 'lookup' | 'keyword' | 'vector' | 'hybrid'

export interface RecallRequest {
  /** Required and non-blank except in `lookup`. */
  query?: string | undefined
  mode?: RecallMode | undefined
  k?: number | undefined
  filters?:
    | {
        collection_id?: string | undefined
        tags?: Record<string, string | string[]> | undefined
        ts_after?: string | undefined
        ts_before?: string | undefined
        agent_id?: string | undefined
        agent_id_in?: string[] | undefined
        agent_id_not_in?: string[] | undefined
      }
    | undefined
  weights?: { vector?: number | undefined; keyword?: number | undefined } | undefined
  include_cells?: boolean | undefined
  memory_ids?: string[] | undefined
  graph_expansion?:
    | {
        depth: number
        edge_types?: EdgeType[] | undefined
        direction?: Direction | undefined
        weight?: number | undefined
        max_neighbors?: number | undefined
        include_neighbors_in_response?: boolean | undefined
      }
    | undefined
}

export interface RecallHit {
  memory_id: string
  cell_id?: string
  score: number
  vector_score?: number
  keyword_score?: number
  text: string
  tags?: Tags
  watermark: string
  written_by_agent_id: string
  via: 'seed' | 'graph'
  graph_provenance?: { from_memory_id: string; edge_id: string; edge_type: EdgeType; layer: number }
  cells?: { cell_id: string; seq: number; text: string; score: number }[]
}

export interface RecallResult {
  results: RecallHit[]
  total_candidates_scanned: number
  graph_nodes_expanded?: number
  latency_ms: number
  embedding_pending: boolean
  warnings?: string[]
}

export interface PinRequest {
  query: string
  mode?: RecallMode | undefined
  k?: number | undefined
  watermark?: string | undefined
  label?: string | undefined
}

export interface PinResult {
  pin_id: string
  watermark: string
}

export interface Pin {
  pin_id: string
  workspace_id: string
  query: string
  mode: RecallMode
  k: number
  watermark: string
  label?: string
  created_by?: string
  created_at: string
}

// Agents, ledger, operation (1.9, 1.10, 3.7)

export interface AgentRequest {
  /** Must start `agent_`. */
  agent_id: string
  identity_provider: string
  display_name?: string | undefined
  identity_proof?: JsonObject | undefined
  agent_type?: string | undefined
  model?: string | undefined
  capabilities?: JsonObject | undefined
}

export interface Agent extends Omit<AgentRequest, 'identity_proof'> {
  workspace_id: string
  identity_proof_hash?: string
  registered_at: string
  last_seen_at?: string
  active: boolean
}

export interface LedgerQuery extends Page {
  /** Both bounds inclusive. */
  since?: string | undefined
  until?: string | undefined
  /** Matches `api_key_id` or `user_id`. */
  actor?: string | undefined
  agent_id?: string | undefined
  memory_id?: string | undefined
  edge_id?: string | undefined
  /** Comma list. */
  op?: string | undefined
  since_ledger_id?: string | undefined
  order?: 'desc' | 'asc' | undefined
}

export interface LedgerEntry {
  ledger_id: string
  workspace_id: string
  seq: number
  op: string
  agent_id: string
  ts: string
  target?: string
  watermark_before?: string
  watermark_after?: string
  request_id: string
  latency_ms: number
  api_key_id?: string
  user_id?: string
  ip?: string
  user_agent?: string
  metadata?: JsonObject
  redact_audit?: boolean
  redacted?: boolean
  redacted_fields?: string[]
  prev_hash: string
  entry_hash: string
}

export interface Health {
  ok: true
  status: 'live'
  version: string
}

export interface Readiness {
  ok: boolean
  status: 'ready' | 'degraded'
  /** `ok` or `down: <reason>` each. */
  adapter: { primary: string; vector: string; ledger: string }
}

/** The body of every error answer (2.4). */
export interface ErrorEnvelope {
  error_code: string
  message: string
  details: JsonObject
}
