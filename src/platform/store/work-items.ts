import { toTimestamp } from '../../base/clock.ts'
import type { Queryable } from '../../database/database.ts'
import { optional, returned } from '../../database/rows.ts'
import type { ProjectScope } from '../caller.ts'
import type { WorkItem } from '../model.ts'

export interface WorkItemRow {
  id: number
  type: WorkItem['type']
  title: string
  description: string | null
  status: WorkItem['status']
  branch: string | null
  repository_link_id: number | null
  session_id: string | null
  completed_at: number | null
}

/** What of a row may change. */
export type WorkItemValues = Omit<WorkItemRow, 'id'>

export const toWorkItem = (row: WorkItemRow): WorkItem => ({
  id: row.id,
  type: row.type,
  title: row.title,
  ...optional('description', row.description),
  status: row.status,
  ...optional('branch', row.branch),
  ...optional('repository_link_id', row.repository_link_id),
  ...optional('session_id', row.session_id),
  ...optional('completed_at', row.completed_at === null ? null : toTimestamp(row.completed_at)),
})

/** With `locked`, PostgreSQL keeps the row from others until the transaction ends. */
export const findWorkItem = (
  db: Queryable,
  { organizationId, projectId }: ProjectScope,
  id: number,
  { locked = false } = {},
): Promise<WorkItemRow | undefined> =>
  db.get<WorkItemRow>(
    `SELECT * FROM platform_work_items WHERE organization_id = $1 AND project_id = $2 AND id = $3
      ${locked && db.dialect === 'postgres' ? 'FOR UPDATE' : ''}`,
    [organizationId, projectId, id],
  )

export const listWorkItems = (
  db: Queryable,
  { organizationId, projectId }: ProjectScope,
  after: number,
  limit: number,
): Promise<WorkItemRow[]> =>
  db.all<WorkItemRow>(
    `SELECT * FROM platform_work_items WHERE organization_id = $1 AND project_id = $2 AND id > $3
      ORDER BY id LIMIT $4`,
    [organizationId, projectId, after, limit],
  )

const valuesOf = (item: WorkItemValues): (string | number | null)[] => [
  item.type,
  item.title,
  item.description,
  item.status,
  item.branch,
  item.repository_link_id,
  item.session_id,
  item.completed_at,
]

export async function insertWorkItem(
  tx: Queryable,
  { organizationId, projectId }: ProjectScope,
  item: WorkItemValues,
  now: number,
): Promise<WorkItemRow> {
  return returned(
    await tx.get<WorkItemRow>(
      `INSERT INTO platform_work_items (organization_id, project_id, type, title, description, status, branch,
       repository_link_id, session_id, completed_at, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING *`,
      [organizationId, projectId, ...valuesOf(item), now],
    ),
  )
}

export async function updateWorkItem(
  tx: Queryable,
  { organizationId, projectId }: ProjectScope,
  item: WorkItemRow,
): Promise<void> {
  await tx.run(
    `UPDATE platform_work_items SET type = $4, title = $5, description = $6, status = $7, branch = $8,
       repository_link_id = $9, session_id = $10, completed_at = $11
      WHERE organization_id = $1 AND project_id = $2 AND id = $3`,
    [organizationId, projectId, item.id, ...valuesOf(item)],
  )
}
