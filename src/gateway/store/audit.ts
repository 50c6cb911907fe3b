import { toTimestamp } from '../../base/clock.ts'
import type { Param, Queryable } from '../../database/database.ts'
import { optional, returned } from '../../database/rows.ts'
import { auditHash, GENESIS_HASH, type AuditRecord } from '../audit-chain.ts'

/** A record before it takes its place in the chain. */
export type AuditEntry = Omit<AuditRecord, 'id' | 'seq' | 'prev_hash' | 'hash' | 'at'> & { at: number }

interface StoredRow {
  id: number
  organization_id: number
  seq: number
  prev_hash: string
  hash: string
  at: number
  actor_type: AuditRecord['actor']['type']
  actor_id: number | null
  action: string
  target_type: string
  target_id: string
  target_name: string | null
  changes: string | null
  request_id: string | null
  ip: string | null
  user_agent: string | null
  count: number
}

/** Whoever tampers may leave what is neither JSON nor a time: it is shown as it lies, and its hash tells. */
function orAsItLies<T>(read: () => T, stored: unknown): T {
  try {
    return read()
  } catch {
    return stored as T
  }
}

const changesOf = (text: string | null) =>
  text === null ? null : orAsItLies(() => JSON.parse(text) as NonNullable<AuditRecord['changes']>, text)

const toRecord = (row: StoredRow): AuditRecord => ({
  id: row.id,
  organization_id: row.organization_id,
  seq: row.seq,
  prev_hash: row.prev_hash,
  hash: row.hash,
  at: orAsItLies(() => toTimestamp(row.at), row.at),
  actor: { type: row.actor_type, ...optional('id', row.actor_id) },
  action: row.action,
  target: { type: row.target_type, id: row.target_id, ...optional('name', row.target_name) },
  ...optional('changes', changesOf(row.changes)),
  ...optional('request_id', row.request_id),
  ...optional('ip', row.ip),
  ...optional('user_agent', row.user_agent),
  count: row.count,
})

export interface Chain {
  seq: number
  hash: string
}

/** The end of an organization's chain; undefined before its first record. By the primary key. */
export const readChain = (db: Queryable, organizationId: number): Promise<Chain | undefined> =>
  db.get<Chain>('SELECT seq, hash FROM gateway_audit_chains WHERE organization_id = $1', [organizationId])

/** Puts a record at the end of its organization's chain; others wait until this transaction ends. */
export async function appendRecord(tx: Queryable, { at, ...entry }: AuditEntry): Promise<void> {
  const { organization_id: organizationId, actor, target, changes } = entry
  const last = returned(
    await tx.get<Chain>(
      `INSERT INTO gateway_audit_chains (organization_id, seq, hash) VALUES ($1, 1, $2)
       ON CONFLICT (organization_id) DO UPDATE SET seq = gateway_audit_chains.seq + 1 RETURNING seq, hash`,
      [organizationId, GENESIS_HASH],
    ),
  )
  const row = returned(
    await tx.get<StoredRow>(
      `INSERT INTO gateway_audit_records (organization_id, seq, prev_hash, hash, at, actor_type, actor_id, action,
       target_type, target_id, target_name, changes, request_id, ip, user_agent, count)
     VALUES ($1, $2, $3, '', $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) RETURNING *`,
      [
        organizationId,
        last.seq,
        last.hash,
        at,
        actor.type,
        actor.id ?? null,
        entry.action,
        target.type,
        target.id,
        target.name ?? null,
        changes ? JSON.stringify(changes) : null,
        entry.request_id ?? null,
        entry.ip ?? null,
        entry.user_agent ?? null,
        entry.count,
      ],
    ),
  )
  const hash = auditHash(toRecord(row))
  await tx.run('UPDATE gateway_audit_records SET hash = $2 WHERE id = $1', [row.id, hash])
  await tx.run('UPDATE gateway_audit_chains SET hash = $2 WHERE organization_id = $1', [organizationId, hash])
}

export interface AuditFilter {
  /** Epoch ms, inclusive. */
  from?: number | undefined
  /** Epoch ms, exclusive. */
  to?: number | undefined
  action?: string | undefined
  actorId?: number | undefined
  targetType?: string | undefined
  targetId?: string | undefined
}

/** Behind an id, in the order asked for. Walks gateway_audit_records_by_organization, or _by_target where that is named. */
export async function listRecords(
  db: Queryable,
  organizationId: number,
  { from, to, action, actorId, targetType, targetId }: AuditFilter,
  order: 'asc' | 'desc',
  after: number,
  limit: number,
): Promise<AuditRecord[]> {
  const params: Param[] = [organizationId, limit]
  const conditions = ['organization_id = $1']
  const where = (text: string, value: Param | undefined): void => {
    if (value !== undefined) conditions.push(text.replace('?', `$${params.push(value)}`))
  }
  where(order === 'asc' ? 'id > ?' : 'id < ?', order === 'desc' && after === 0 ? undefined : after)
  where('at >= ?', from)
  where('at < ?', to)
  where('action = ?', action)
  where('actor_id = ?', actorId)
  where('target_type = ?', targetType)
  where('target_id = ?', targetId)
  const sql = `SELECT * FROM gateway_audit_records WHERE ${conditions.join(' AND ')} ORDER BY id ${order} LIMIT $2`
  return (await db.all<StoredRow>(sql, params)).map(toRecord)
}

/** In the order of the chain. @param afterSeq absent: from the lowest there is, which need not be the first of the chain */
export const readRecords = async (
  db: Queryable,
  organizationId: number,
  afterSeq: number | undefined,
  limit: number,
): Promise<AuditRecord[]> =>
  (
    await db.all<StoredRow>(
      `SELECT * FROM gateway_audit_records WHERE organization_id = $1 ${afterSeq === undefined ? '' : 'AND seq > $3'}
        ORDER BY seq LIMIT $2`,
      [organizationId, limit, ...(afterSeq === undefined ? [] : [afterSeq])],
    )
  ).map(toRecord)

/** What the system did within a minute. */
export interface PendingRow {
  organization_id: number
  /** Since the epoch. */
  minute: number
  action: string
  target_type: string
  target_id: string
  target_name: string | null
  /** JSON. */
  changes: string | null
  count: number
}

/** Adds to the count of what is the same in the same minute. By the primary key. */
export async function addPending(tx: Queryable, row: PendingRow): Promise<void> {
  await tx.run(
    `INSERT INTO gateway_audit_pending (organization_id, minute, action, target_type, target_id, target_name, changes, count)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT (organization_id, minute, action, target_type, target_id)
     DO UPDATE SET count = gateway_audit_pending.count + excluded.count`,
    [
      row.organization_id,
      row.minute,
      row.action,
      row.target_type,
      row.target_id,
      row.target_name,
      row.changes,
      row.count,
    ],
  )
}

/** Uses gateway_audit_pending_by_minute. */
export const hasPending = async (db: Queryable, upToMinute: number): Promise<boolean> =>
  (await db.get('SELECT 1 FROM gateway_audit_pending WHERE minute <= $1 LIMIT 1', [upToMinute])) !== undefined

/** Takes those of minutes up to this one; each is given once, whichever process asks. */
export const takePending = (tx: Queryable, upToMinute: number): Promise<PendingRow[]> =>
  tx.all<PendingRow>('DELETE FROM gateway_audit_pending WHERE minute <= $1 RETURNING *', [upToMinute])
