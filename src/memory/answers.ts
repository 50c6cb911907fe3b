import * as z from 'zod'
import { MEMORY_ERRORS } from './errors.ts'
import {
  agentSchema,
  cellSchema,
  collectionSchema,
  EDGE_TYPES,
  edgeSchema,
  headerSchema,
  ID,
  ledgerEntrySchema,
  memorySchema,
  memoryWithCellsSchema,
  pastMemorySchema,
  pinSchema,
  recallAnswerSchema,
  recallHitSchema,
  versionSchema,
  workspaceSchema,
} from './model.ts'

/** What the operations answer with, beside the records themselves: memory.md 3. */

/** A page of a list, under its name. */
const pageOf = (name: string, item: z.ZodType) =>
  z.strictObject({ [name]: z.array(item), next_cursor: z.string().optional() })

export const workspacesAnswer = pageOf('workspaces', workspaceSchema)
export const collectionsAnswer = pageOf('collections', collectionSchema)
export const memoriesAnswer = pageOf('memories', memorySchema)
export const watermarksAnswer = pageOf('watermarks', versionSchema)
export const pinsAnswer = pageOf('pins', pinSchema)
export const agentsAnswer = pageOf('agents', agentSchema)
export const entriesAnswer = pageOf('entries', ledgerEntrySchema)

export const imprintAnswer = z.strictObject({
  memory_id: ID.memory,
  watermark: ID.watermark,
  content_md5: z.string(),
  cells_created: z.int(),
  recall_ready: z.boolean(),
  auto_linked_edges: z.int().optional(),
  written_by_agent_id: z.string(),
  ledger_id: ID.ledger,
  latency_ms: z.number(),
})

/** *E* of memory.md 3.2. */
const editAnswer = z.strictObject({
  memory_id: ID.memory,
  watermark: ID.watermark,
  content_md5: z.string(),
  cells_skipped: z.int(),
  last_modified_by_agent_id: z.string(),
  ledger_id: ID.ledger.optional().describe('Absent when nothing changed'),
  latency_ms: z.number(),
})
export const updateAnswer = editAnswer.extend({ cells_re_embedded: z.int() })
export const patchAnswer = updateAnswer.extend({
  patches_applied: z.int(),
  cells_added: z.int(),
  cells_removed: z.int(),
})
export const appendAnswer = editAnswer.extend({ cells_added: z.int() })

export const forgetAnswer = z.strictObject({
  memory_id: ID.memory,
  watermark: ID.watermark,
  cascaded_edges: z.int(),
  redacted_entries: z.int().optional(),
  warnings: z.array(z.string()).optional(),
  ledger_id: ID.ledger,
})

export const linkAnswer = z.strictObject({ edge: edgeSchema, ledger_id: ID.ledger })
export const batchAnswer = z.strictObject({
  results: z.array(
    z.strictObject({
      index: z.int(),
      status: z.enum(['ok', 'error']),
      edge_id: ID.edge.optional(),
      ledger_id: ID.ledger.optional(),
      error: z.string().optional(),
      error_code: z.string().optional(),
    }),
  ),
  ok: z.int(),
  failed: z.int(),
})
export const neighborsAnswer = z.strictObject({ edges: z.array(edgeSchema), neighbors: z.array(headerSchema) })
export const edgesAnswer = neighborsAnswer.extend({ next_cursor: z.string().optional() })
export const traverseAnswer = z.strictObject({
  seed: headerSchema,
  layers: z.array(
    z.array(z.strictObject({ memory_id: ID.memory, via_edge_id: ID.edge, via_edge_type: z.enum(EDGE_TYPES) })),
  ),
  stats: z.strictObject({ nodes_visited: z.int(), edges_walked: z.int(), truncated: z.boolean() }),
})
export const statsAnswer = z.strictObject({
  node_count: z.int(),
  edge_count_by_type: z.partialRecord(z.enum(EDGE_TYPES), z.int()),
})

export const pinAnswer = z.strictObject({ pin_id: ID.pin, watermark: z.string() })

/** memory.md 3.7. */
export const healthAnswer = z.strictObject({ ok: z.literal(true), status: z.literal('live'), version: z.string() })
const adapter = z.string().describe('`ok` or `down: <reason>`')
export const readyAnswer = z.strictObject({
  ok: z.boolean(),
  status: z.enum(['ready', 'degraded']),
  adapter: z.strictObject({ primary: adapter, vector: adapter, ledger: adapter }),
})

/** Every error outside the console. Contract: memory.md 2.4. */
export const errorEnvelope = z.strictObject({
  error_code: z.enum(Object.keys(MEMORY_ERRORS)),
  message: z.string(),
  details: z.record(z.string(), z.unknown()),
})

/** Records and shared parts by the name that the API document gives them. */
export const NAMED: Readonly<Record<string, z.ZodType>> = {
  Workspace: workspaceSchema,
  Collection: collectionSchema,
  Memory: memorySchema,
  MemoryWithCells: memoryWithCellsSchema,
  PastMemory: pastMemorySchema,
  MemoryHeader: headerSchema,
  Cell: cellSchema,
  WatermarkEntry: versionSchema,
  Edge: edgeSchema,
  Pin: pinSchema,
  Agent: agentSchema,
  LedgerEntry: ledgerEntrySchema,
  RecallHit: recallHitSchema,
  RecallAnswer: recallAnswerSchema,
  Error: errorEnvelope,
}
