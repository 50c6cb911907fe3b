import type { Queryable } from '../../database/database.ts'

/** What makes two requests the same one. */
export interface IdempotencyKey {
  /** The workspace, or empty for creating one. */
  scope: string
  route: string
  agentId: string
  key: string
}

export interface StoredAnswer {
  body_hash: string
  /** The answer's JSON. */
  answer: string
}

/** Given since a time (ms). By the primary key. */
export function findAnswer(db: Queryable, id: IdempotencyKey, since: number): Promise<StoredAnswer | undefined> {
  return db.get<StoredAnswer>(
    `SELECT body_hash, answer FROM idempotency
      WHERE scope = $1 AND route = $2 AND agent_id = $3 AND key = $4 AND created_at >= $5`,
    [id.scope, id.route, id.agentId, id.key, since],
  )
}

/** Replaces an answer that has expired. */
export async function saveAnswer(
  tx: Queryable,
  id: IdempotencyKey,
  bodyHash: string,
  answer: string,
  now: number,
): Promise<void> {
  await tx.run(
    `INSERT INTO idempotency (scope, route, agent_id, key, body_hash, answer, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (scope, route, agent_id, key)
     DO UPDATE SET body_hash = excluded.body_hash, answer = excluded.answer, created_at = excluded.created_at`,
    [id.scope, id.route, id.agentId, id.key, bodyHash, answer, now],
  )
}

/** Relies on idempotency_by_age. */
export function purgeAnswers(tx: Queryable, before: number): Promise<number> {
  return tx.run('DELETE FROM idempotency WHERE created_at < $1', [before])
}
