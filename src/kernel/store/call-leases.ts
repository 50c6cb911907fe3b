import type { Queryable } from '../../database/database.ts'
import { returned } from '../../database/rows.ts'
import type { Scope } from '../model/fields.ts'
import { scopeKey } from './scope-key.ts'

/** A worker's right to a call: void once another got a greater token. */
export interface Lease {
  owner: string
  expiresAt: number
  fencingToken: number
}

/** Gives the call to a worker for this attempt, and opens its line in the journal: T6. */
export async function grantCallLease(
  tx: Queryable,
  scope: Scope,
  callId: string,
  { owner, attempt, now, leaseMs }: { owner: string; attempt: number; now: number; leaseMs: number },
): Promise<Lease> {
  const key = scopeKey(scope)
  const expiresAt = now + leaseMs
  const row = await tx.get<{ fencing_token: number }>(
    `INSERT INTO kernel_call_leases (scope, call_id, owner, expires_at, fencing_token) VALUES ($1, $2, $3, $4, 1)
     ON CONFLICT (scope, call_id) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at,
       fencing_token = kernel_call_leases.fencing_token + 1, stopping = 0
     RETURNING fencing_token`,
    [key, callId, owner, expiresAt],
  )
  const fencingToken = returned(row).fencing_token
  await tx.run(
    `INSERT INTO kernel_call_journal (scope, call_id, attempt, fencing_token, claimed_at) VALUES ($1, $2, $3, $4, $5)`,
    [key, callId, attempt, fencingToken, now],
  )
  return { owner, expiresAt, fencingToken }
}

/** False when it ran out, or another has the call: a result that comes yet is to be dropped. */
export async function renewCallLease(
  db: Queryable,
  scope: Scope,
  callId: string,
  { fencingToken, now, leaseMs }: { fencingToken: number; now: number; leaseMs: number },
): Promise<boolean> {
  const renewed = await db.run(
    `UPDATE kernel_call_leases SET expires_at = $4
      WHERE scope = $1 AND call_id = $2 AND fencing_token = $3 AND owner IS NOT NULL AND expires_at > $5`,
    [scopeKey(scope), callId, fencingToken, now + leaseMs, now],
  )
  return renewed === 1
}

/** Right before the request leaves: T7. False when the lease is lost: then it must not leave. */
export async function markDispatched(
  tx: Queryable,
  scope: Scope,
  callId: string,
  { fencingToken, now }: { fencingToken: number; now: number },
): Promise<boolean> {
  const marked = await tx.run(
    `UPDATE kernel_call_journal SET dispatched_at = $4 WHERE scope = $1 AND call_id = $2 AND fencing_token = $3
        AND EXISTS (SELECT 1 FROM kernel_call_leases l WHERE l.scope = $1 AND l.call_id = $2 AND l.fencing_token = $3
                       AND l.owner IS NOT NULL AND l.expires_at > $4)`,
    [scopeKey(scope), callId, fencingToken, now],
  )
  return marked === 1
}

/** Ends the lease and the line in the journal: T8. False when it is another's by now: then nothing may be written. */
export async function endCallLease(
  tx: Queryable,
  scope: Scope,
  callId: string,
  { fencingToken, outcome, now }: { fencingToken: number; outcome: string; now: number },
): Promise<boolean> {
  const key = scopeKey(scope)
  const ended = await tx.run(
    `UPDATE kernel_call_leases SET owner = NULL, expires_at = NULL
      WHERE scope = $1 AND call_id = $2 AND fencing_token = $3 AND owner IS NOT NULL`,
    [key, callId, fencingToken],
  )
  if (ended === 0) return false
  await tx.run(
    `UPDATE kernel_call_journal SET finished_at = $4, outcome = $5
      WHERE scope = $1 AND call_id = $2 AND fencing_token = $3`,
    [key, callId, fencingToken, now, outcome],
  )
  return true
}

/** The run was canceled: who makes the call should give it up. What becomes of it is recorded all the same. */
export async function markStopping(tx: Queryable, scope: Scope, callId: string): Promise<void> {
  await tx.run('UPDATE kernel_call_leases SET stopping = 1 WHERE scope = $1 AND call_id = $2 AND owner IS NOT NULL', [
    scopeKey(scope),
    callId,
  ])
}

/** Whether the worker with this token should give up its call. */
export async function isStopping(db: Queryable, scope: Scope, callId: string, fencingToken: number): Promise<boolean> {
  const row = await db.get<{ stopping: number }>(
    'SELECT stopping FROM kernel_call_leases WHERE scope = $1 AND call_id = $2 AND fencing_token = $3',
    [scopeKey(scope), callId, fencingToken],
  )
  return row?.stopping === 1
}
