import type { Queryable } from '../../database/database.ts'

export interface Backlog {
  /** Cells that wait for a vector. */
  jobs: number
  /** How long the oldest of the jobs that are due has been so (ms); 0 when none is. */
  jobsLateMs: number
}

/** What waits for vectors in all workspaces. Counts along embed_job_due. */
export async function findBacklog(db: Queryable, now: number): Promise<Backlog> {
  const row = await db.get<{ jobs: number; next_at: number | null }>(
    'SELECT count(*) AS jobs, min(next_at) AS next_at FROM embed_job',
  )
  return { jobs: row?.jobs ?? 0, jobsLateMs: Math.max(0, now - (row?.next_at ?? now)) }
}

/** Rows that have not reached their seam yet; a seam without any is left out. */
export function countOutbox(db: Queryable): Promise<{ seam: string; n: number }[]> {
  return db.all<{ seam: string; n: number }>('SELECT seam, count(*) AS n FROM outbox GROUP BY seam ORDER BY seam')
}
