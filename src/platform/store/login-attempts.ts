import type { Queryable } from '../../database/database.ts'
import { returned } from '../../database/rows.ts'

/** When the last attempts of a subject in a span of time began, the latest first; `limit` at most. */
export async function readAttempts(
  db: Queryable,
  subject: string,
  { after, before }: { after: number; before: number },
  limit: number,
): Promise<number[]> {
  const rows = await db.all<{ attempted_at: number }>(
    `SELECT attempted_at FROM platform_login_attempts WHERE subject = $1 AND attempted_at > $2 AND attempted_at < $3
      ORDER BY attempted_at DESC LIMIT $4`,
    [subject, after, before, limit],
  )
  return rows.map((row) => row.attempted_at)
}

/** Gives its id, by which it can be taken back. */
export async function insertAttempt(tx: Queryable, subject: string, now: number): Promise<number> {
  const row = await tx.get<{ id: number }>(
    'INSERT INTO platform_login_attempts (subject, attempted_at) VALUES ($1, $2) RETURNING id',
    [subject, now],
  )
  return returned(row).id
}

export async function deleteAttempts(tx: Queryable, ids: readonly number[]): Promise<void> {
  for (const id of ids) await tx.run('DELETE FROM platform_login_attempts WHERE id = $1', [id])
}

export const purgeAttempts = (tx: Queryable, before: number): Promise<number> =>
  tx.run('DELETE FROM platform_login_attempts WHERE attempted_at <= $1', [before])
