import { inList, type Queryable } from '../../database/database.ts'
import type { CellRow } from './cells.ts'
import type { MemoryRow } from './memories.ts'

/** Creation time and id of a Memory: where a walk through a workspace stands. */
export type Position = readonly [createdAt: number, memoryId: string]

/** Live Memories behind a position, the oldest first. Relies on memory_by_age. */
export function findMemoriesAfter(
  db: Queryable,
  workspaceId: string,
  after: Position,
  limit: number,
): Promise<MemoryRow[]> {
  return db.all<MemoryRow>(
    `SELECT * FROM memory
      WHERE workspace_id = $1 AND forgotten_at IS NULL AND (created_at, memory_id) > ($2, $3)
      ORDER BY created_at, memory_id LIMIT $4`,
    [workspaceId, ...after, limit],
  )
}

/** By Memory, in `seq` order. Relies on cell_by_memory. */
export function findCellsOf(db: Queryable, memoryIds: readonly string[]): Promise<CellRow[]> {
  return db.all<CellRow>(`SELECT * FROM cell WHERE memory_id IN ${inList(db, '$1')} ORDER BY memory_id, seq`, [
    JSON.stringify(memoryIds),
  ])
}
