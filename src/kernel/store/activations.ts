import type { Queryable } from '../../database/database.ts'
import type { ActivationRecord } from '../model/deployment.ts'
import type { Scope } from '../model/fields.ts'
import type { FamilyName } from './definitions.ts'
import type { Key, RecordPage } from './records.ts'
import { scopeKey } from './scope-key.ts'
import { Conditions } from './sql.ts'

/**
 * The steps of deployments. Each is a node of its deployment's stack of versions: the newest is the top, and every one knows
 * the one below. All read the primary key of kernel_activations. Contract: kernel-1.md 11
 */

/** A version on the stack, and the deployment revision of the step below it; none under the first. */
export interface Stacked {
  version: string
  below: number | null
}

interface StackRow extends Record<string, string | number | null> {
  to_version: string
  below: number | null
}

const toStacked = ({ to_version: version, below }: StackRow): Stacked => ({ version, below })

/** One for each revision of the deployment that changed its version or configuration. */
export async function insertActivation(
  tx: Queryable,
  family: FamilyName,
  record: ActivationRecord,
  below: number | null,
): Promise<void> {
  await tx.run(
    `INSERT INTO kernel_activations (scope, family, deployment_id, deployment_revision, to_version, below, body)
     VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    [
      scopeKey(record.scope),
      family,
      record.deploymentId,
      record.deploymentRevision,
      record.toVersion,
      below,
      JSON.stringify(record),
    ],
  )
}

const OF_DEPLOYMENT = 'scope = $1 AND family = $2 AND deployment_id = $3'

/** The step that made this revision of the deployment. */
export async function findActivation(
  db: Queryable,
  family: FamilyName,
  scope: Scope,
  deploymentId: string,
  revision: number,
): Promise<ActivationRecord | undefined> {
  const row = await db.get<{ body: string }>(
    `SELECT body FROM kernel_activations WHERE ${OF_DEPLOYMENT} AND deployment_revision = $4`,
    [scopeKey(scope), family, deploymentId, revision],
  )
  return row && JSON.parse(row.body)
}

/** The version that runs, with the revision of the step that made it so. */
export async function findTop(
  db: Queryable,
  family: FamilyName,
  scope: Scope,
  deploymentId: string,
): Promise<(Stacked & { revision: number }) | undefined> {
  const row = await db.get<StackRow & { revision: number }>(
    `SELECT deployment_revision AS revision, to_version, below FROM kernel_activations WHERE ${OF_DEPLOYMENT}
      ORDER BY deployment_revision DESC LIMIT 1`,
    [scopeKey(scope), family, deploymentId],
  )
  return row && { ...toStacked(row), revision: row.revision }
}

/** What a step brought to the top. */
export async function findStacked(
  db: Queryable,
  family: FamilyName,
  scope: Scope,
  deploymentId: string,
  revision: number,
): Promise<Stacked | undefined> {
  const row = await db.get<StackRow>(
    `SELECT to_version, below FROM kernel_activations WHERE ${OF_DEPLOYMENT} AND deployment_revision = $4`,
    [scopeKey(scope), family, deploymentId, revision],
  )
  return row && toStacked(row)
}

/** The uppermost of this version, from a step of the stack downwards. */
export async function findOnStack(
  db: Queryable,
  family: FamilyName,
  scope: Scope,
  { deploymentId, from, version }: { deploymentId: string; from: number; version: string },
): Promise<Stacked | undefined> {
  const row = await db.get<StackRow>(
    `WITH RECURSIVE stack (revision, to_version, below) AS (
       SELECT deployment_revision, to_version, below FROM kernel_activations
        WHERE ${OF_DEPLOYMENT} AND deployment_revision = $4
       UNION ALL
       SELECT a.deployment_revision, a.to_version, a.below FROM stack s JOIN kernel_activations a
           ON a.scope = $1 AND a.family = $2 AND a.deployment_id = $3 AND a.deployment_revision = s.below)
     SELECT to_version, below FROM stack WHERE to_version = $5 ORDER BY revision DESC LIMIT 1`,
    [scopeKey(scope), family, deploymentId, from, version],
  )
  return row && toStacked(row)
}

/** Whether this version ever ran. */
export async function wasActive(
  db: Queryable,
  family: FamilyName,
  scope: Scope,
  deploymentId: string,
  version: string,
): Promise<boolean> {
  const row = await db.get(
    `SELECT 1 AS found FROM kernel_activations WHERE ${OF_DEPLOYMENT} AND to_version = $4 LIMIT 1`,
    [scopeKey(scope), family, deploymentId, version],
  )
  return row !== undefined
}

/** The newest first. */
export async function listActivations(
  db: Queryable,
  family: FamilyName,
  scope: Scope,
  deploymentId: string,
  { limit = Number.MAX_SAFE_INTEGER - 1, offset = 0, after }: { limit?: number; offset?: number; after?: Key } = {},
): Promise<RecordPage<ActivationRecord>> {
  const where = new Conditions()
    .and('scope = ?', scopeKey(scope))
    .and('family = ?', family)
    .and('deployment_id = ?', deploymentId)
  if (after) where.and('deployment_revision < ?', after[0] ?? null)
  const rows = await db.all<{ body: string }>(
    `SELECT body FROM kernel_activations WHERE ${where.sql}
      ORDER BY deployment_revision DESC LIMIT ${Math.trunc(limit) + 1} OFFSET ${Math.trunc(offset)}`,
    where.params,
  )
  const items = rows.slice(0, limit).map((row): ActivationRecord => JSON.parse(row.body))
  const last = items.at(-1)
  return rows.length > limit && last ? { items, next: [last.deploymentRevision] } : { items }
}
