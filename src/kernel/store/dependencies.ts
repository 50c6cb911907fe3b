import type { Queryable } from '../../database/database.ts'
import type { Dependency, DependencyGroup, DependencyStatus } from '../model/dependency.ts'
import type { Scope } from '../model/fields.ts'
import { insertRecord, type Family } from './records.ts'
import { scopeKey } from './scope-key.ts'

export const dependencyGroups: Family<DependencyGroup> = {
  table: 'kernel_dependency_groups',
  noun: 'dependency group',
  columns: ({ runId, status }) => ({ run_id: runId, status }),
}

/** With its edges, in the transaction that makes the children. */
export async function insertGroup(
  tx: Queryable,
  group: DependencyGroup,
  children: readonly { childId: string; name: string }[],
): Promise<void> {
  await insertRecord(tx, dependencyGroups, group)
  for (const { childId, name } of children) {
    await tx.run(
      `INSERT INTO kernel_dependencies (scope, group_id, child_id, name, status) VALUES ($1, $2, $3, $4, 'pending')`,
      [scopeKey(group.scope), group.id, childId, name],
    )
  }
}

const COLUMNS = 'group_id AS "groupId", child_id AS "childId", name, status'

/** The children of a group, by name. */
export const listDependencies = (db: Queryable, scope: Scope, groupId: string): Promise<Dependency[]> =>
  db.all<Dependency>(
    `SELECT ${COLUMNS} FROM kernel_dependencies WHERE scope = $1 AND group_id = $2 ORDER BY name, child_id`,
    [scopeKey(scope), groupId],
  )

/** Settles what waits for this child; gives the groups, which are to be looked at. kernel_dependencies_by_child. */
export async function settleChild(
  tx: Queryable,
  scope: Scope,
  childId: string,
  status: Exclude<DependencyStatus, 'pending'>,
): Promise<string[]> {
  const rows = await tx.all<{ group_id: string }>(
    `UPDATE kernel_dependencies SET status = $3 WHERE scope = $1 AND child_id = $2 AND status = 'pending'
     RETURNING group_id`,
    [scopeKey(scope), childId, status],
  )
  return rows.map((row) => row.group_id)
}
