import * as z from 'zod'

/** The records of the memory service as they travel: memory.md 1. A key with `?` is left out when it has no value. */

const formOf = (prefix: string): string => `^${prefix}[0-7][0-9A-HJKMNP-TV-Z]{25}$`
export const MEMORY_ID = new RegExp(formOf('mem_'))
/** Told in documents and not checked: an import may bring ids of another make. */
const ulid = (prefix: string): z.ZodString => z.string().meta({ pattern: formOf(prefix) })
/** Ids that the service makes: memory.md 1.1. */
export const ID = {
  workspace: ulid('ws_'),
  collection: ulid('coll_'),
  memory: ulid('mem_'),
  cell: ulid('cell_'),
  edge: ulid('edg_'),
  pin: ulid('pin_'),
  watermark: ulid('wmk_'),
  ledger: ulid('lg_'),
}

const timestamp = z.string().describe('RFC 3339, UTC, three fraction digits')
const object = z.record(z.string(), z.unknown())
const tags = z.record(z.string(), z.string())

export const workspaceSchema = z.strictObject({
  id: ID.workspace,
  name: z.string(),
  region: z.string().optional(),
  chunker_id: z.string().optional(),
  embedding_model: z.string().optional(),
  meta: object.optional(),
  auto_link_enabled: z.boolean(),
  auto_link_threshold: z.number(),
  auto_link_max_edges: z.int(),
  auto_link_max_incoming_per_day: z.int(),
  created_at: timestamp,
  updated_at: timestamp,
})
export type Workspace = z.infer<typeof workspaceSchema>

export const collectionSchema = z.strictObject({
  id: ID.collection,
  workspace_id: ID.workspace,
  name: z.string(),
  created_at: timestamp,
})
export type Collection = z.infer<typeof collectionSchema>

export const cellSchema = z.strictObject({
  cell_id: ID.cell,
  memory_id: ID.memory,
  seq: z.int(),
  text: z.string(),
  text_md5: z.string(),
  written_by_agent_id: z.string(),
  embedding_model: z.string().optional(),
  vector_key: z.string().optional(),
  metadata_json: object.optional(),
  created_at: timestamp,
})
export type Cell = z.infer<typeof cellSchema>

export const memorySchema = z.strictObject({
  id: ID.memory,
  workspace_id: ID.workspace,
  collection_id: ID.collection.optional(),
  content: z.string().optional(),
  content_md5: z.string(),
  head_watermark: ID.watermark,
  created_watermark: ID.watermark,
  written_by_agent_id: z.string(),
  last_modified_by_agent_id: z.string(),
  tags: tags.optional(),
  chunker_id: z.string().optional(),
  chunker_config: tags.optional(),
  recall_ready: z.boolean(),
  created_at: timestamp,
  updated_at: timestamp,
})
export type Memory = z.infer<typeof memorySchema>

export const memoryWithCellsSchema = memorySchema.extend({ cells: z.array(cellSchema) })
export type MemoryWithCells = z.infer<typeof memoryWithCellsSchema>

export const pastMemorySchema = memorySchema.extend({ current_watermark: ID.watermark })
export type PastMemory = z.infer<typeof pastMemorySchema>

/** What neighbours and seeds are shown as. */
export const headerSchema = z.strictObject({
  memory_id: ID.memory,
  workspace_id: ID.workspace,
  collection_id: ID.collection.optional(),
  content_md5: z.string(),
  head_watermark: ID.watermark,
  tags: tags.optional(),
})
export type MemoryHeader = z.infer<typeof headerSchema>

export const versionSchema = z.strictObject({
  target_id: ID.memory,
  watermark: ID.watermark,
  op: z.enum(['imprint', 'update', 'patch', 'append']),
  agent_id: z.string(),
  created_at: timestamp,
  content_md5_before: z.string().optional(),
  content_md5_after: z.string(),
})
export type WatermarkEntry = z.infer<typeof versionSchema>
export type VersionOp = WatermarkEntry['op']

/** Edge types a client may name; `vector_neighbor` is made by auto-link only. */
export const CLIENT_EDGE_TYPES = [
  'parent_of',
  'derived_from',
  'supersedes',
  'references',
  'session_of',
  'mentions',
] as const
export const SYNTHETIC_EDGE_TYPE = 'vector_neighbor'
export const EDGE_TYPES = [...CLIENT_EDGE_TYPES, SYNTHETIC_EDGE_TYPE] as const
export type EdgeType = (typeof EDGE_TYPES)[number]

export const edgeSchema = z.strictObject({
  edge_id: ID.edge,
  workspace_id: ID.workspace,
  source_memory_id: ID.memory,
  target_memory_id: ID.memory,
  edge_type: z.enum(EDGE_TYPES),
  properties_json: object.optional(),
  created_by_agent_id: z.string(),
  created_at: timestamp,
  watermark: ID.watermark,
})
export type Edge = z.infer<typeof edgeSchema>

export const RECALL_MODES = ['lookup', 'keyword', 'vector', 'hybrid'] as const
export type RecallMode = (typeof RECALL_MODES)[number]

export const pinSchema = z.strictObject({
  pin_id: ID.pin,
  workspace_id: ID.workspace,
  query: z.string(),
  mode: z.enum(RECALL_MODES),
  k: z.int(),
  watermark: z.string(),
  label: z.string().optional(),
  created_by: z.string().optional(),
  created_at: timestamp,
})
export type Pin = z.infer<typeof pinSchema>

export const agentSchema = z.strictObject({
  agent_id: z.string(),
  workspace_id: ID.workspace,
  display_name: z.string().optional(),
  identity_provider: z.string(),
  identity_proof_hash: z.string().optional(),
  agent_type: z.string().optional(),
  model: z.string().optional(),
  capabilities: object.optional(),
  registered_at: timestamp,
  last_seen_at: timestamp.optional(),
  active: z.boolean(),
})
export type Agent = z.infer<typeof agentSchema>

/** Makes the Edges of auto-link. */
export const AUTO_LINK_AGENT = 'agent_system_auto_link'
/** Acts where a mutation names no agent. */
export const SYSTEM_AGENT = 'agent_system'
export const RESERVED_AGENTS: readonly string[] = [AUTO_LINK_AGENT, SYSTEM_AGENT]

export const LEDGER_OPS = [
  'imprint',
  'update',
  'patch',
  'append',
  'forget',
  'tag_set',
  'tag_delete',
  'link',
  'unlink',
  'edge_cascade_forget',
  'graph_link',
  'auto_link_skipped',
  'embed_failed',
  'workspace_create',
  'workspace_update',
  'workspace_delete',
  'collection_create',
  'collection_delete',
  'agent_register',
  'agent_deactivate',
  'pin_create',
  'pin_delete',
  'orphan_gc',
  'migrate_content',
  'migrate_embeddings',
] as const
export type LedgerOp = (typeof LEDGER_OPS)[number]

export const ledgerEntrySchema = z.strictObject({
  ledger_id: ID.ledger,
  workspace_id: ID.workspace,
  seq: z.int(),
  op: z.enum(LEDGER_OPS),
  agent_id: z.string(),
  ts: timestamp,
  target: z.string().optional(),
  watermark_before: ID.watermark.optional(),
  watermark_after: ID.watermark.optional(),
  request_id: z.string(),
  latency_ms: z.number(),
  api_key_id: z.string().optional(),
  user_id: z.string().optional(),
  ip: z.string().optional(),
  user_agent: z.string().optional(),
  metadata: object.optional(),
  redact_audit: z.boolean().optional(),
  redacted: z.boolean().optional(),
  redacted_fields: z.array(z.string()).optional(),
  prev_hash: z.string(),
  entry_hash: z.string(),
})
export type LedgerEntry = z.infer<typeof ledgerEntrySchema>

export const recallHitSchema = z.strictObject({
  memory_id: ID.memory,
  cell_id: ID.cell.optional(),
  score: z.number(),
  vector_score: z.number().optional(),
  keyword_score: z.number().optional(),
  text: z.string(),
  tags: tags.optional(),
  watermark: ID.watermark,
  written_by_agent_id: z.string(),
  via: z.enum(['seed', 'graph']),
  graph_provenance: z
    .strictObject({ from_memory_id: ID.memory, edge_id: ID.edge, edge_type: z.enum(EDGE_TYPES), layer: z.int() })
    .optional(),
  cells: z.array(z.strictObject({ cell_id: ID.cell, seq: z.int(), text: z.string(), score: z.number() })).optional(),
})
export type RecallHit = z.infer<typeof recallHitSchema>

export const recallAnswerSchema = z.strictObject({
  results: z.array(recallHitSchema),
  total_candidates_scanned: z.int(),
  graph_nodes_expanded: z.int().optional(),
  latency_ms: z.number(),
  embedding_pending: z.boolean(),
  warnings: z.array(z.string()).optional(),
})
export type RecallAnswer = z.infer<typeof recallAnswerSchema>
