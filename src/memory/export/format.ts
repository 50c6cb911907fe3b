import * as z from 'zod'
import { toTimestamp } from '../../base/clock.ts'
import { isMap } from '../../base/json.ts'
import { EDGE_TYPES, LEDGER_OPS, RECALL_MODES, versionSchema } from '../model.ts'

/**
 * What a store is exported as: JSON lines. A header, then workspace by workspace its records in the order of `RECORDS`, then
 * an end record with the digest of all before it. A value that is not there is left out, as is a flag that is off. Records
 * are rows without their workspace, and without what follows from others or from the place: vectors, numbers of rows, queues.
 * The format in full: docs/export-and-import.md.
 */
export const FORMAT = 'mem-export'
/** Goes up when an older program would misread what is written; reading refuses a newer one. */
export const FORMAT_VERSION = 1

/** A file that is no export, or no longer a whole one; the message says where and what to do. */
export class ExportError extends Error {}

const text = z.string()
const maybe = z.codec(z.string().optional(), z.string().nullable(), {
  decode: (value) => value ?? null,
  encode: (value) => value ?? undefined,
})

const toMs = (value: string, { issues }: { issues: z.core.$ZodRawIssue[] }): number => {
  const ms = Date.parse(value)
  if (!Number.isNaN(ms) && toTimestamp(ms) === value) return ms
  issues.push({ code: 'custom', input: value, message: 'is not a time like 2026-01-02T03:04:05.678Z' })
  return z.NEVER
}
const time = z.codec(z.string(), z.int(), { decode: toMs, encode: toTimestamp })
const maybeTime = z.codec(z.string().optional(), z.int().nullable(), {
  decode: (value, context) => (value === undefined ? null : toMs(value, context)),
  encode: (value) => (value === null ? undefined : toTimestamp(value)),
})
const flag = z.codec(z.literal(true).optional(), z.int(), {
  decode: (value) => Number(value ?? false),
  encode: (value) => (value === 1 ? true : undefined),
})
function objectOf(value: unknown): object {
  if (typeof value === 'object' && value !== null) return value
  throw new Error('a column of JSON objects holds something else')
}
/** z.record would lose the key `__proto__`. */
const jsonText = (isRight: (value: unknown) => boolean) =>
  z.codec(z.custom<object>(isRight).optional(), z.string().nullable(), {
    decode: (value) => (value === undefined ? null : JSON.stringify(value)),
    encode: (value) => (value === null ? undefined : objectOf(JSON.parse(value))),
  })
const isStringMap = (value: unknown): boolean =>
  isMap(value) && Object.values(value).every((item) => typeof item === 'string')
const object = jsonText(isMap)
const strings = jsonText(isStringMap)
const bytes = z.codec(z.base64().optional(), z.custom<Uint8Array>((value) => value instanceof Uint8Array).nullable(), {
  decode: (value) => (value === undefined ? null : Buffer.from(value, 'base64')),
  encode: (value) => (value === null ? undefined : Buffer.from(value).toString('base64')),
})

/** Each record by its `type`; decoded, it is a row. In this order they stand in a workspace. */
export const RECORDS = {
  /** Begins what belongs to a workspace: its ledger's last entry. */
  chain: z.strictObject({ type: z.literal('chain'), workspace_id: text, seq: z.int().min(0), head_hash: text }),
  /** Missing where the workspace was deleted: its ledger stays. */
  workspace: z.strictObject({
    type: z.literal('workspace'),
    name: text,
    region: maybe,
    chunker_id: maybe,
    embedding_model: maybe,
    meta: object,
    auto_link_enabled: flag,
    auto_link_threshold: z.number(),
    auto_link_max_edges: z.int(),
    auto_link_max_incoming_per_day: z.int(),
    created_at: time,
    updated_at: time,
  }),
  collection: z.strictObject({ type: z.literal('collection'), collection_id: text, name: text, created_at: time }),
  agent: z.strictObject({
    type: z.literal('agent'),
    agent_id: text,
    display_name: maybe,
    identity_provider: text,
    identity_proof_hash: maybe,
    agent_type: maybe,
    model: maybe,
    capabilities: object,
    registered_at: time,
    last_seen_at: maybeTime,
    active: flag,
  }),
  pin: z.strictObject({
    type: z.literal('pin'),
    pin_id: text,
    query: text,
    mode: z.enum(RECALL_MODES),
    k: z.int(),
    watermark: text,
    label: maybe,
    created_by: maybe,
    created_at: time,
  }),
  /** Live ones by age, then the tombstones of forgotten ones by id. */
  memory: z.strictObject({
    type: z.literal('memory'),
    memory_id: text,
    collection_id: maybe,
    content_md5: text,
    head_watermark: text,
    created_watermark: text,
    written_by_agent_id: text,
    last_modified_by_agent_id: text,
    chunker_id: maybe,
    chunker_config: strings,
    cell_count: z.int().min(0),
    auto_link_due: flag,
    created_at: time,
    updated_at: time,
    forgotten_at: maybeTime,
    tags: z.custom<Record<string, string>>(isStringMap).optional(),
  }),
  /** Of the Memory before it, the first one first; the last one is its head. */
  version: z.strictObject({
    type: z.literal('version'),
    watermark: text,
    version_no: z.int().min(1),
    op: versionSchema.shape.op,
    agent_id: text,
    content_md5_before: maybe,
    content_md5_after: text,
    content: text,
    tags: strings,
    created_at: time,
    superseded_at: maybeTime,
  }),
  /** Of the Memory before it, by `seq`. */
  cell: z.strictObject({
    type: z.literal('cell'),
    cell_id: text,
    seq: z.int(),
    text,
    text_md5: text,
    agent_id: text,
    metadata_json: object,
    created_at: time,
  }),
  edge: z.strictObject({
    type: z.literal('edge'),
    edge_id: text,
    source_memory_id: text,
    target_memory_id: text,
    edge_type: z.enum(EDGE_TYPES),
    properties_json: object,
    created_by_agent_id: text,
    created_at: time,
    watermark: text,
  }),
  /** By `seq`, without gaps. `salt` is what `pii_digest` was made with. */
  ledger: z.strictObject({
    type: z.literal('ledger'),
    ledger_id: text,
    seq: z.int(),
    op: z.enum(LEDGER_OPS),
    agent_id: text,
    ts: time,
    target: maybe,
    watermark_before: maybe,
    watermark_after: maybe,
    request_id: text,
    latency_ms: z.number(),
    api_key_id: maybe,
    user_id: maybe,
    metadata: object,
    ip: maybe,
    user_agent: maybe,
    redact_audit: flag,
    redacted_fields: jsonText(Array.isArray),
    salt: bytes,
    pii_digest: text,
    prev_hash: text,
    entry_hash: text,
  }),
} as const

export type RecordType = keyof typeof RECORDS
export type RecordOf<Type extends RecordType> = z.output<(typeof RECORDS)[Type]>
export type ExportRecord = { [Type in RecordType]: RecordOf<Type> }[RecordType]

export const headerSchema = z.object({ type: z.literal('header'), format: z.literal(FORMAT), version: z.int() })

/** The last line: how many lines stand between header and end, and the SHA-256 of all lines before. */
export const endSchema = z.strictObject({ type: z.literal('end'), records: z.int(), sha256: z.string() })

export const recordSchema = z.discriminatedUnion('type', [
  RECORDS.chain,
  RECORDS.workspace,
  RECORDS.collection,
  RECORDS.agent,
  RECORDS.pin,
  RECORDS.memory,
  RECORDS.version,
  RECORDS.cell,
  RECORDS.edge,
  RECORDS.ledger,
])
