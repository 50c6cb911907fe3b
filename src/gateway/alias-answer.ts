import { toTimestamp } from '../base/clock.ts'
import { optional } from '../database/rows.ts'
import { scopeOf } from './access.ts'
import type { Alias } from './model.ts'
import type { AliasRow } from './store/aliases.ts'

/** An alias as it is shown. Contract: gateway.md 2.2. */
export const toAlias = (row: AliasRow): Alias => ({
  id: row.id,
  organization_id: row.organization_id,
  name: row.name,
  scope: scopeOf(row),
  ...optional('user_id', row.user_id),
  ...row.fields,
  enabled: row.enabled,
  created_at: toTimestamp(row.created_at),
  updated_at: toTimestamp(row.updated_at),
})
