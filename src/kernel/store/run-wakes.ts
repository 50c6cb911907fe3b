import type { Queryable } from '../../database/database.ts'
import type { Scope } from '../model/fields.ts'
import type { WakeType } from '../model/run.ts'
import { scopeKey, scopeOf } from './scope-key.ts'

/** For each reference of its own, so that no run is read that waits for another. */
const waitingFor = (reference: string): string =>
  `SELECT id FROM kernel_runs WHERE scope = $1 AND wake_type = $2 AND wake_reference = ${reference} AND id > $4
    ORDER BY id LIMIT $5`

/** Ids of runs that wait for this and have an id above `after`, in order. kernel_runs_by_wake. */
export async function findWaiting(
  db: Queryable,
  scope: Scope,
  { type, reference, after = '', limit }: { type: WakeType; reference?: string; after?: string; limit: number },
): Promise<string[]> {
  const rows = await db.all<{ id: string }>(
    `SELECT id FROM (${waitingFor("''")}) anything UNION SELECT id FROM (${waitingFor('$3')}) this ORDER BY id LIMIT $5`,
    [scopeKey(scope), type, reference ?? '', after, limit],
  )
  return rows.map(({ id }) => id)
}

/** Runs whose timer has run out, the oldest first. kernel_runs_by_timer. */
export async function findDueTimers(
  db: Queryable,
  now: number,
  limit: number,
): Promise<{ scope: Scope; id: string }[]> {
  const rows = await db.all<{ scope: string; id: string }>(
    `SELECT scope, id FROM kernel_runs WHERE wake_type = 'timer' AND wake_at <= $1 ORDER BY wake_at LIMIT $2`,
    [now, limit],
  )
  return rows.map(({ scope, id }) => ({ scope: scopeOf(scope), id }))
}

/** When the next timer of a scope runs out or its next queued run is due, in epoch ms. kernel_runs_by_scope_timer, _not_due. */
export async function findNextWake(db: Queryable, scope: Scope): Promise<number | undefined> {
  const row = await db.get<{ at: number | null }>(
    `SELECT MIN(at) AS at FROM (
       SELECT MIN(wake_at) AS at FROM kernel_runs WHERE scope = $1 AND wake_type = 'timer'
       UNION ALL SELECT MIN(available_at) FROM kernel_runs WHERE scope = $1 AND status = 'queued' AND due = 0) moments`,
    [scopeKey(scope)],
  )
  return row?.at ?? undefined
}

/** False when this signal has woken the run already. */
export async function consumeSignal(tx: Queryable, scope: Scope, runId: string, signalId: string): Promise<boolean> {
  const inserted = await tx.run(
    `INSERT INTO kernel_run_signals (scope, run_id, signal_id) VALUES ($1, $2, $3)
     ON CONFLICT (scope, run_id, signal_id) DO NOTHING`,
    [scopeKey(scope), runId, signalId],
  )
  return inserted === 1
}
