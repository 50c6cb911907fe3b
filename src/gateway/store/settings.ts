import type { Queryable } from '../../database/database.ts'
import type { Settings } from '../model.ts'

/** Of an organization that saved none. Contract: gateway.md 2.4. */
export const DEFAULT_SETTINGS: Settings = {
  cost_tracking: true,
  budget: null,
  user_budget: null,
  content_logging: false,
  content_retention_days: 7,
  blocked_models: [],
  max_request_bytes: null,
  usage_retention_days: 90,
  private_credentials: true,
  member_keys: false,
  cache_scope: 'caller',
}

/** With the defaults for what was not saved. By the primary key. */
export async function readSettings(db: Queryable, organizationId: number): Promise<Settings> {
  const sql = 'SELECT settings FROM gateway_settings WHERE organization_id = $1'
  const row = await db.get<{ settings: string }>(sql, [organizationId])
  return row ? { ...DEFAULT_SETTINGS, ...(JSON.parse(row.settings) as Partial<Settings>) } : DEFAULT_SETTINGS
}

/** Replaces those that are there. */
export async function saveSettings(tx: Queryable, organizationId: number, settings: Settings): Promise<void> {
  await tx.run(
    `INSERT INTO gateway_settings (organization_id, settings) VALUES ($1, $2)
     ON CONFLICT (organization_id) DO UPDATE SET settings = excluded.settings`,
    [organizationId, JSON.stringify(settings)],
  )
}
