import type { Queryable } from '../../database/database.ts'

export interface MetricsTokenRow {
  /** SHA-256 of the token, hex. */
  hash: string
  last4: string
  created_at: number
  last_used_at: number | null
}

/** By the primary key. */
export const findMetricsToken = (db: Queryable, organizationId: number): Promise<MetricsTokenRow | undefined> =>
  db.get<MetricsTokenRow>(
    'SELECT hash, last4, created_at, last_used_at FROM gateway_metrics_tokens WHERE organization_id = $1',
    [organizationId],
  )

/** Replaces the one that is there, and forgets when that was used. */
export async function saveMetricsToken(
  tx: Queryable,
  organizationId: number,
  { hash, last4, created_at }: Omit<MetricsTokenRow, 'last_used_at'>,
): Promise<void> {
  await tx.run(
    `INSERT INTO gateway_metrics_tokens (organization_id, hash, last4, created_at) VALUES ($1, $2, $3, $4)
     ON CONFLICT (organization_id) DO UPDATE
       SET hash = excluded.hash, last4 = excluded.last4, created_at = excluded.created_at, last_used_at = NULL`,
    [organizationId, hash, last4, created_at],
  )
}

/** By the primary key. */
export async function markMetricsTokenUsed(db: Queryable, organizationId: number, at: number): Promise<void> {
  await db.run('UPDATE gateway_metrics_tokens SET last_used_at = $2 WHERE organization_id = $1', [organizationId, at])
}

/** False when there was none. */
export const deleteMetricsToken = async (tx: Queryable, organizationId: number): Promise<boolean> =>
  (await tx.run('DELETE FROM gateway_metrics_tokens WHERE organization_id = $1', [organizationId])) > 0
