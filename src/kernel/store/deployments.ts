import type { Queryable } from '../../database/database.ts'
import type { Manifests } from '../model/definition.ts'
import type { AgentDeployment, Amendment, Compilation, Deployments, TeamDeployment } from '../model/deployment.ts'
import { notFound } from '../errors.ts'
import type { Scope } from '../model/fields.ts'
import type { Definition, FamilyName } from './definitions.ts'
import { listRecords, type Family } from './records.ts'
import { scopeKey } from './scope-key.ts'
import { Conditions, forUpdate, ms } from './sql.ts'

export const agentDeployments: Family<AgentDeployment> = {
  table: 'kernel_agent_deployments',
  noun: 'agent deployment',
  columns: ({ rolloutStatus, definitionId, activeVersion }) => ({
    status: rolloutStatus,
    definition_id: definitionId,
    active_version: activeVersion,
  }),
}

export const teamDeployments: Family<TeamDeployment> = {
  table: 'kernel_team_deployments',
  noun: 'team deployment',
  columns: ({ status, definitionId, activeVersion }) => ({
    status,
    definition_id: definitionId,
    active_version: activeVersion,
  }),
}

export interface Deployed<F extends FamilyName> {
  deployment: Deployments[F]
  definition: Definition<F>
}

export interface DeploymentFilter {
  excludeStatuses?: readonly string[]
  ids?: readonly string[]
  offset?: number
  /** All without it. */
  limit?: number
}

/** With their active definitions, by id; all that are asked for. The primary keys of both tables. */
export async function listDeployed<F extends FamilyName>(
  db: Queryable,
  family: F,
  scope: Scope,
  { excludeStatuses = [], ids, offset = 0, limit = Number.MAX_SAFE_INTEGER }: DeploymentFilter,
): Promise<Deployed<F>[]> {
  const where = new Conditions().and('t.scope = ?', scopeKey(scope)).and('d.family = ?', family).among('t.id', ids)
  for (const status of excludeStatuses) where.and('t.status <> ?', status)
  const { table } = family === 'agent' ? agentDeployments : teamDeployments
  const rows = await db.all<{ deployment: string; definition: string }>(
    `SELECT t.body AS deployment, d.body AS definition FROM ${table} t
       JOIN kernel_definitions d ON d.scope = t.scope AND d.id = t.definition_id AND d.version = t.active_version
      WHERE ${where.sql} ORDER BY t.id LIMIT ${Math.trunc(limit)} OFFSET ${Math.trunc(offset)}`,
    where.params,
  )
  return rows.map((row) => ({ deployment: JSON.parse(row.deployment), definition: JSON.parse(row.definition) }))
}

export const amendments = <F extends FamilyName>(family: F): Family<Amendment<Manifests[F]>> => ({
  table: 'kernel_amendments',
  noun: 'amendment',
  columns: ({ deploymentId, createdAt }) => ({ family, deployment_id: deploymentId, created_at: ms(createdAt) }),
})

/** One of this deployment; with `lock` others wait to change it. @throws not_found */
export async function readAmendment<F extends FamilyName>(
  db: Queryable,
  family: F,
  scope: Scope,
  { deploymentId, id, lock = false }: { deploymentId: string; id: string; lock?: boolean },
): Promise<Amendment<Manifests[F]>> {
  const row = await db.get<{ body: string }>(
    `SELECT body FROM kernel_amendments WHERE scope = $1 AND id = $2 AND family = $3 AND deployment_id = $4
     ${lock ? forUpdate(db) : ''}`,
    [scopeKey(scope), id, family, deploymentId],
  )
  if (!row) throw notFound('amendment', id)
  return JSON.parse(row.body)
}

/** The newest first. kernel_amendments_by_deployment. */
export async function listAmendments<F extends FamilyName>(
  db: Queryable,
  family: F,
  scope: Scope,
  deploymentId: string,
  { offset = 0, limit = Number.MAX_SAFE_INTEGER - 1 }: { offset?: number; limit?: number } = {},
): Promise<Amendment<Manifests[F]>[]> {
  const where = new Conditions()
    .and('t.scope = ?', scopeKey(scope))
    .and('t.family = ?', family)
    .and('t.deployment_id = ?', deploymentId)
  const order = { columns: ['created_at', 'id'], descending: true }
  return (await listRecords(db, amendments(family), where, order, { limit, offset })).items
}

/** The newest first. kernel_compilations_by_deployment. */
export async function listCompilations(
  db: Queryable,
  scope: Scope,
  deploymentId: string,
  { offset = 0, limit = Number.MAX_SAFE_INTEGER }: { offset?: number; limit?: number } = {},
): Promise<Compilation[]> {
  const rows = await db.all<{ body: string }>(
    `SELECT body FROM kernel_compilations WHERE scope = $1 AND deployment_id = $2
      ORDER BY created_at DESC, id DESC LIMIT ${Math.trunc(limit)} OFFSET ${Math.trunc(offset)}`,
    [scopeKey(scope), deploymentId],
  )
  return rows.map((row) => JSON.parse(row.body))
}

export async function insertCompilation(tx: Queryable, compilation: Compilation): Promise<void> {
  await tx.run(
    'INSERT INTO kernel_compilations (scope, id, deployment_id, created_at, body) VALUES ($1, $2, $3, $4, $5)',
    [
      scopeKey(compilation.scope),
      compilation.id,
      compilation.deploymentId,
      ms(compilation.createdAt),
      JSON.stringify(compilation),
    ],
  )
}
