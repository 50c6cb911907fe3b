import type { Queryable } from '../../database/database.ts'
import { returned } from '../../database/rows.ts'
import type { Alias } from '../model.ts'

export type AliasFields = Pick<
  Alias,
  'strategy' | 'members' | 'fallback_models' | 'fallback_on' | 'cache_ttl' | 'max_output_tokens'
>

interface StoredRow {
  id: number
  organization_id: number
  user_id: number | null
  name: string
  enabled: number
  fields: string
  created_at: number
  updated_at: number
}

export interface AliasRow extends Omit<StoredRow, 'enabled' | 'fields'> {
  enabled: boolean
  fields: AliasFields
}

/** What of a row may change. */
export type AliasValues = Pick<AliasRow, 'name' | 'enabled' | 'fields' | 'updated_at'>

const toRow = (row: StoredRow): AliasRow => ({
  ...row,
  enabled: row.enabled === 1,
  fields: JSON.parse(row.fields) as AliasFields,
})

/** By the primary key. */
export async function findAlias(db: Queryable, organizationId: number, id: number): Promise<AliasRow | undefined> {
  const sql = 'SELECT * FROM gateway_aliases WHERE organization_id = $1 AND id = $2'
  const row = await db.get<StoredRow>(sql, [organizationId, id])
  return row && toRow(row)
}

/** Those that a user sees, in ascending order. Walks gateway_aliases_by_organization. */
export const listAliases = async (
  db: Queryable,
  organizationId: number,
  userId: number,
  after: number,
  limit: number,
): Promise<AliasRow[]> =>
  (
    await db.all<StoredRow>(
      `SELECT * FROM gateway_aliases WHERE organization_id = $1 AND id > $2 AND (user_id IS NULL OR user_id = $3)
        ORDER BY id LIMIT $4`,
      [organizationId, after, userId, limit],
    )
  ).map(toRow)

/** All of an organization, by id. Walks gateway_aliases_by_organization. */
export const readAliases = async (db: Queryable, organizationId: number): Promise<AliasRow[]> =>
  (
    await db.all<StoredRow>('SELECT * FROM gateway_aliases WHERE organization_id = $1 ORDER BY id', [organizationId])
  ).map(toRow)

/** Gives its id. */
export async function insertAlias(
  tx: Queryable,
  organizationId: number,
  userId: number | null,
  { name, enabled, fields, updated_at }: AliasValues,
): Promise<number> {
  const row = returned(
    await tx.get<{ id: number }>(
      `INSERT INTO gateway_aliases (organization_id, user_id, name, enabled, fields, created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $6) RETURNING id`,
      [organizationId, userId, name, Number(enabled), JSON.stringify(fields), updated_at],
    ),
  )
  return row.id
}

/** By the primary key. */
export async function updateAlias(
  tx: Queryable,
  organizationId: number,
  id: number,
  { name, enabled, fields, updated_at }: AliasValues,
): Promise<void> {
  await tx.run(
    `UPDATE gateway_aliases SET name = $3, enabled = $4, fields = $5, updated_at = $6
      WHERE organization_id = $1 AND id = $2`,
    [organizationId, id, name, Number(enabled), JSON.stringify(fields), updated_at],
  )
}

/** By the primary key. */
export async function deleteAlias(tx: Queryable, organizationId: number, id: number): Promise<void> {
  await tx.run('DELETE FROM gateway_aliases WHERE organization_id = $1 AND id = $2', [organizationId, id])
}
