import { toTimestamp } from '../../base/clock.ts'
import type { Queryable, Row } from '../../database/database.ts'
import type { ActionCall, CallStatus } from '../model/action.ts'
import type { Scope } from '../model/fields.ts'
import { listRecords, selectFrom, toRecord, type Family, type PageRequest, type RecordPage } from './records.ts'
import { scopeKey } from './scope-key.ts'
import { amongFew, Conditions, forUpdate, ms, skipLocked } from './sql.ts'

export const calls: Family<ActionCall> = {
  table: 'kernel_calls',
  noun: 'action call',
  columns: (call) => ({
    run_id: call.runId,
    deployment_id: call.deploymentId,
    status: call.status,
    idempotency_key: call.idempotencyKey,
    external_digest: call.duplicateOfActionCallId === undefined ? (call.externalOperationDigest ?? null) : null,
    available_at: ms(call.availableAt),
    created_at: ms(call.createdAt),
  }),
  body: ({ leaseOwner: _o, leaseExpiresAt: _e, fencingToken: _t, dispatchedAt: _d, ...kept }) => kept,
  joined: {
    columns: `l.owner AS lease_owner, l.expires_at, l.fencing_token, (SELECT j.dispatched_at FROM kernel_call_journal j
       WHERE j.scope = t.scope AND j.call_id = t.id ORDER BY j.attempt DESC LIMIT 1) AS dispatched_at`,
    join: 'LEFT JOIN kernel_call_leases l ON l.scope = t.scope AND l.call_id = t.id',
    read: (row) => ({
      ...(typeof row['lease_owner'] === 'string' && { leaseOwner: row['lease_owner'] }),
      ...(typeof row['expires_at'] === 'number' && { leaseExpiresAt: toTimestamp(row['expires_at']) }),
      ...(typeof row['fencing_token'] === 'number' && { fencingToken: row['fencing_token'] }),
      ...(typeof row['dispatched_at'] === 'number' && { dispatchedAt: toTimestamp(row['dispatched_at']) }),
    }),
  },
}

/** The call that a run made under this key. The unique key of run and idempotency key. */
export const findCallByKey = (
  db: Queryable,
  scope: Scope,
  runId: string,
  idempotencyKey: string,
): Promise<ActionCall | undefined> =>
  findWhere(db, 't.scope = $1 AND t.run_id = $2 AND t.idempotency_key = $3', [scopeKey(scope), runId, idempotencyKey])

/** The live or succeeded call of the scope that does this in the world. kernel_calls_by_external_digest. */
export const findTwin = (db: Queryable, scope: Scope, externalDigest: string): Promise<ActionCall | undefined> =>
  findWhere(
    db,
    `t.scope = $1 AND t.external_digest = $2
     AND t.status IN ('waiting_for_approval', 'ready', 'running', 'ambiguous', 'succeeded')`,
    [scopeKey(scope), externalDigest],
  )

/** Of transactions that look for a twin of the same operation each sees what the one before recorded. */
export async function lockOperation(tx: Queryable, scope: Scope, externalDigest: string): Promise<void> {
  if (tx.dialect === 'sqlite') return
  await tx.get('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`${scopeKey(scope)} ${externalDigest}`])
}

type CallRow = Row & { body: string }

async function findWhere(db: Queryable, where: string, params: readonly string[]): Promise<ActionCall | undefined> {
  const row = await db.get<CallRow>(`${selectFrom(calls)} WHERE ${where}`, params)
  return row && toRecord(calls, row)
}

/** The call to be made next, locked: ready, due, of a run and an agent that are not paused. kernel_calls_to_claim. */
export async function findReadyCall(tx: Queryable, scope: Scope, now: number): Promise<ActionCall | undefined> {
  const row = await tx.get<CallRow>(
    `${selectFrom(calls)} WHERE t.scope = $1 AND t.status = 'ready' AND t.available_at <= $2
        AND (SELECT r.status FROM kernel_runs r WHERE r.scope = t.scope AND r.id = t.run_id) <> 'paused'
        AND COALESCE((SELECT d.status FROM kernel_agent_deployments d
                       WHERE d.scope = t.scope AND d.id = t.deployment_id), '') <> 'paused'
      ORDER BY t.available_at, t.id LIMIT 1${skipLocked(tx, 'OF t')}`,
    [scopeKey(scope), now],
  )
  return row && toRecord(calls, row)
}

/** Running calls whose lease ran out, locked. kernel_call_leases_to_end. */
export async function findLapsedCalls(tx: Queryable, scope: Scope, now: number, limit: number): Promise<ActionCall[]> {
  const rows = await tx.all<CallRow>(
    `${selectFrom(calls)} WHERE t.scope = $1 AND t.status = 'running' AND ${amongFew(
      tx,
      't.id',
      'SELECT call_id FROM kernel_call_leases WHERE scope = $1 AND owner IS NOT NULL AND expires_at <= $2',
    )} ORDER BY t.id LIMIT $3${skipLocked(tx, 'OF t')}`,
    [scopeKey(scope), now, limit],
  )
  return rows.map((row) => toRecord(calls, row))
}

const OPEN_AT_ONCE = 100

/** Calls of a run that are not at their end, locked. kernel_calls_by_run. */
export async function lockOpenCalls(tx: Queryable, scope: Scope, runId: string): Promise<ActionCall[]> {
  const rows = await tx.all<CallRow>(
    `${selectFrom(calls)} WHERE t.scope = $1 AND t.run_id = $2
        AND t.status IN ('waiting_for_approval', 'ready', 'running', 'ambiguous')
      ORDER BY t.created_at, t.id LIMIT ${OPEN_AT_ONCE}${forUpdate(tx, 'OF t')}`,
    [scopeKey(scope), runId],
  )
  return rows.map((row) => toRecord(calls, row))
}

export interface CallFilter {
  runId?: string
  status?: readonly CallStatus[]
  deploymentId?: string
}

/** The oldest first, unless told so. kernel_calls_in_order, _by_run, _by_deployment. */
export const listCalls = (
  db: Queryable,
  scope: Scope,
  { runId, status, deploymentId }: CallFilter,
  page: PageRequest,
  order: 'created_asc' | 'created_desc' = 'created_asc',
): Promise<RecordPage<ActionCall>> =>
  listRecords(
    db,
    calls,
    new Conditions()
      .and('t.scope = ?', scopeKey(scope))
      .equal('t.run_id', runId)
      .among('t.status', status)
      .equal('t.deployment_id', deploymentId),
    { columns: ['created_at', 'id'], descending: order === 'created_desc' },
    page,
  )
