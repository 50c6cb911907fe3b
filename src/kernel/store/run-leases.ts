import type { Queryable } from '../../database/database.ts'
import { returned } from '../../database/rows.ts'
import type { Scope } from '../model/fields.ts'
import { scopeKey } from './scope-key.ts'
import { freeSlots } from './slots.ts'
import { amongFew, skipLocked } from './sql.ts'

/** A worker's right to a run: void once another got a greater token. */
export interface Lease {
  owner: string
  expiresAt: number
  fencingToken: number
}

/** Gives the run to a worker, whoever had it; its slots are taken already. */
export async function grantLease(
  tx: Queryable,
  scope: Scope,
  runId: string,
  { owner, now, leaseMs }: { owner: string; now: number; leaseMs: number },
): Promise<Lease> {
  const expiresAt = now + leaseMs
  const row = await tx.get<{ fencing_token: number }>(
    `INSERT INTO kernel_run_leases (scope, run_id, owner, expires_at, fencing_token, claimed_at, held)
     VALUES ($1, $2, $3, $4, 1, $5, 1)
     ON CONFLICT (scope, run_id) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at,
       fencing_token = kernel_run_leases.fencing_token + 1, claimed_at = excluded.claimed_at, held = 1
     RETURNING fencing_token`,
    [scopeKey(scope), runId, owner, expiresAt, now],
  )
  return { owner, expiresAt, fencingToken: returned(row).fencing_token }
}

/** False when it ran out, or another has the run: the work is to be dropped. */
export async function renewLease(
  db: Queryable,
  scope: Scope,
  runId: string,
  { fencingToken, now, leaseMs }: { fencingToken: number; now: number; leaseMs: number },
): Promise<boolean> {
  const renewed = await db.run(
    `UPDATE kernel_run_leases SET expires_at = $4
      WHERE scope = $1 AND run_id = $2 AND fencing_token = $3 AND held = 1 AND expires_at > $5`,
    [scopeKey(scope), runId, fencingToken, now + leaseMs, now],
  )
  return renewed === 1
}

/**
 * Whether a worker may still write what it made of a run; nobody takes it away before this transaction ends.
 * One that ran out is good until another has the run: its work is not thrown away without need.
 */
export async function holdsLease(tx: Queryable, scope: Scope, runId: string, fencingToken: number): Promise<boolean> {
  const touched = await tx.run(
    `UPDATE kernel_run_leases SET fencing_token = fencing_token
      WHERE scope = $1 AND run_id = $2 AND fencing_token = $3 AND owner IS NOT NULL`,
    [scopeKey(scope), runId, fencingToken],
  )
  return touched === 1
}

/** Ends the lease of a run that leaves `running`, and frees what it took up. */
export async function releaseLease(tx: Queryable, scope: Scope, runId: string): Promise<void> {
  const key = scopeKey(scope)
  const wasHeld = await tx.run(
    `UPDATE kernel_run_leases SET owner = NULL, expires_at = NULL, held = 0 WHERE scope = $1 AND run_id = $2 AND held = 1`,
    [key, runId],
  )
  if (wasHeld === 1) await freeSlots(tx, key, runId)
  else
    await tx.run('UPDATE kernel_run_leases SET owner = NULL, expires_at = NULL WHERE scope = $1 AND run_id = $2', [
      key,
      runId,
    ])
}

/** Lets a lease run out now, so that another may go on with the run at once; nothing where it is another's by now. */
export async function abandonLease(
  tx: Queryable,
  scope: Scope,
  runId: string,
  { fencingToken, now }: { fencingToken: number; now: number },
): Promise<void> {
  const key = scopeKey(scope)
  const abandoned = await tx.run(
    `UPDATE kernel_run_leases SET held = 0, expires_at = $4
      WHERE scope = $1 AND run_id = $2 AND fencing_token = $3 AND held = 1`,
    [key, runId, fencingToken, now],
  )
  if (abandoned === 1) await freeSlots(tx, key, runId)
}

const LAPSES_AT_ONCE = 100

/** Frees what runs take up whose lease ran out: they may be claimed anew. kernel_run_leases_to_end. */
export async function lapseLeases(tx: Queryable, scope: Scope, now: number): Promise<number> {
  const key = scopeKey(scope)
  const lapsed = await tx.all<{ run_id: string }>(
    `UPDATE kernel_run_leases SET held = 0 WHERE scope = $1 AND ${amongFew(
      tx,
      'run_id',
      `SELECT run_id FROM kernel_run_leases WHERE scope = $1 AND held = 1 AND expires_at <= $2
        ORDER BY expires_at LIMIT ${LAPSES_AT_ONCE}${skipLocked(tx)}`,
    )} RETURNING run_id`,
    [key, now],
  )
  for (const { run_id: runId } of lapsed) await freeSlots(tx, key, runId)
  return lapsed.length
}
