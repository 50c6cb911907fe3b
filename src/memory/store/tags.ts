import { inList, type Queryable } from '../../database/database.ts'
import { insertMany } from './rows.ts'
import type { Tags } from './memories.ts'

interface TagRow {
  memory_id: string
  key: string
  value: string
}

/** Tags of each of these Memories; one without tags has no entry. */
export async function findTags(db: Queryable, memoryIds: readonly string[]): Promise<Map<string, Tags>> {
  const rows = await db.all<TagRow>(
    `SELECT memory_id, key, value FROM memory_tag WHERE memory_id IN ${inList(db, '$1')} ORDER BY memory_id, key`,
    [JSON.stringify(memoryIds)],
  )
  const byMemory = new Map<string, Tags>()
  for (const { memory_id, key, value } of rows) {
    const tags = byMemory.get(memory_id) ?? {}
    // A tag may be called __proto__: assignment would lose it.
    Object.defineProperty(tags, key, { value, enumerable: true, configurable: true, writable: true })
    byMemory.set(memory_id, tags)
  }
  return byMemory
}

/** What of a value is in memory_tag_by_value: its first 100 characters. */
const indexed = (value: string): string => Array.from(value.slice(0, 200)).slice(0, 100).join('')

/** Memories whose tag `key` is one of `values`. Relies on memory_tag_by_value. */
export async function findTagged(
  db: Queryable,
  workspaceId: string,
  key: string,
  values: readonly string[],
): Promise<Set<string>> {
  const rows = await db.all<{ memory_id: string }>(
    `SELECT memory_id FROM memory_tag
      WHERE workspace_id = $1 AND key = $2 AND substr(value, 1, 100) IN ${inList(db, '$4')} AND value IN ${inList(db, '$3')}`,
    [workspaceId, key, JSON.stringify(values), JSON.stringify(values.map(indexed))],
  )
  return new Set(rows.map((row) => row.memory_id))
}

/** By the primary key. */
export async function hasTag(db: Queryable, memoryId: string, key: string): Promise<boolean> {
  return (await db.get('SELECT 1 FROM memory_tag WHERE memory_id = $1 AND key = $2', [memoryId, key])) !== undefined
}

/** Replaces the value of a tag that is there. By the primary key. */
export async function setTag(
  tx: Queryable,
  workspaceId: string,
  memoryId: string,
  key: string,
  value: string,
): Promise<void> {
  await tx.run(
    `INSERT INTO memory_tag (workspace_id, memory_id, key, value) VALUES ($1, $2, $3, $4)
     ON CONFLICT (memory_id, key) DO UPDATE SET value = excluded.value`,
    [workspaceId, memoryId, key, value],
  )
}

/** False when there was no such tag. */
export async function deleteTag(tx: Queryable, memoryId: string, key: string): Promise<boolean> {
  return (await tx.run('DELETE FROM memory_tag WHERE memory_id = $1 AND key = $2', [memoryId, key])) > 0
}

/** Tags of a new Memory, or one without any. */
export async function insertTags(tx: Queryable, workspaceId: string, memoryId: string, tags: Tags): Promise<void> {
  const rows = Object.entries(tags).map(([key, value]) => [workspaceId, memoryId, key, value])
  await insertMany(tx, 'memory_tag', 'workspace_id, memory_id, key, value', rows)
}

/** All of a Memory. Along the primary key. */
export async function deleteTags(tx: Queryable, memoryId: string): Promise<void> {
  await tx.run('DELETE FROM memory_tag WHERE memory_id = $1', [memoryId])
}

/** Of a Memory. Along the primary key. */
export async function countTags(tx: Queryable, memoryId: string): Promise<number> {
  return (await tx.get<{ n: number }>('SELECT count(*) AS n FROM memory_tag WHERE memory_id = $1', [memoryId]))?.n ?? 0
}
