import type { Queryable } from '../../database/database.ts'
import { returned } from '../../database/rows.ts'
import type { ProjectScope } from '../caller.ts'
import type { MemberRole, SourceControl } from '../model.ts'

export interface ProjectRow {
  id: number
  name: string
  source_control: SourceControl | null
  /** Of the user who asks; null for who is no member. */
  membership: MemberRole | null
}

const SELECT = `SELECT p.id, p.name, p.source_control, m.role AS membership FROM platform_projects p
  LEFT JOIN platform_members m ON m.project_id = p.id AND m.organization_id = p.organization_id AND m.user_id = $2
  WHERE p.organization_id = $1`

export const findProject = (db: Queryable, scope: ProjectScope, userId: number): Promise<ProjectRow | undefined> =>
  db.get<ProjectRow>(`${SELECT} AND p.id = $3`, [scope.organizationId, userId, scope.projectId])

/** In ascending order: those the user is a member of, or all. */
export const listProjects = (
  db: Queryable,
  { organizationId, userId, all }: { organizationId: number; userId: number; all: boolean },
  after: number,
  limit: number,
): Promise<ProjectRow[]> =>
  db.all<ProjectRow>(`${SELECT} AND p.id > $3 AND ($4 = 1 OR m.role IS NOT NULL) ORDER BY p.id LIMIT $5`, [
    organizationId,
    userId,
    after,
    Number(all),
    limit,
  ])

/** Whether a project of the organization, but for `except`, has the name. */
export async function projectNameExists(
  db: Queryable,
  organizationId: number,
  name: string,
  except = 0,
): Promise<boolean> {
  const sql = 'SELECT 1 FROM platform_projects WHERE organization_id = $1 AND name = $2 AND id <> $3'
  return (await db.get(sql, [organizationId, name, except])) !== undefined
}

/** Gives its id. */
export async function insertProject(
  tx: Queryable,
  organizationId: number,
  name: string,
  sourceControl: SourceControl | null,
  now: number,
): Promise<number> {
  const row = returned(
    await tx.get<{ id: number }>(
      `INSERT INTO platform_projects (organization_id, name, source_control, created_at) VALUES ($1, $2, $3, $4)
     RETURNING id`,
      [organizationId, name, sourceControl, now],
    ),
  )
  return row.id
}

export async function updateProject(
  tx: Queryable,
  { organizationId, projectId }: ProjectScope,
  name: string,
  sourceControl: SourceControl | null,
): Promise<void> {
  await tx.run('UPDATE platform_projects SET name = $3, source_control = $4 WHERE organization_id = $1 AND id = $2', [
    organizationId,
    projectId,
    name,
    sourceControl,
  ])
}
