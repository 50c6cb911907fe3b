import type { Queryable } from '../../database/database.ts'
import { optional, returned } from '../../database/rows.ts'
import type { ProjectScope } from '../caller.ts'
import type { AgentSession } from '../model.ts'

interface AgentSessionRow {
  sid: number
  session_id: string
  user_id: number
  kind: AgentSession['kind']
  branch: string | null
  repository_link_id: number | null
  work_item_id: number | null
  status: AgentSession['status']
}

const toAgentSession = (row: AgentSessionRow): AgentSession => ({
  sid: row.sid,
  session_id: row.session_id,
  user_id: row.user_id,
  kind: row.kind,
  ...optional('branch', row.branch),
  ...optional('repository_link_id', row.repository_link_id),
  ...optional('work_item_id', row.work_item_id),
  status: row.status,
})

/** In ascending order. */
export async function listAgentSessions(
  db: Queryable,
  { organizationId, projectId }: ProjectScope,
  after: number,
  limit: number,
): Promise<AgentSession[]> {
  const rows = await db.all<AgentSessionRow>(
    `SELECT * FROM platform_agent_sessions WHERE organization_id = $1 AND project_id = $2 AND sid > $3
      ORDER BY sid LIMIT $4`,
    [organizationId, projectId, after, limit],
  )
  return rows.map(toAgentSession)
}

/** By either of its names. */
export async function agentSessionExists(
  db: Queryable,
  { organizationId, projectId }: ProjectScope,
  named: { sid: number } | { session_id: string },
): Promise<boolean> {
  const [column, value] = 'sid' in named ? ['sid', named.sid] : ['session_id', named.session_id]
  const row = await db.get(
    `SELECT 1 FROM platform_agent_sessions WHERE organization_id = $1 AND project_id = $2 AND ${column} = $3`,
    [organizationId, projectId, value],
  )
  return row !== undefined
}

export async function insertAgentSession(
  tx: Queryable,
  { organizationId, projectId }: ProjectScope,
  session: Omit<AgentSessionRow, 'sid'>,
  now: number,
): Promise<AgentSession> {
  const row = returned(
    await tx.get<AgentSessionRow>(
      `INSERT INTO platform_agent_sessions (organization_id, project_id, session_id, user_id, kind, branch,
       repository_link_id, work_item_id, status, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING *`,
      [
        organizationId,
        projectId,
        session.session_id,
        session.user_id,
        session.kind,
        session.branch,
        session.repository_link_id,
        session.work_item_id,
        session.status,
        now,
      ],
    ),
  )
  return toAgentSession(row)
}

/** The session as it is then; undefined for one that is not there. */
export async function updateAgentSessionStatus(
  tx: Queryable,
  { organizationId, projectId }: ProjectScope,
  sid: number,
  status: AgentSession['status'],
): Promise<AgentSession | undefined> {
  const row = await tx.get<AgentSessionRow>(
    `UPDATE platform_agent_sessions SET status = $4 WHERE organization_id = $1 AND project_id = $2 AND sid = $3
     RETURNING *`,
    [organizationId, projectId, sid, status],
  )
  return row && toAgentSession(row)
}
