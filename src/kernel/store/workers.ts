import type { Queryable } from '../../database/database.ts'
import type { Scope } from '../model/fields.ts'
import type { RunKind } from '../model/run.ts'
import { scopeKey } from './scope-key.ts'
import type { WorkerLimits } from './slots.ts'

/** A pool of workers, as it reports itself. */
export interface Worker {
  id: string
  scope: Scope
  /** What it works on. */
  kind: 'run' | 'action'
  runKinds: RunKind[]
  concurrency: number
  active: number
  limits: WorkerLimits
  /** Epoch ms. */
  lastSeenAt: number
}

/** Says that a pool is there, anew each time. */
export async function saveWorker(db: Queryable, worker: Worker): Promise<void> {
  await db.run(
    `INSERT INTO kernel_workers (scope, id, kind, run_kinds, concurrency, active, limits, last_seen_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT (scope, id) DO UPDATE SET kind = excluded.kind, run_kinds = excluded.run_kinds,
       concurrency = excluded.concurrency, active = excluded.active, limits = excluded.limits,
       last_seen_at = excluded.last_seen_at`,
    [
      scopeKey(worker.scope),
      worker.id,
      worker.kind,
      JSON.stringify(worker.runKinds),
      worker.concurrency,
      worker.active,
      JSON.stringify(worker.limits),
      worker.lastSeenAt,
    ],
  )
}

interface WorkerRow {
  id: string
  kind: Worker['kind']
  run_kinds: string
  concurrency: number
  active: number
  limits: string
  last_seen_at: number
}

/** The pools of a scope that were seen after `since`, by id. */
export async function listWorkers(db: Queryable, scope: Scope, since: number): Promise<Worker[]> {
  const rows = await db.all<WorkerRow>(
    `SELECT id, kind, run_kinds, concurrency, active, limits, last_seen_at FROM kernel_workers
      WHERE scope = $1 AND last_seen_at > $2 ORDER BY id`,
    [scopeKey(scope), since],
  )
  return rows.map((row) => ({
    id: row.id,
    scope,
    kind: row.kind,
    runKinds: JSON.parse(row.run_kinds),
    concurrency: row.concurrency,
    active: row.active,
    limits: JSON.parse(row.limits),
    lastSeenAt: row.last_seen_at,
  }))
}

/** Forgets pools last seen before this. kernel_workers_by_age. */
export const purgeWorkers = (db: Queryable, before: number): Promise<number> =>
  db.run('DELETE FROM kernel_workers WHERE last_seen_at < $1', [before])
