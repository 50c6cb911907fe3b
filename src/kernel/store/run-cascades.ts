import { inList, type Queryable } from '../../database/database.ts'
import type { Scope } from '../model/fields.ts'
import type { Run } from '../model/run.ts'
import { scopeKey } from './scope-key.ts'
import { idsOf } from './slots.ts'

/** Deeper ones are reached from those in between, which end too. */
const MAX_DEPTH = 256

/**
 * Ids of descendants that are not at their end, the deepest first; of a run that completed, not what it handed off.
 * A circle ends at the greatest depth. kernel_runs_by_parent: SQLite keeps to the order of a CROSS JOIN, and so to the tree.
 */
export async function findLiveDescendants(
  db: Queryable,
  scope: Scope,
  { id, status }: Pick<Run, 'id' | 'status'>,
  limit: number,
): Promise<string[]> {
  const rows = await db.all<{ id: string }>(
    `WITH RECURSIVE tree (id, depth, status) AS (
       SELECT id, 1, status FROM kernel_runs WHERE scope = $1 AND parent_id = $2 AND (source <> 'handoff' OR $3 = 0)
       UNION
       SELECT r.id, tree.depth + 1, r.status FROM tree CROSS JOIN kernel_runs r
        WHERE r.scope = $1 AND r.parent_id = tree.id AND tree.depth < ${MAX_DEPTH})
     SELECT id FROM tree WHERE status NOT IN ('completed', 'failed', 'canceled') AND id <> $2
      GROUP BY id ORDER BY MAX(depth) DESC, id LIMIT $4`,
    [scopeKey(scope), id, Number(status === 'completed'), limit],
  )
  return rows.map((row) => row.id)
}

/**
 * Of runs that ended those on which nothing hangs: no budget, fork, call, request or child. kernel_calls_by_run,
 * kernel_requests_by_child, kernel_requests_by_source, kernel_runs_by_parent.
 */
export async function findBare(tx: Queryable, scope: Scope, ended: readonly Run[]): Promise<ReadonlySet<string>> {
  const simple = ended.filter(({ budget, source }) => !budget && source !== 'fork')
  if (simple.length === 0) return new Set()
  const none = (table: string, column: string): string =>
    `(SELECT 1 FROM ${table} h WHERE h.scope = $1 AND h.${column} = ids.value LIMIT 1) IS NULL`
  const bare = await tx.all<{ id: string }>(
    `SELECT ids.value AS id FROM ${inList(tx, '$2')} ids
      WHERE ${none('kernel_calls', 'run_id')} AND ${none('kernel_requests', 'child_run_id')}
        AND ${none('kernel_requests', 'source_run_id')} AND ${none('kernel_runs', 'parent_id')}`,
    [scopeKey(scope), idsOf(simple)],
  )
  return new Set(bare.map(({ id }) => id))
}

/** Notes that descendants of a run are to be canceled. */
export async function openCascade(tx: Queryable, scope: Scope, runId: string): Promise<void> {
  await tx.run(
    'INSERT INTO kernel_run_cascades (scope, run_id) VALUES ($1, $2) ON CONFLICT (scope, run_id) DO NOTHING',
    [scopeKey(scope), runId],
  )
}

/** No descendant is left that would have to be canceled. */
export async function endCascade(tx: Queryable, scope: Scope, runId: string): Promise<void> {
  await tx.run('DELETE FROM kernel_run_cascades WHERE scope = $1 AND run_id = $2', [scopeKey(scope), runId])
}

/** Runs whose descendants are still to be canceled. The key of kernel_run_cascades. */
export async function listCascades(db: Queryable, scope: Scope, limit: number): Promise<string[]> {
  const rows = await db.all<{ run_id: string }>(
    'SELECT run_id FROM kernel_run_cascades WHERE scope = $1 ORDER BY run_id LIMIT $2',
    [scopeKey(scope), limit],
  )
  return rows.map((row) => row.run_id)
}
