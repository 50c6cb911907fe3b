import { inNumbers, type Queryable } from '../../database/database.ts'
import { insertMany } from './rows.ts'

/** A Cell that waits for a vector. */
export interface EmbedJob {
  cell_no: number
  workspace_id: string
  memory_id: string
  model: string
  /** Failures so far. */
  attempts: number
  /** Not before (ms). */
  next_at: number
}

/** One a Cell: fails where a Cell has one. */
export async function insertJobs(tx: Queryable, jobs: readonly EmbedJob[]): Promise<void> {
  await insertMany(
    tx,
    'embed_job',
    'cell_no, workspace_id, memory_id, model, attempts, next_at',
    jobs.map((job) => [job.cell_no, job.workspace_id, job.memory_id, job.model, job.attempts, job.next_at]),
  )
}

/**
 * Leases up to `limit` due jobs of one model until `until` (ms): whoever dies with a lease loses it by time.
 * Rows that another process is leasing are skipped. Relies on embed_job_due.
 */
export async function leaseJobs(tx: Queryable, now: number, until: number, limit: number): Promise<EmbedJob[]> {
  const skip = tx.dialect === 'postgres' ? 'FOR UPDATE SKIP LOCKED' : ''
  const due = await tx.all<EmbedJob>(
    `SELECT * FROM embed_job WHERE next_at <= $1 ORDER BY next_at, cell_no LIMIT $2 ${skip}`,
    [now, limit],
  )
  const model = due[0]?.model
  const jobs = due.filter((job) => job.model === model)
  const leased = jobs.map((job) => ({ ...job, next_at: until }))
  await rescheduleJobs(tx, leased)
  return leased
}

/** Moves the end of leases from `until` to `next` (ms); a job that was done or rescheduled meanwhile is left alone. */
export async function extendLeases(
  tx: Queryable,
  cellNos: readonly number[],
  until: number,
  next: number,
): Promise<void> {
  await tx.run(`UPDATE embed_job SET next_at = $3 WHERE cell_no IN ${inNumbers(tx, '$1')} AND next_at = $2`, [
    JSON.stringify(cellNos),
    until,
    next,
  ])
}

/** Gives each its attempts and its time. By the primary key. */
export async function rescheduleJobs(tx: Queryable, jobs: readonly EmbedJob[]): Promise<void> {
  for (const job of jobs) {
    await tx.run('UPDATE embed_job SET attempts = $2, next_at = $3 WHERE cell_no = $1', [
      job.cell_no,
      job.attempts,
      job.next_at,
    ])
  }
}

/** Time of the earliest job (ms), or undefined when none waits. */
export async function nextJobAt(db: Queryable): Promise<number | undefined> {
  return (await db.get<{ at: number | null }>('SELECT min(next_at) AS at FROM embed_job'))?.at ?? undefined
}

/** By the primary key. */
export async function deleteJobs(tx: Queryable, cellNos: readonly number[]): Promise<void> {
  await tx.run(`DELETE FROM embed_job WHERE cell_no IN ${inNumbers(tx, '$1')}`, [JSON.stringify(cellNos)])
}
