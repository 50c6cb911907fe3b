import type { Queryable } from '../../database/database.ts'
import { returned } from '../../database/rows.ts'
import type { Budget, Limits } from '../model.ts'

export interface KeyFields {
  allowed_models: string[]
  allowed_credentials: number[]
  limits: Limits
  max_output_tokens?: number
}

interface StoredRow {
  id: number
  organization_id: number
  user_id: number | null
  name: string
  /** SHA-256 of the token, hex. */
  hash: string
  older_tokens: string
  prefix: string
  last4: string
  enabled: number
  fields: string
  budget: string | null
  expires_at: number | null
  last_used_at: number | null
  created_by: number
  created_at: number
  updated_at: number
}

/** A token that a rotation replaced, and how long it is good (epoch ms). */
export interface OlderToken {
  hash: string
  until: number
}

export interface KeyRow extends Omit<StoredRow, 'older_tokens' | 'enabled' | 'fields' | 'budget'> {
  /** The newest first. */
  older_tokens: OlderToken[]
  enabled: boolean
  fields: KeyFields
  budget: Budget | null
}

/** What of a row may change. */
export type KeyValues = Pick<KeyRow, 'name' | 'enabled' | 'fields' | 'budget' | 'expires_at' | 'updated_at'>

/** A token as it is kept. */
export type KeyToken = Pick<KeyRow, 'hash' | 'prefix' | 'last4'>

const toRow = (row: StoredRow): KeyRow => ({
  ...row,
  older_tokens: JSON.parse(row.older_tokens) as OlderToken[],
  enabled: row.enabled === 1,
  fields: JSON.parse(row.fields) as KeyFields,
  budget: row.budget === null ? null : (JSON.parse(row.budget) as Budget),
})

/** By the primary key. */
export async function findKey(db: Queryable, organizationId: number, id: number): Promise<KeyRow | undefined> {
  const sql = 'SELECT * FROM gateway_keys WHERE organization_id = $1 AND id = $2'
  const row = await db.get<StoredRow>(sql, [organizationId, id])
  return row && toRow(row)
}

/** All in ascending order, or those of a user: gateway_keys_by_organization, gateway_keys_by_user. */
export async function listKeys(
  db: Queryable,
  organizationId: number,
  userId: number | undefined,
  after: number,
  limit: number,
): Promise<KeyRow[]> {
  const rows = await db.all<StoredRow>(
    `SELECT * FROM gateway_keys WHERE organization_id = $1 AND id > $2 ${userId === undefined ? '' : 'AND user_id = $4'}
      ORDER BY id LIMIT $3`,
    [organizationId, after, limit, ...(userId === undefined ? [] : [userId])],
  )
  return rows.map(toRow)
}

/** All of an organization, by id. Walks gateway_keys_by_organization. */
export const readKeys = async (db: Queryable, organizationId: number): Promise<KeyRow[]> =>
  (await db.all<StoredRow>('SELECT * FROM gateway_keys WHERE organization_id = $1 ORDER BY id', [organizationId])).map(
    toRow,
  )

/** Of an organization. By gateway_keys_by_organization. */
export async function countKeys(db: Queryable, organizationId: number): Promise<number> {
  const sql = 'SELECT count(*) AS n FROM gateway_keys WHERE organization_id = $1'
  return (await db.get<{ n: number }>(sql, [organizationId]))?.n ?? 0
}

/** Whether some key has a budget. Uses gateway_keys_with_budget. */
export async function hasKeyBudgets(db: Queryable, organizationId: number): Promise<boolean> {
  const sql = 'SELECT 1 FROM gateway_keys WHERE organization_id = $1 AND budget IS NOT NULL LIMIT 1'
  return (await db.get(sql, [organizationId])) !== undefined
}

/** Gives its id. */
export async function insertKey(
  tx: Queryable,
  organizationId: number,
  userId: number | null,
  createdBy: number,
  { hash, prefix, last4 }: KeyToken,
  values: KeyValues,
): Promise<number> {
  const row = returned(
    await tx.get<{ id: number }>(
      `INSERT INTO gateway_keys (organization_id, user_id, created_by, hash, prefix, last4, name, enabled, fields, budget,
       expires_at, created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12) RETURNING id`,
      [
        organizationId,
        userId,
        createdBy,
        hash,
        prefix,
        last4,
        values.name,
        Number(values.enabled),
        JSON.stringify(values.fields),
        values.budget && JSON.stringify(values.budget),
        values.expires_at,
        values.updated_at,
      ],
    ),
  )
  return row.id
}

/** All but its token. By the primary key. */
export async function updateKey(tx: Queryable, organizationId: number, id: number, values: KeyValues): Promise<void> {
  await tx.run(
    `UPDATE gateway_keys SET name = $3, enabled = $4, fields = $5, budget = $6, expires_at = $7, updated_at = $8
      WHERE organization_id = $1 AND id = $2`,
    [
      organizationId,
      id,
      values.name,
      Number(values.enabled),
      JSON.stringify(values.fields),
      values.budget && JSON.stringify(values.budget),
      values.expires_at,
      values.updated_at,
    ],
  )
}

/** By the primary key. */
export async function replaceToken(
  tx: Queryable,
  organizationId: number,
  id: number,
  { hash, prefix, last4 }: KeyToken,
  olderTokens: readonly OlderToken[],
  now: number,
): Promise<void> {
  await tx.run(
    `UPDATE gateway_keys SET hash = $3, prefix = $4, last4 = $5, older_tokens = $6, updated_at = $7
      WHERE organization_id = $1 AND id = $2`,
    [organizationId, id, hash, prefix, last4, JSON.stringify(olderTokens), now],
  )
}

/** By the primary key. */
export async function deleteKey(tx: Queryable, organizationId: number, id: number): Promise<void> {
  await tx.run('DELETE FROM gateway_keys WHERE organization_id = $1 AND id = $2', [organizationId, id])
}
