import { toTimestamp } from '../../base/clock.ts'
import { inList, type Param, type Queryable } from '../../database/database.ts'
import type { LedgerEntry, LedgerOp } from '../model.ts'
import { fromJson, insertMany, optional } from './rows.ts'

/** An entry as stored. */
export interface LedgerRow {
  ledger_id: string
  workspace_id: string
  seq: number
  op: LedgerOp
  agent_id: string
  ts: number
  target: string | null
  watermark_before: string | null
  watermark_after: string | null
  request_id: string
  latency_ms: number
  api_key_id: string | null
  user_id: string | null
  metadata: string | null
  ip: string | null
  user_agent: string | null
  redact_audit: number
  /** JSON list of the fields that redaction took; null when not redacted. */
  redacted_fields: string | null
  salt: Uint8Array | null
  pii_digest: string
  prev_hash: string
  entry_hash: string
}

const REDACTED = '[REDACTED]'

/** The entry as shown; what redaction erased shows as such. */
export function toLedgerEntry(row: LedgerRow): LedgerEntry {
  const redacted: string[] | undefined = row.redacted_fields === null ? undefined : JSON.parse(row.redacted_fields)
  const gone = (field: string): boolean => redacted?.includes(field) ?? false
  return {
    ledger_id: row.ledger_id,
    workspace_id: row.workspace_id,
    seq: row.seq,
    op: row.op,
    agent_id: row.agent_id,
    ts: toTimestamp(row.ts),
    ...optional('target', row.target),
    ...optional('watermark_before', row.watermark_before),
    ...optional('watermark_after', row.watermark_after),
    request_id: row.request_id,
    latency_ms: row.latency_ms,
    ...optional('api_key_id', row.api_key_id),
    ...optional('user_id', row.user_id),
    ...optional('ip', gone('ip') ? REDACTED : row.ip),
    ...optional('user_agent', gone('user_agent') ? REDACTED : row.user_agent),
    ...optional('metadata', gone('metadata') ? { _redacted: REDACTED } : fromJson(row.metadata)),
    ...(row.redact_audit === 1 && { redact_audit: true }),
    ...(redacted && { redacted: true, redacted_fields: redacted }),
    prev_hash: row.prev_hash,
    entry_hash: row.entry_hash,
  }
}

const COLUMNS = `ledger_id, workspace_id, seq, op, agent_id, ts, target, watermark_before, watermark_after, request_id,
  latency_ms, api_key_id, user_id, metadata, ip, user_agent, redact_audit, redacted_fields, salt, pii_digest, prev_hash, entry_hash`

/** An entry that is there already is left alone: delivery from another database may come twice. */
export async function insertEntries(tx: Queryable, rows: readonly LedgerRow[]): Promise<void> {
  await insertMany(
    tx,
    'ledger',
    COLUMNS,
    rows.map((row) => [
      row.ledger_id,
      row.workspace_id,
      row.seq,
      row.op,
      row.agent_id,
      row.ts,
      row.target,
      row.watermark_before,
      row.watermark_after,
      row.request_id,
      row.latency_ms,
      row.api_key_id,
      row.user_id,
      row.metadata,
      row.ip,
      row.user_agent,
      row.redact_audit,
      row.redacted_fields,
      row.salt,
      row.pii_digest,
      row.prev_hash,
      row.entry_hash,
    ]),
    'ON CONFLICT (ledger_id) DO NOTHING RETURNING seq',
  )
}

export interface LedgerFilter {
  /** Inclusive, ms. */
  since?: number | undefined
  until?: number | undefined
  /** An `api_key_id` or a `user_id`. */
  actor?: string | undefined
  agentId?: string | undefined
  memoryId?: string | undefined
  edgeId?: string | undefined
  ops?: readonly string[] | undefined
}

/** `desc`: entries older than `afterSeq`, newest first; `asc`: newer ones, oldest first. */
export function queryEntries(
  db: Queryable,
  workspaceId: string,
  filter: LedgerFilter,
  order: 'asc' | 'desc',
  afterSeq: number | undefined,
  limit: number,
): Promise<LedgerRow[]> {
  const params: Param[] = [workspaceId]
  const conditions = ['workspace_id = $1']
  const add = (value: Param | undefined, condition: (param: string) => string): void => {
    if (value !== undefined) conditions.push(condition(`$${params.push(value)}`))
  }
  add(afterSeq, (p) => `seq ${order === 'asc' ? '>' : '<'} ${p}`)
  add(filter.since, (p) => `ts >= ${p}`)
  add(filter.until, (p) => `ts <= ${p}`)
  add(filter.actor, (p) => `(api_key_id = ${p} OR user_id = ${p})`)
  add(filter.agentId, (p) => `agent_id = ${p}`)
  add(filter.memoryId, (p) => `target = ${p}`)
  add(filter.edgeId, (p) => `(target = ${p} OR (op = 'graph_link' AND ${jsonField(db, 'edge_id')} = ${p}))`)
  add(filter.ops && JSON.stringify(filter.ops), (p) => `op IN ${inList(db, p)}`)
  const limitParam = `$${params.push(limit)}`
  return db.all<LedgerRow>(
    `SELECT * FROM ledger WHERE ${conditions.join(' AND ')} ORDER BY seq ${order} LIMIT ${limitParam}`,
    params,
  )
}

const jsonField = (db: Queryable, field: string): string =>
  db.dialect === 'sqlite' ? `json_extract(metadata, '$.${field}')` : `(metadata::json ->> '${field}')`

/** The number of an entry in its workspace's chain. By the primary key. */
export async function findEntrySeq(db: Queryable, workspaceId: string, ledgerId: string): Promise<number | undefined> {
  const row = await db.get<{ seq: number }>('SELECT seq FROM ledger WHERE ledger_id = $1 AND workspace_id = $2', [
    ledgerId,
    workspaceId,
  ])
  return row?.seq
}

/**
 * Erases metadata, ip, user_agent and salt of every entry whose target it is; the digest keeps the chain valid.
 * Gives the number of entries. Relies on ledger_by_target.
 */
export function redactEntries(tx: Queryable, workspaceId: string, target: string): Promise<number> {
  return tx.run(
    `UPDATE ledger SET metadata = NULL, ip = NULL, user_agent = NULL, salt = NULL,
       redacted_fields = '["metadata"' || CASE WHEN ip IS NULL THEN '' ELSE ',"ip"' END
         || CASE WHEN user_agent IS NULL THEN '' ELSE ',"user_agent"' END || ']'
      WHERE workspace_id = $1 AND target = $2 AND redacted_fields IS NULL`,
    [workspaceId, target],
  )
}

/** Entries of a target. Relies on ledger_by_target. */
export async function countEntries(db: Queryable, workspaceId: string, target: string): Promise<number> {
  const row = await db.get<{ n: number }>('SELECT count(*) AS n FROM ledger WHERE workspace_id = $1 AND target = $2', [
    workspaceId,
    target,
  ])
  return row?.n ?? 0
}

/** What `redactEntries` does to stored entries, for one that is not stored yet. */
export const redactRow = (row: LedgerRow): LedgerRow => ({
  ...row,
  metadata: null,
  ip: null,
  user_agent: null,
  salt: null,
  redacted_fields: JSON.stringify(['metadata', ...(row.ip ? ['ip'] : []), ...(row.user_agent ? ['user_agent'] : [])]),
})

/** Entries in `seq` order from `afterSeq` on, for verification. */
export function readChain(db: Queryable, workspaceId: string, afterSeq: number, limit: number): Promise<LedgerRow[]> {
  return db.all<LedgerRow>('SELECT * FROM ledger WHERE workspace_id = $1 AND seq > $2 ORDER BY seq LIMIT $3', [
    workspaceId,
    afterSeq,
    limit,
  ])
}

/** Whether a forget of the target asked for redaction. Relies on ledger_by_target. */
export async function hasRedactingForget(db: Queryable, workspaceId: string, target: string): Promise<boolean> {
  const row = await db.get(
    `SELECT 1 FROM ledger WHERE workspace_id = $1 AND target = $2 AND op = 'forget' AND redact_audit = 1 LIMIT 1`,
    [workspaceId, target],
  )
  return row !== undefined
}
