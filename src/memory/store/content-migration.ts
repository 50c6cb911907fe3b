import { inList, type Queryable } from '../../database/database.ts'
import type { MemoryRow } from './memories.ts'
import type { Position } from './migration.ts'
import type { VersionRow } from './versions.ts'

export interface ContentScope {
  workspaceId: string
  collectionId: string | undefined
  /** Inclusive. */
  from: Position
}

const scopeOf = ({ workspaceId, collectionId, from }: ContentScope) => ({
  where: `workspace_id = $1 AND forgotten_at IS NULL AND (created_at, memory_id) >= ($2, $3)
    ${collectionId === undefined ? '' : 'AND collection_id = $4'}`,
  params: [workspaceId, ...from, ...(collectionId === undefined ? [] : [collectionId])],
})

/** Live Memories of a scope. Relies on memory_by_age, memory_by_collection. */
export async function countInScope(db: Queryable, scope: ContentScope): Promise<number> {
  const { where, params } = scopeOf(scope)
  return (await db.get<{ n: number }>(`SELECT count(*) AS n FROM memory WHERE ${where}`, params))?.n ?? 0
}

/** The first live Memories of a scope, the oldest first. Relies on memory_by_age, memory_by_collection. */
export function findInScope(db: Queryable, scope: ContentScope, limit: number): Promise<MemoryRow[]> {
  const { where, params } = scopeOf(scope)
  return db.all<MemoryRow>(
    `SELECT * FROM memory WHERE ${where} ORDER BY created_at, memory_id LIMIT $${params.length + 1}`,
    [...params, limit],
  )
}

/** Where a Memory of the workspace, forgotten or not, stands among the others. */
export async function findPosition(
  db: Queryable,
  workspaceId: string,
  memoryId: string,
): Promise<Position | undefined> {
  const row = await db.get<{ created_at: number }>(
    'SELECT created_at FROM memory WHERE memory_id = $1 AND workspace_id = $2',
    [memoryId, workspaceId],
  )
  return row && [row.created_at, memoryId]
}

/** All versions of a Memory, bodies included. */
export function findVersionsOf(db: Queryable, memoryId: string): Promise<VersionRow[]> {
  return db.all<VersionRow>('SELECT * FROM memory_version WHERE memory_id = $1 ORDER BY version_no', [memoryId])
}

/** The watermarks of versions whose bodies, and those of the Cells of `head`, are in a content store; the rows keep them too. */
export async function markStored(tx: Queryable, memoryId: string, head: string, watermarks: readonly string[]) {
  await tx.run(
    `UPDATE memory_version SET content_bytes = octet_length(content)
      WHERE watermark IN ${inList(tx, '$1')} AND content IS NOT NULL AND content_bytes IS NULL`,
    [JSON.stringify(watermarks)],
  )
  await tx.run(
    `UPDATE cell SET text_bytes = octet_length(text)
      WHERE memory_id = $1 AND text IS NOT NULL AND text_bytes IS NULL AND ${IS_HEAD}`,
    [memoryId, head],
  )
}

/** Clears these bodies in the rows, and gives how many there were. */
export async function clearBodies(
  tx: Queryable,
  memoryId: string,
  head: string,
  watermarks: readonly string[],
): Promise<number> {
  const versions = await tx.run(
    `UPDATE memory_version SET content_bytes = octet_length(content), content = NULL
      WHERE watermark IN ${inList(tx, '$1')} AND content IS NOT NULL`,
    [JSON.stringify(watermarks)],
  )
  const cells = await tx.run(
    `UPDATE cell SET text_bytes = octet_length(text), text = NULL
      WHERE memory_id = $1 AND text IS NOT NULL AND ${IS_HEAD}`,
    [memoryId, head],
  )
  return versions + cells
}

/** The Cells are those of the head that was read. */
const IS_HEAD = '(SELECT head_watermark FROM memory WHERE memory.memory_id = $1) = $2'
