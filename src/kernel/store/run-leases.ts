import { inList, type Queryable } from '../../database/database.ts'
import type { Scope } from '../model/fields.ts'
import { scopeKey } from './scope-key.ts'
import { freeSlots, idsOf } from './slots.ts'
import { amongFew, amongIds, skipLocked } from './sql.ts'

/** Gives runs to a worker, whoever had them. Gives the fencing token of each: one with a smaller token writes nothing more. */
export async function grantLeases(
  tx: Queryable,
  scope: Scope,
  runs: readonly { id: string }[],
  { owner, now, leaseMs }: { owner: string; now: number; leaseMs: number },
): Promise<Map<string, number>> {
  const granted = await tx.all<{ run_id: string; fencing_token: number }>(
    `INSERT INTO kernel_run_leases (scope, run_id, owner, expires_at, fencing_token, claimed_at, held)
     SELECT $1, ids.value, $3, $4, 1, $5, 1 FROM ${inList(tx, '$2')} ids WHERE true
     ON CONFLICT (scope, run_id) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at,
       fencing_token = kernel_run_leases.fencing_token + 1, claimed_at = excluded.claimed_at, held = 1
     RETURNING run_id, fencing_token`,
    [scopeKey(scope), idsOf(runs), owner, now + leaseMs, now],
  )
  return new Map(granted.map((row) => [row.run_id, row.fencing_token]))
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

/** Ends the leases of runs that leave `running`; gives those whose slots are to be freed. The key of kernel_run_leases. */
export async function endLeases(
  tx: Queryable,
  scope: Scope,
  runs: readonly { id: string }[],
): Promise<{ id: string }[]> {
  if (runs.length === 0) return []
  const end = (held: 0 | 1): Promise<{ id: string }[]> =>
    tx.all(
      `UPDATE kernel_run_leases SET owner = NULL, expires_at = NULL, held = 0
        WHERE scope = $1 AND held = ${held} AND ${amongIds(tx, 'run_id', '$2')} RETURNING run_id AS id`,
      [scopeKey(scope), idsOf(runs)],
    )
  const released = await end(1)
  if (released.length < runs.length) await end(0)
  return released
}

/** The same, with their slots. */
export const releaseLeases = async (tx: Queryable, scope: Scope, runs: readonly { id: string }[]): Promise<void> =>
  freeSlots(tx, scope, await endLeases(tx, scope, runs))

/** Lets a lease run out now, so that another may go on with the run at once; nothing where it is another's by now. */
export async function abandonLease(
  tx: Queryable,
  scope: Scope,
  runId: string,
  { fencingToken, now }: { fencingToken: number; now: number },
): Promise<void> {
  const abandoned = await tx.run(
    `UPDATE kernel_run_leases SET held = 0, expires_at = $4
      WHERE scope = $1 AND run_id = $2 AND fencing_token = $3 AND held = 1`,
    [scopeKey(scope), runId, fencingToken, now],
  )
  if (abandoned === 1) await freeSlots(tx, scope, [{ id: runId }])
}

const LAPSES_AT_ONCE = 100

/** Frees what runs take up whose lease ran out: they may be claimed anew. kernel_run_leases_to_end. */
export async function lapseLeases(tx: Queryable, scope: Scope, now: number): Promise<number> {
  const lapsed = await tx.all<{ id: string }>(
    `UPDATE kernel_run_leases SET held = 0 WHERE scope = $1 AND ${amongFew(
      tx,
      'run_id',
      `SELECT run_id FROM kernel_run_leases WHERE scope = $1 AND held = 1 AND expires_at <= $2
        ORDER BY expires_at LIMIT ${LAPSES_AT_ONCE}${skipLocked(tx)}`,
    )} RETURNING run_id AS id`,
    [scopeKey(scope), now],
  )
  await freeSlots(tx, scope, lapsed)
  return lapsed.length
}
