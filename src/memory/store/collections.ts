import { toTimestamp } from '../../base/clock.ts'
import type { Page } from '../../base/pages.ts'
import { toPage } from '../../base/pages.ts'
import type { Queryable } from '../../database/database.ts'
import type { Collection } from '../model.ts'

interface CollectionRow {
  collection_id: string
  workspace_id: string
  name: string
  created_at: number
}

const toCollection = (row: CollectionRow): Collection => ({
  id: row.collection_id,
  workspace_id: row.workspace_id,
  name: row.name,
  created_at: toTimestamp(row.created_at),
})

/** By the primary key. */
export async function findCollection(db: Queryable, workspaceId: string, id: string): Promise<Collection | undefined> {
  const row = await db.get<CollectionRow>('SELECT * FROM collection WHERE collection_id = $1 AND workspace_id = $2', [
    id,
    workspaceId,
  ])
  return row && toCollection(row)
}

/** The workspace that has the collection. */
export async function findCollectionOwner(db: Queryable, id: string): Promise<string | undefined> {
  const sql = 'SELECT workspace_id FROM collection WHERE collection_id = $1'
  return (await db.get<{ workspace_id: string }>(sql, [id]))?.workspace_id
}

/** By the unique key of workspace and name. */
export async function findCollectionByName(
  db: Queryable,
  workspaceId: string,
  name: string,
): Promise<Collection | undefined> {
  const row = await db.get<CollectionRow>('SELECT * FROM collection WHERE workspace_id = $1 AND name = $2', [
    workspaceId,
    name,
  ])
  return row && toCollection(row)
}

/** By name; `after` is the name of the last one shown. */
export async function listCollections(
  db: Queryable,
  workspaceId: string,
  limit: number,
  after: string | undefined,
): Promise<Page<Collection>> {
  const rows = await db.all<CollectionRow>(
    'SELECT * FROM collection WHERE workspace_id = $1 AND name > $2 ORDER BY name LIMIT $3',
    [workspaceId, after ?? '', limit + 1],
  )
  return toPage(rows, limit, (row) => [row.name], toCollection)
}

/** Fails where the workspace has the name already. */
export async function insertCollection(tx: Queryable, collection: Collection): Promise<void> {
  await tx.run('INSERT INTO collection (collection_id, workspace_id, name, created_at) VALUES ($1, $2, $3, $4)', [
    collection.id,
    collection.workspace_id,
    collection.name,
    Date.parse(collection.created_at),
  ])
}

/** By the primary key. */
export async function deleteCollection(tx: Queryable, id: string): Promise<void> {
  await tx.run('DELETE FROM collection WHERE collection_id = $1', [id])
}
