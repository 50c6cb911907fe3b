import type { Queryable } from '../../database/database.ts'
import type { Scope } from '../model/fields.ts'
import type { AgentRequest } from '../model/request.ts'
import { selectFrom, toRecord } from './records.ts'
import { requests } from './requests.ts'
import { scopeKey } from './scope-key.ts'

/** Runs that decide on requests, one at most for each revision of a request. */

/** A run that decides on a request as it stood at this revision. */
export interface DecisionRun {
  requestId: string
  revision: number
  runId: string
}

/** Whether one was made for a request as it stands. */
export const hasDecisionRun = async (tx: Queryable, { scope, id, revision }: AgentRequest): Promise<boolean> =>
  (await tx.get('SELECT 1 FROM kernel_request_runs WHERE scope = $1 AND request_id = $2 AND revision = $3', [
    scopeKey(scope),
    id,
    revision,
  ])) !== undefined

/** Notes that this run decides on the request as it stands. @throws where another does already */
export async function insertDecisionRun(
  tx: Queryable,
  { scope, id, revision }: AgentRequest,
  runId: string,
): Promise<void> {
  await tx.run(
    'INSERT INTO kernel_request_runs (scope, request_id, revision, run_id, settled) VALUES ($1, $2, $3, $4, 0)',
    [scopeKey(scope), id, revision, runId],
  )
}

/** False when another process was first. */
export async function settleDecisionRun(tx: Queryable, scope: Scope, runId: string): Promise<boolean> {
  const settled = await tx.run(
    'UPDATE kernel_request_runs SET settled = 1 WHERE scope = $1 AND run_id = $2 AND settled = 0',
    [scopeKey(scope), runId],
  )
  return settled === 1
}

/** Those that ended, or whose request moved on without them; not of a handoff whose source is paused. kernel_request_runs_open. */
export const findDecisionRuns = (db: Queryable, scope: Scope, limit: number): Promise<DecisionRun[]> =>
  db.all<DecisionRun>(
    `SELECT d.request_id AS "requestId", d.revision, d.run_id AS "runId" FROM kernel_request_runs d
       JOIN kernel_runs r ON r.scope = d.scope AND r.id = d.run_id
       JOIN kernel_requests q ON q.scope = d.scope AND q.id = d.request_id
       JOIN kernel_runs s ON s.scope = q.scope AND s.id = q.source_run_id
      WHERE d.scope = $1 AND d.settled = 0
        AND (q.revision <> d.revision OR (r.status IN ('completed', 'failed', 'canceled')
          AND (q.kind <> 'handoff' OR s.status <> 'paused')))
      ORDER BY d.run_id LIMIT $2`,
    [scopeKey(scope), limit],
  )

/**
 * Requests that wait for a decision of an agent and have no run for it as they stand now, the oldest first: a person decides
 * without one. kernel_requests_by_status.
 */
export async function findUndecided(
  db: Queryable,
  scope: Scope,
  { after, limit }: { after?: Pick<AgentRequest, 'createdAt' | 'id'>; limit: number },
): Promise<AgentRequest[]> {
  const undecided = (conditions: string): string => `SELECT * FROM (${selectFrom(requests, ['created_at', 'id'])}
      WHERE t.scope = $1 AND ${conditions} AND (t.created_at, t.id) > ($2, $3)
        AND (SELECT 1 FROM kernel_request_runs d
              WHERE d.scope = t.scope AND d.request_id = t.id AND d.revision = t.revision) IS NULL
      ORDER BY t.created_at, t.id LIMIT $4) found`
  const rows = await db.all<{ body: string }>(
    `${undecided(`t.status = 'pending' AND (t.recipient LIKE 'agent/%' OR t.recipient LIKE 'team/%')`)}
      UNION ALL ${undecided(`t.status = 'completion_review'`)} ORDER BY created_at, id LIMIT $4`,
    [scopeKey(scope), after ? Date.parse(after.createdAt) : 0, after?.id ?? '', limit],
  )
  return rows.map((row) => toRecord(requests, { ...row }))
}
