import type { Queryable } from '../../database/database.ts'
import { returned } from '../../database/rows.ts'
import type { Kind, LastError, Limits, Timeouts } from '../model.ts'

/** What no query asks for. */
export interface CredentialFields {
  default_model?: string
  weight: number
  priority: number
  fallback_group?: string
  base_url?: string
  /** Without its secrets. */
  config: Record<string, unknown>
  /** Names of custom headers. */
  headers: string[]
  model_mapping: Record<string, string>
  allowed_models: string[]
  limits: Limits
  timeouts: Timeouts
}

interface StoredRow {
  id: number
  organization_id: number
  user_id: number | null
  provider: Kind
  name: string
  enabled: number
  fields: string
  secret_names: string
  api_key_last4: string | null
  version: number
  created_by: number
  created_at: number
  updated_at: number
  rejected_until: number | null
  last_error: string | null
  checked_at: number | null
  last_used_at: number | null
}

/** A credential with what processes share of its health. */
export interface CredentialRow extends Omit<StoredRow, 'fields' | 'secret_names' | 'last_error' | 'enabled'> {
  enabled: boolean
  fields: CredentialFields
  secret_names: string[]
  last_error: LastError | undefined
}

/** What of a row may change. */
export type CredentialValues = Pick<
  CredentialRow,
  'name' | 'enabled' | 'fields' | 'secret_names' | 'api_key_last4' | 'version' | 'updated_at'
>

const SELECT = `SELECT c.*, h.rejected_until, h.last_error, h.checked_at, h.last_used_at
  FROM gateway_credentials c LEFT JOIN gateway_credential_health h ON h.credential_id = c.id
  WHERE c.organization_id = $1`

const toRow = (row: StoredRow): CredentialRow => ({
  ...row,
  enabled: row.enabled === 1,
  fields: JSON.parse(row.fields) as CredentialFields,
  secret_names: JSON.parse(row.secret_names) as string[],
  last_error: row.last_error === null ? undefined : (JSON.parse(row.last_error) as LastError),
})

/** By the primary key. */
export async function findCredential(
  db: Queryable,
  organizationId: number,
  id: number,
): Promise<CredentialRow | undefined> {
  const row = await db.get<StoredRow>(`${SELECT} AND c.id = $2`, [organizationId, id])
  return row && toRow(row)
}

export interface CredentialFilter {
  provider?: string | undefined
  enabled?: boolean | undefined
  scope?: 'organization' | 'user' | undefined
}

/** Those that a user sees, in ascending order. Walks gateway_credentials_by_organization. */
export async function listCredentials(
  db: Queryable,
  organizationId: number,
  userId: number,
  { provider, enabled, scope }: CredentialFilter,
  after: number,
  limit: number,
): Promise<CredentialRow[]> {
  const rows = await db.all<StoredRow>(
    `${SELECT} AND c.id > $2 AND (c.user_id IS NULL OR c.user_id = $3)
      AND ($4 = '' OR c.provider = $4) AND ($5 = -1 OR c.enabled = $5)
      AND ($6 = '' OR ($6 = 'user') = (c.user_id IS NOT NULL)) ORDER BY c.id LIMIT $7`,
    [organizationId, after, userId, provider ?? '', enabled === undefined ? -1 : Number(enabled), scope ?? '', limit],
  )
  return rows.map(toRow)
}

/** All of an organization, by id. Walks gateway_credentials_by_organization. */
export const readCredentials = async (db: Queryable, organizationId: number): Promise<CredentialRow[]> =>
  (await db.all<StoredRow>(`${SELECT} ORDER BY c.id`, [organizationId])).map(toRow)

/** Of these ids those that a user sees, with whose they are. */
export async function findOwners(
  db: Queryable,
  organizationId: number,
  userId: number,
): Promise<Map<number, number | null>> {
  const rows = await db.all<{ id: number; user_id: number | null }>(
    'SELECT id, user_id FROM gateway_credentials WHERE organization_id = $1 AND (user_id IS NULL OR user_id = $2)',
    [organizationId, userId],
  )
  return new Map(rows.map(({ id, user_id }) => [id, user_id]))
}

/** Whether an owner has one of this name, whatever its case. Uses gateway_credentials_by_name. */
export async function credentialNameExists(
  db: Queryable,
  organizationId: number,
  userId: number | null,
  name: string,
  except = 0,
): Promise<boolean> {
  const sql = `SELECT 1 FROM gateway_credentials
    WHERE organization_id = $1 AND COALESCE(user_id, 0) = $2 AND lower(name) = $3 AND id <> $4`
  return (await db.get(sql, [organizationId, userId ?? 0, name.toLowerCase(), except])) !== undefined
}

/** Of an organization. By gateway_credentials_by_organization. */
export async function countCredentials(db: Queryable, organizationId: number): Promise<number> {
  const sql = 'SELECT count(*) AS n FROM gateway_credentials WHERE organization_id = $1'
  return (await db.get<{ n: number }>(sql, [organizationId]))?.n ?? 0
}

/** Gives its id. */
export async function insertCredential(
  tx: Queryable,
  organizationId: number,
  userId: number | null,
  provider: Kind,
  createdBy: number,
  values: CredentialValues,
): Promise<number> {
  const row = returned(
    await tx.get<{ id: number }>(
      `INSERT INTO gateway_credentials (organization_id, user_id, provider, created_by, created_at, name, enabled, fields,
       secret_names, api_key_last4, version, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $5) RETURNING id`,
      [
        organizationId,
        userId,
        provider,
        createdBy,
        values.updated_at,
        values.name,
        Number(values.enabled),
        JSON.stringify(values.fields),
        JSON.stringify(values.secret_names),
        values.api_key_last4,
        values.version,
      ],
    ),
  )
  return row.id
}

/** By the primary key. */
export async function updateCredential(
  tx: Queryable,
  organizationId: number,
  id: number,
  values: CredentialValues,
): Promise<void> {
  await tx.run(
    `UPDATE gateway_credentials SET name = $3, enabled = $4, fields = $5, secret_names = $6, api_key_last4 = $7,
       version = $8, updated_at = $9 WHERE organization_id = $1 AND id = $2`,
    [
      organizationId,
      id,
      values.name,
      Number(values.enabled),
      JSON.stringify(values.fields),
      JSON.stringify(values.secret_names),
      values.api_key_last4,
      values.version,
      values.updated_at,
    ],
  )
}

/** Its secrets and health go with it. */
export async function deleteCredential(tx: Queryable, organizationId: number, id: number): Promise<void> {
  await tx.run('DELETE FROM gateway_credentials WHERE organization_id = $1 AND id = $2', [organizationId, id])
}
