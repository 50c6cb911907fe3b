import type { Queryable } from '../../database/database.ts'

/**
 * Says that an organization changed; processes that hold its state read it anew. PostgreSQL keeps the row until the end of
 * the transaction, so that changes of one organization happen one after the other.
 */
export async function raiseRevision(tx: Queryable, organizationId: number): Promise<void> {
  await tx.run(
    `INSERT INTO gateway_revisions (organization_id, revision) VALUES ($1, 1)
     ON CONFLICT (organization_id) DO UPDATE SET revision = gateway_revisions.revision + 1`,
    [organizationId],
  )
}

/** Of every organization; 0 where nothing changed yet. */
export const readRevisions = (db: Queryable): Promise<{ id: number; revision: number }[]> =>
  db.all<{ id: number; revision: number }>(
    `SELECT o.id, COALESCE(r.revision, 0) AS revision FROM platform_organizations o
      LEFT JOIN gateway_revisions r ON r.organization_id = o.id`,
  )

/** Undefined for an organization that is not there. */
export const readRevision = async (db: Queryable, organizationId: number): Promise<number | undefined> =>
  (
    await db.get<{ revision: number }>(
      `SELECT COALESCE(r.revision, 0) AS revision FROM platform_organizations o
        LEFT JOIN gateway_revisions r ON r.organization_id = o.id WHERE o.id = $1`,
      [organizationId],
    )
  )?.revision

/** Ids and roles of the active users. */
export const readActiveUsers = (
  db: Queryable,
  organizationId: number,
): Promise<{ id: number; role: 'admin' | 'member' }[]> =>
  db.all<{ id: number; role: 'admin' | 'member' }>(
    'SELECT id, role FROM platform_users WHERE organization_id = $1 AND active = 1',
    [organizationId],
  )
