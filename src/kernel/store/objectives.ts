import { inList, type Queryable } from '../../database/database.ts'
import type { Owner, Party, Scope } from '../model/fields.ts'
import type { Objective, ObjectiveStatus } from '../model/objective.ts'
import type { Family, PageRequest, RecordPage } from './records.ts'
import { scopeKey } from './scope-key.ts'
import { Conditions, ms } from './sql.ts'
import { walkRecords } from './walk.ts'

export const objectives: Family<Objective> = {
  table: 'kernel_objectives',
  noun: 'objective',
  columns: ({ status, owner, priority, updatedAt }) => ({
    status,
    owner_type: owner.type,
    owner_id: owner.id,
    precedence: -priority,
    recency: -ms(updatedAt),
  }),
}

export interface ObjectiveFilter {
  owner?: Owner
  status?: readonly ObjectiveStatus[]
}

/** The highest priority first, then the last changed; kernel_objectives_in_order, _by_owner, _by_status, _by_recency. */
export const listObjectives = (
  db: Queryable,
  scope: Scope,
  { owner, status }: ObjectiveFilter,
  page: PageRequest & { now: number },
): Promise<RecordPage<Objective>> =>
  walkRecords(
    db,
    objectives,
    {
      scope,
      selector: 'objective_id',
      columns: ['precedence', 'recency', 'id'],
      where: () =>
        new Conditions()
          .and('t.scope = ?', scopeKey(scope))
          .equal('t.owner_type', owner?.type)
          .equal('t.owner_id', owner?.id)
          .among('t.status', status),
    },
    page,
  )

/** Who owns these, by id; those that are not there are missing. The primary key. */
export async function readOwners(db: Queryable, scope: Scope, ids: readonly string[]): Promise<Map<string, Party>> {
  const rows = await db.all<{ id: string; owner_type: string; owner_id: string }>(
    `SELECT id, owner_type, owner_id FROM kernel_objectives WHERE scope = $1 AND id IN ${inList(db, '$2')}`,
    [scopeKey(scope), JSON.stringify(ids)],
  )
  return new Map(rows.map((row) => [row.id, { type: row.owner_type, id: row.owner_id }]))
}
