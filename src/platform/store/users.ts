import type { Queryable } from '../../database/database.ts'
import { optional, returned } from '../../database/rows.ts'
import type { User } from '../model.ts'

export interface UserRow {
  id: number
  organization_id: number
  email: string
  password_hash: string
  display_name: string | null
  role: User['role']
  active: number
}

/** What of a row may change. */
export type UserValues = Pick<UserRow, 'email' | 'password_hash' | 'display_name' | 'role' | 'active'>

export const toUser = (row: UserRow): User => ({
  id: row.id,
  organization_id: row.organization_id,
  email: row.email,
  ...optional('display_name', row.display_name),
  role: row.role,
  active: row.active === 1,
})

export const findUser = (db: Queryable, organizationId: number, id: number): Promise<UserRow | undefined> =>
  db.get<UserRow>('SELECT * FROM platform_users WHERE organization_id = $1 AND id = $2', [organizationId, id])

/** Of any organization: the address is all that a login names. */
export const findUserByEmail = (db: Queryable, email: string): Promise<UserRow | undefined> =>
  db.get<UserRow>('SELECT * FROM platform_users WHERE email = $1', [email])

/** In ascending order; one row more than the page shows. */
export const listUsers = (db: Queryable, organizationId: number, after: number, limit: number): Promise<UserRow[]> =>
  db.all<UserRow>('SELECT * FROM platform_users WHERE organization_id = $1 AND id > $2 ORDER BY id LIMIT $3', [
    organizationId,
    after,
    limit,
  ])

export async function insertUser(
  tx: Queryable,
  organizationId: number,
  values: UserValues,
  now: number,
): Promise<UserRow> {
  return returned(
    await tx.get<UserRow>(
      `INSERT INTO platform_users (organization_id, email, password_hash, display_name, role, active, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING *`,
      [organizationId, values.email, values.password_hash, values.display_name, values.role, values.active, now],
    ),
  )
}

export async function updateUser(tx: Queryable, organizationId: number, id: number, values: UserValues): Promise<void> {
  await tx.run(
    `UPDATE platform_users SET email = $3, password_hash = $4, display_name = $5, role = $6, active = $7
      WHERE organization_id = $1 AND id = $2`,
    [organizationId, id, values.email, values.password_hash, values.display_name, values.role, values.active],
  )
}

/** Replaces a hash that is still the one it was. */
export async function replacePasswordHash(tx: Queryable, id: number, old: string, hash: string): Promise<void> {
  await tx.run('UPDATE platform_users SET password_hash = $3 WHERE id = $1 AND password_hash = $2', [id, old, hash])
}

/** How many could still administer the organization. */
export async function countActiveAdmins(db: Queryable, organizationId: number): Promise<number> {
  const row = await db.get<{ n: number }>(
    `SELECT count(*) AS n FROM platform_users WHERE organization_id = $1 AND role = 'admin' AND active = 1`,
    [organizationId],
  )
  return row?.n ?? 0
}
