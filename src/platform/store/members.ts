import type { Queryable } from '../../database/database.ts'
import type { ProjectScope } from '../caller.ts'
import type { Member, MemberRole } from '../model.ts'

/** In ascending order of the user. */
export const listMembers = (
  db: Queryable,
  { organizationId, projectId }: ProjectScope,
  after: number,
  limit: number,
): Promise<Member[]> =>
  db.all<Member>(
    `SELECT user_id, role FROM platform_members WHERE organization_id = $1 AND project_id = $2 AND user_id > $3
      ORDER BY user_id LIMIT $4`,
    [organizationId, projectId, after, limit],
  )

/** Inserts the member, or gives the one there is this role; true when it is new. */
export async function saveMember(
  tx: Queryable,
  { organizationId, projectId }: ProjectScope,
  userId: number,
  role: MemberRole,
): Promise<boolean> {
  const changed = await tx.run(
    'UPDATE platform_members SET role = $4 WHERE organization_id = $1 AND project_id = $2 AND user_id = $3',
    [organizationId, projectId, userId, role],
  )
  if (changed > 0) return false
  const inserted = await tx.run(
    `INSERT INTO platform_members (organization_id, project_id, user_id, role) VALUES ($1, $2, $3, $4)
     ON CONFLICT (project_id, user_id) DO UPDATE SET role = excluded.role`,
    [organizationId, projectId, userId, role],
  )
  return inserted > 0
}

export const deleteMember = (
  tx: Queryable,
  { organizationId, projectId }: ProjectScope,
  userId: number,
): Promise<number> =>
  tx.run('DELETE FROM platform_members WHERE organization_id = $1 AND project_id = $2 AND user_id = $3', [
    organizationId,
    projectId,
    userId,
  ])
