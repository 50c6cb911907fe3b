import type { Queryable } from '../../database/database.ts'
import type { Binding } from '../model/binding.ts'
import type { Scope } from '../model/fields.ts'
import { findRecord, listRecords, type Family } from './records.ts'
import { scopeKey } from './scope-key.ts'
import type { FamilyName } from './definitions.ts'
import { Conditions } from './sql.ts'

/** A binding with the family of its deployment, which is never shown: agents and teams may have the same ids. */
export interface KeptBinding extends Binding {
  family: FamilyName
}

export const bindings: Family<KeptBinding> = {
  table: 'kernel_bindings',
  noun: 'skill binding',
  columns: ({ family, deploymentId, disabled }) => ({
    family,
    deployment_id: deploymentId,
    disabled: Number(disabled),
  }),
}

/** Whose bindings. */
export interface BindingOwner {
  family: FamilyName
  deploymentId: string
}

/** One of this deployment; undefined where the id is that of another's. */
export async function findBinding(
  db: Queryable,
  scope: Scope,
  { family, deploymentId }: BindingOwner,
  id: string,
): Promise<KeptBinding | undefined> {
  const binding = await findRecord(db, bindings, scope, id)
  return binding?.family === family && binding.deploymentId === deploymentId ? binding : undefined
}

/** More than a deployment has use for. */
const MOST = 500

/** By id. kernel_bindings_by_deployment. */
export async function listBindings(
  db: Queryable,
  scope: Scope,
  { family, deploymentId }: BindingOwner,
  { enabled = false }: { enabled?: boolean } = {},
): Promise<KeptBinding[]> {
  const where = new Conditions()
    .and('t.scope = ?', scopeKey(scope))
    .and('t.family = ?', family)
    .and('t.deployment_id = ?', deploymentId)
    .equal('t.disabled', enabled ? 0 : undefined)
  return (await listRecords(db, bindings, where, { columns: ['id'] }, { limit: MOST })).items
}

export interface BoundAgent {
  id: string
  status: string
  /** The enabled ones. */
  bindings: KeptBinding[]
}

/** Agents that take runs, by id. The key of kernel_agent_deployments, kernel_bindings_by_deployment. */
export async function listBoundAgents(
  db: Queryable,
  scope: Scope,
  { after, limit }: { after: string; limit: number },
): Promise<BoundAgent[]> {
  const rows = await db.all<{ id: string; status: string; body: string | null }>(
    `SELECT t.id, t.status, b.body FROM (
       SELECT id, status FROM kernel_agent_deployments
        WHERE scope = $1 AND status IN ('active', 'degraded') AND id > $2 ORDER BY id LIMIT ${Math.trunc(limit)}) t
       LEFT JOIN kernel_bindings b
         ON b.scope = $1 AND b.family = 'agent' AND b.deployment_id = t.id AND b.disabled = 0
      ORDER BY t.id`,
    [scopeKey(scope), after],
  )
  const agents = new Map<string, BoundAgent>()
  for (const { id, status, body } of rows) {
    const agent = agents.get(id) ?? { id, status, bindings: [] }
    if (body !== null) agent.bindings.push(JSON.parse(body))
    agents.set(id, agent)
  }
  return [...agents.values()]
}
