import type { Queryable } from '../../database/database.ts'
import { returned } from '../../database/rows.ts'
import type { Organization } from '../model.ts'

/** False before the first organization, and before there is a schema. */
export async function hasOrganizations(db: Queryable): Promise<boolean> {
  const table = await db.get(
    db.dialect === 'sqlite'
      ? `SELECT 1 FROM sqlite_master WHERE name = 'platform_organizations'`
      : `SELECT 1 FROM pg_catalog.pg_tables WHERE tablename = 'platform_organizations' AND schemaname = current_schema()`,
  )
  return table !== undefined && (await db.get('SELECT 1 FROM platform_organizations LIMIT 1')) !== undefined
}

export async function insertOrganization(tx: Queryable, name: string, now: number): Promise<Organization> {
  return returned(
    await tx.get<Organization>(
      'INSERT INTO platform_organizations (name, created_at) VALUES ($1, $2) RETURNING id, name',
      [name, now],
    ),
  )
}

export const findOrganization = (db: Queryable, id: number): Promise<Organization | undefined> =>
  db.get<Organization>('SELECT id, name FROM platform_organizations WHERE id = $1', [id])

export const listOrganizations = (db: Queryable): Promise<Organization[]> =>
  db.all<Organization>('SELECT id, name FROM platform_organizations ORDER BY id')
