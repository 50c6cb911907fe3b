import type { Queryable } from '../../database/database.ts'

/** Tells that a process lives; false when it was not known, or no more. By the primary key. */
export async function touchProcess(tx: Queryable, id: string, now: number): Promise<boolean> {
  const known = await tx.run('UPDATE gateway_processes SET seen_at = $2 WHERE id = $1', [id, now])
  if (known === 0) await tx.run('INSERT INTO gateway_processes (id, seen_at) VALUES ($1, $2)', [id, now])
  return known > 0
}

/** By the primary key. */
export const hasProcess = async (tx: Queryable, id: string): Promise<boolean> =>
  (await tx.get('SELECT 1 FROM gateway_processes WHERE id = $1', [id])) !== undefined

/** By gateway_processes_by_age. */
export const listProcessesBefore = async (db: Queryable, before: number): Promise<string[]> => {
  const rows = await db.all<{ id: string }>('SELECT id FROM gateway_processes WHERE seen_at < $1', [before])
  return rows.map(({ id }) => id)
}

/** Whether one was not seen since a time; it cannot tell that it lives before the transaction ends. By the primary key. */
export const holdUnseen = async (tx: Queryable, id: string, since: number): Promise<boolean> =>
  (await tx.run('UPDATE gateway_processes SET seen_at = seen_at WHERE id = $1 AND seen_at < $2', [id, since])) > 0

/** How many were seen since a time. By gateway_processes_by_age. */
export async function countProcesses(db: Queryable, since: number): Promise<number> {
  const row = await db.get<{ live: number }>('SELECT count(*) AS live FROM gateway_processes WHERE seen_at >= $1', [
    since,
  ])
  return row?.live ?? 0
}

/** By the primary key. */
export async function deleteProcess(tx: Queryable, id: string): Promise<void> {
  await tx.run('DELETE FROM gateway_processes WHERE id = $1', [id])
}
