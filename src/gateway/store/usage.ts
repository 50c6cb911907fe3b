import { inList, type Param, type Queryable } from '../../database/database.ts'
import type { Kind, Outcome, Surface } from '../model.ts'

/** A usage record: what it is found by, and the rest of it in one text. */
export interface UsageRow {
  id: string
  organization_id: number
  started_at: number
  request_id: string
  user_id: number | null
  key_id: number | null
  credential_id: number | null
  provider: Kind | null
  /** The one used. */
  model: string | null
  outcome: Outcome
  surface: Surface
  record: string
}

/** Which records of an organization; times are epoch ms, `to` is not included. */
export interface UsageFilter {
  from?: number | undefined
  to?: number | undefined
  /** Whose records the caller may see; absent for all. */
  ownerId?: number | undefined
  request_id?: string | undefined
  user_id?: number | undefined
  key_id?: number | undefined
  credential_id?: number | undefined
  provider?: string | undefined
  model?: string | undefined
  outcome?: string | undefined
  surface?: string | undefined
}

/** A place in the list, which runs from the newest to the oldest. */
export type UsagePlace = Pick<UsageRow, 'id' | 'started_at'>

/** One statement for so many rows: on PostgreSQL each costs a way to the server and back. */
const ROWS = 50
const COLUMNS = 12

const insertRows = (count: number): string => {
  const row = (i: number): string =>
    `(${Array.from({ length: COLUMNS }, (_, column) => `$${i * COLUMNS + column + 1}`).join(', ')})`
  return `INSERT INTO gateway_usage (id, organization_id, started_at, request_id, user_id, key_id, credential_id, provider,
    model, outcome, surface, record) VALUES ${Array.from({ length: count }, (_, i) => row(i)).join(', ')}
    ON CONFLICT (id) DO NOTHING`
}
const INSERTS = new Map<number, string>()

/** Inserts those that are not there; how many that were. */
export async function insertUsage(tx: Queryable, rows: readonly UsageRow[]): Promise<number> {
  let inserted = 0
  for (let first = 0; first < rows.length; first += ROWS) {
    const count = Math.min(ROWS, rows.length - first)
    let sql = INSERTS.get(count)
    if (sql === undefined) INSERTS.set(count, (sql = insertRows(count)))
    const params: Param[] = []
    for (const row of rows.slice(first, first + count)) {
      params.push(row.id, row.organization_id, row.started_at, row.request_id, row.user_id, row.key_id)
      params.push(row.credential_id, row.provider, row.model, row.outcome, row.surface, row.record)
    }
    inserted += await tx.run(sql, params)
  }
  return inserted
}

/** Which of these ids have a record. By the primary key. */
export async function findUsageIds(tx: Queryable, ids: readonly string[]): Promise<Set<string>> {
  const sql = `SELECT id FROM gateway_usage WHERE id IN ${inList(tx, '$1')}`
  const rows = await tx.all<{ id: string }>(sql, [JSON.stringify(ids)])
  return new Set(rows.map(({ id }) => id))
}

/** By the primary key. */
export const findUsage = (db: Queryable, organizationId: number, id: string): Promise<UsageRow | undefined> =>
  db.get<UsageRow>('SELECT * FROM gateway_usage WHERE id = $1 AND organization_id = $2', [id, organizationId])

const EQUAL = [
  'request_id',
  'user_id',
  'key_id',
  'credential_id',
  'provider',
  'model',
  'outcome',
  'surface',
] as const satisfies readonly (keyof UsageFilter)[]

/**
 * The newest first, behind a place. By gateway_usage_by_start; with an owner or a user by gateway_usage_by_user, with a
 * request by gateway_usage_by_request.
 */
export function listUsage(
  db: Queryable,
  organizationId: number,
  filter: UsageFilter,
  after: UsagePlace | undefined,
  limit: number,
): Promise<UsageRow[]> {
  const params: Param[] = [organizationId, limit]
  const conditions = ['organization_id = $1']
  const where = (condition: (param: string) => string, value: Param | undefined): void => {
    if (value !== undefined) conditions.push(condition(`$${params.push(value)}`))
  }
  where((param) => `user_id = ${param}`, filter.ownerId)
  for (const column of EQUAL) where((param) => `${column} = ${param}`, filter[column])
  where((param) => `started_at >= ${param}`, filter.from)
  where((param) => `started_at < ${param}`, filter.to)
  if (after) {
    conditions.push(`(started_at, id) < ($${params.push(after.started_at)}, $${params.push(after.id)})`)
  }
  return db.all<UsageRow>(
    `SELECT * FROM gateway_usage WHERE ${conditions.join(' AND ')} ORDER BY started_at DESC, id DESC LIMIT $2`,
    params,
  )
}

/** Deletes the oldest that began before a time, so many at most; how many that were. By gateway_usage_by_start. */
export const deleteUsageBefore = (
  db: Queryable,
  organizationId: number,
  before: number,
  limit: number,
): Promise<number> =>
  db.run(
    `DELETE FROM gateway_usage WHERE id IN
      (SELECT id FROM gateway_usage WHERE organization_id = $1 AND started_at < $2 ORDER BY started_at LIMIT $3)`,
    [organizationId, before, limit],
  )

/** When credentials and keys were last used, by id; steps of less than a second are not worth a write. */
export async function touchUsed(
  tx: Queryable,
  credentials: ReadonlyMap<number, number>,
  keys: ReadonlyMap<number, number>,
): Promise<void> {
  const used =
    tx.dialect === 'sqlite'
      ? 'SELECT value ->> 0 AS id, value ->> 1 AS used_at FROM json_each($1)'
      : 'SELECT (value ->> 0)::bigint AS id, (value ->> 1)::bigint AS used_at FROM json_array_elements($1::json)'
  // Without it a credential that another transaction deletes is still read, and breaks the reference.
  const lock = tx.dialect === 'sqlite' ? '' : 'FOR KEY SHARE OF c'
  if (credentials.size > 0) {
    await tx.run(
      `INSERT INTO gateway_credential_health (credential_id, organization_id, last_used_at)
       SELECT c.id, c.organization_id, u.used_at FROM (${used}) u JOIN gateway_credentials c ON c.id = u.id
        WHERE true ORDER BY c.id ${lock}
       ON CONFLICT (credential_id) DO UPDATE SET last_used_at = excluded.last_used_at
        WHERE COALESCE(gateway_credential_health.last_used_at, 0) < excluded.last_used_at - 1000`,
      [JSON.stringify([...credentials])],
    )
  }
  if (keys.size > 0) {
    await tx.run(
      `UPDATE gateway_keys SET last_used_at = u.used_at FROM (${used}) u
        WHERE gateway_keys.id = u.id AND COALESCE(last_used_at, 0) < u.used_at - 1000`,
      [JSON.stringify([...keys])],
    )
  }
}
