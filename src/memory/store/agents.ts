import { toTimestamp } from '../../base/clock.ts'
import type { Page } from '../../base/pages.ts'
import { toPage } from '../../base/pages.ts'
import type { Queryable } from '../../database/database.ts'
import type { Agent } from '../model.ts'
import { fromJson, optional, toJson } from './rows.ts'

interface AgentRow {
  workspace_id: string
  agent_id: string
  display_name: string | null
  identity_provider: string
  identity_proof_hash: string | null
  agent_type: string | null
  model: string | null
  capabilities: string | null
  registered_at: number
  last_seen_at: number | null
  active: number
}

const toAgent = (row: AgentRow): Agent => ({
  agent_id: row.agent_id,
  workspace_id: row.workspace_id,
  ...optional('display_name', row.display_name),
  identity_provider: row.identity_provider,
  ...optional('identity_proof_hash', row.identity_proof_hash),
  ...optional('agent_type', row.agent_type),
  ...optional('model', row.model),
  ...optional('capabilities', fromJson(row.capabilities)),
  registered_at: toTimestamp(row.registered_at),
  ...optional('last_seen_at', row.last_seen_at === null ? null : toTimestamp(row.last_seen_at)),
  active: row.active === 1,
})

/** By the primary key. */
export async function findAgent(db: Queryable, workspaceId: string, agentId: string): Promise<Agent | undefined> {
  const row = await db.get<AgentRow>('SELECT * FROM agent WHERE workspace_id = $1 AND agent_id = $2', [
    workspaceId,
    agentId,
  ])
  return row && toAgent(row)
}

/** What a write asks of its agent. */
export function findPresence(
  db: Queryable,
  workspaceId: string,
  agentId: string,
): Promise<Pick<AgentRow, 'last_seen_at' | 'active'> | undefined> {
  return db.get('SELECT last_seen_at, active FROM agent WHERE workspace_id = $1 AND agent_id = $2', [
    workspaceId,
    agentId,
  ])
}

/** Newest first; `before` is registration time and id of the last one shown. */
export async function listAgents(
  db: Queryable,
  workspaceId: string,
  limit: number,
  before: readonly [number, string] | undefined,
): Promise<Page<Agent>> {
  const rows = await db.all<AgentRow>(
    `SELECT * FROM agent WHERE workspace_id = $1 AND (registered_at, agent_id) < ($2, $3)
      ORDER BY registered_at DESC, agent_id DESC LIMIT $4`,
    [workspaceId, before?.[0] ?? Number.MAX_SAFE_INTEGER, before?.[1] ?? '', limit + 1],
  )
  return toPage(rows, limit, (row) => [row.registered_at, row.agent_id], toAgent)
}

/** Inserts the record, or replaces the profile of the one with its id; `registered_at` and `last_seen_at` stay. */
export async function saveAgent(tx: Queryable, agent: Agent): Promise<void> {
  await tx.run(
    `INSERT INTO agent (workspace_id, agent_id, display_name, identity_provider, identity_proof_hash, agent_type,
       model, capabilities, registered_at, last_seen_at, active)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
     ON CONFLICT (workspace_id, agent_id) DO UPDATE SET display_name = excluded.display_name,
       identity_provider = excluded.identity_provider, identity_proof_hash = excluded.identity_proof_hash,
       agent_type = excluded.agent_type, model = excluded.model, capabilities = excluded.capabilities,
       active = excluded.active`,
    [
      agent.workspace_id,
      agent.agent_id,
      agent.display_name ?? null,
      agent.identity_provider,
      agent.identity_proof_hash ?? null,
      agent.agent_type ?? null,
      agent.model ?? null,
      toJson(agent.capabilities),
      Date.parse(agent.registered_at),
      agent.last_seen_at === undefined ? null : Date.parse(agent.last_seen_at),
      Number(agent.active),
    ],
  )
}

/** Says when it was last seen. By the primary key. */
export async function touchAgent(tx: Queryable, workspaceId: string, agentId: string, now: number): Promise<void> {
  await tx.run('UPDATE agent SET last_seen_at = $3 WHERE workspace_id = $1 AND agent_id = $2', [
    workspaceId,
    agentId,
    now,
  ])
}

/** By the primary key. */
export async function deactivateAgent(tx: Queryable, workspaceId: string, agentId: string): Promise<void> {
  await tx.run('UPDATE agent SET active = 0 WHERE workspace_id = $1 AND agent_id = $2', [workspaceId, agentId])
}
