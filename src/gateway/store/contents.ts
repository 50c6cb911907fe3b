import type { Queryable } from '../../database/database.ts'

export const CONTENTS = 'gateway_contents'

/** Prompt and answer of a request, sealed. */
export interface ContentRow {
  /** Of the usage record. */
  id: string
  organization_id: number
  created_at: number
  request: string
  response: string
  truncated: number
}

/** One that is there already is left alone. */
export async function insertContent(tx: Queryable, row: ContentRow): Promise<void> {
  await tx.run(
    `INSERT INTO gateway_contents (id, organization_id, created_at, request, response, truncated)
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING`,
    [row.id, row.organization_id, row.created_at, row.request, row.response, row.truncated],
  )
}

/** By the primary key. */
export const findContent = (db: Queryable, organizationId: number, id: string): Promise<ContentRow | undefined> =>
  db.get<ContentRow>('SELECT * FROM gateway_contents WHERE id = $1 AND organization_id = $2', [id, organizationId])

/** Deletes the oldest that came before a time, so many at most; how many that were. By gateway_contents_by_age. */
export const deleteContentsBefore = (
  db: Queryable,
  organizationId: number,
  before: number,
  limit: number,
): Promise<number> =>
  db.run(
    `DELETE FROM gateway_contents WHERE id IN
      (SELECT id FROM gateway_contents WHERE organization_id = $1 AND created_at < $2 ORDER BY created_at LIMIT $3)`,
    [organizationId, before, limit],
  )
