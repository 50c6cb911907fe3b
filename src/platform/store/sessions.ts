import type { Queryable } from '../../database/database.ts'
import type { UserRow } from './users.ts'

/** The active user of a session that lasts beyond `now`. */
export const findSessionUser = (db: Queryable, tokenHash: string, now: number): Promise<UserRow | undefined> =>
  db.get<UserRow>(
    `SELECT u.* FROM platform_sessions s JOIN platform_users u ON u.id = s.user_id
      WHERE s.token_hash = $1 AND s.expires_at > $2 AND u.active = 1`,
    [tokenHash, now],
  )

/** Keeps a session, and lets go those that have ended. */
export async function insertSession(
  tx: Queryable,
  session: { tokenHash: string; userId: number; now: number; expiresAt: number },
): Promise<void> {
  const { tokenHash, userId, now, expiresAt } = session
  await tx.run('DELETE FROM platform_sessions WHERE expires_at <= $1', [now])
  await tx.run('INSERT INTO platform_sessions (token_hash, user_id, created_at, expires_at) VALUES ($1, $2, $3, $4)', [
    tokenHash,
    userId,
    now,
    expiresAt,
  ])
}

export const deleteSession = (tx: Queryable, tokenHash: string): Promise<number> =>
  tx.run('DELETE FROM platform_sessions WHERE token_hash = $1', [tokenHash])

/** Ends every session of a user but the one with this hash, if any. */
export const deleteSessionsOf = (tx: Queryable, userId: number, except = ''): Promise<number> =>
  tx.run('DELETE FROM platform_sessions WHERE user_id = $1 AND token_hash <> $2', [userId, except])
