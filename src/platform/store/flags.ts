import type { Queryable } from '../../database/database.ts'

/** The flags that an organization has set, by name. */
export async function readFlags(db: Queryable, organizationId: number): Promise<Map<string, boolean>> {
  const rows = await db.all<{ name: string; enabled: number }>(
    'SELECT name, enabled FROM platform_feature_flags WHERE organization_id = $1',
    [organizationId],
  )
  return new Map(rows.map(({ name, enabled }) => [name, enabled === 1]))
}

/** Sets a flag, whether or not it was set before. */
export async function saveFlag(tx: Queryable, organizationId: number, name: string, enabled: boolean): Promise<void> {
  await tx.run(
    `INSERT INTO platform_feature_flags (organization_id, name, enabled) VALUES ($1, $2, $3)
     ON CONFLICT (organization_id, name) DO UPDATE SET enabled = excluded.enabled`,
    [organizationId, name, Number(enabled)],
  )
}
