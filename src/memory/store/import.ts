import type { Queryable } from '../../database/database.ts'

/** Where an id is in use: its workspace, and whether a live Memory has it; undefined while it is free. */
export async function findIdUse(
  db: Queryable,
  memoryId: string,
): Promise<{ workspaceId: string; isLive: boolean } | undefined> {
  const row = await db.get<{ workspace_id: string; forgotten_at: number | null }>(
    'SELECT workspace_id, forgotten_at FROM memory WHERE memory_id = $1',
    [memoryId],
  )
  return row && { workspaceId: row.workspace_id, isLive: row.forgotten_at === null }
}

/** A live Memory of the collection (or of none) with this content. Relies on memory_by_content. */
export async function findByContent(
  db: Queryable,
  workspaceId: string,
  collectionId: string | undefined,
  contentMd5: string,
): Promise<string | undefined> {
  const row = await db.get<{ memory_id: string }>(
    `SELECT memory_id FROM memory
      WHERE workspace_id = $1 AND content_md5 = $2 AND forgotten_at IS NULL
        AND ${collectionId === undefined ? 'collection_id IS NULL' : 'collection_id = $3'} LIMIT 1`,
    collectionId === undefined ? [workspaceId, contentMd5] : [workspaceId, contentMd5, collectionId],
  )
  return row?.memory_id
}
