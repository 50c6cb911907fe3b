import { toTimestamp } from '../../base/clock.ts'
import type { Page } from '../../base/pages.ts'
import { toPage } from '../../base/pages.ts'
import type { Queryable } from '../../database/database.ts'
import type { Workspace } from '../model.ts'
import { fromJson, optional, toJson } from './rows.ts'

interface WorkspaceRow {
  workspace_id: string
  name: string
  region: string | null
  chunker_id: string | null
  embedding_model: string | null
  meta: string | null
  auto_link_enabled: number
  auto_link_threshold: number
  auto_link_max_edges: number
  auto_link_max_incoming_per_day: number
  created_at: number
  updated_at: number
}

const toWorkspace = (row: WorkspaceRow): Workspace => ({
  id: row.workspace_id,
  name: row.name,
  ...optional('region', row.region),
  ...optional('chunker_id', row.chunker_id),
  ...optional('embedding_model', row.embedding_model),
  ...optional('meta', fromJson(row.meta)),
  auto_link_enabled: row.auto_link_enabled === 1,
  auto_link_threshold: row.auto_link_threshold,
  auto_link_max_edges: row.auto_link_max_edges,
  auto_link_max_incoming_per_day: row.auto_link_max_incoming_per_day,
  created_at: toTimestamp(row.created_at),
  updated_at: toTimestamp(row.updated_at),
})

/** By the primary key. */
export async function findWorkspace(db: Queryable, id: string): Promise<Workspace | undefined> {
  const row = await db.get<WorkspaceRow>('SELECT * FROM workspace WHERE workspace_id = $1', [id])
  return row && toWorkspace(row)
}

/** By the primary key. */
export async function workspaceExists(db: Queryable, id: string): Promise<boolean> {
  return (await db.get('SELECT 1 FROM workspace WHERE workspace_id = $1', [id])) !== undefined
}

/** Newest first; `before` is the id of the last one shown, `only` restricts to one workspace. */
export async function listWorkspaces(
  db: Queryable,
  limit: number,
  before: string | undefined,
  only: string | undefined,
): Promise<Page<Workspace>> {
  const rows = await db.all<WorkspaceRow>(
    `SELECT * FROM workspace
      WHERE (CAST($1 AS TEXT) IS NULL OR workspace_id < $1) AND (CAST($2 AS TEXT) IS NULL OR workspace_id = $2)
      ORDER BY workspace_id DESC LIMIT $3`,
    [before ?? null, only ?? null, limit + 1],
  )
  return toPage(rows, limit, (row) => [row.workspace_id], toWorkspace)
}

/** Walks the primary key. */
export async function countWorkspaces(db: Queryable): Promise<number> {
  return (await db.get<{ n: number }>('SELECT count(*) AS n FROM workspace'))?.n ?? 0
}

/** Inserts the record, or replaces the one with its id. */
export async function saveWorkspace(tx: Queryable, workspace: Workspace): Promise<void> {
  await tx.run(
    `INSERT INTO workspace (workspace_id, name, region, chunker_id, embedding_model, meta, auto_link_enabled,
       auto_link_threshold, auto_link_max_edges, auto_link_max_incoming_per_day, created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
     ON CONFLICT (workspace_id) DO UPDATE SET name = excluded.name, region = excluded.region,
       chunker_id = excluded.chunker_id, embedding_model = excluded.embedding_model, meta = excluded.meta,
       auto_link_enabled = excluded.auto_link_enabled, auto_link_threshold = excluded.auto_link_threshold,
       auto_link_max_edges = excluded.auto_link_max_edges,
       auto_link_max_incoming_per_day = excluded.auto_link_max_incoming_per_day, updated_at = excluded.updated_at`,
    [
      workspace.id,
      workspace.name,
      workspace.region ?? null,
      workspace.chunker_id ?? null,
      workspace.embedding_model ?? null,
      toJson(workspace.meta),
      Number(workspace.auto_link_enabled),
      workspace.auto_link_threshold,
      workspace.auto_link_max_edges,
      workspace.auto_link_max_incoming_per_day,
      Date.parse(workspace.created_at),
      Date.parse(workspace.updated_at),
    ],
  )
}

/** Removes the workspace with its collections, pins, agents and tombstones; its chain and ledger stay. */
export async function deleteWorkspace(tx: Queryable, id: string): Promise<void> {
  await tx.run('DELETE FROM collection WHERE workspace_id = $1', [id])
  await tx.run('DELETE FROM pin WHERE workspace_id = $1', [id])
  await tx.run('DELETE FROM agent WHERE workspace_id = $1', [id])
  await tx.run('DELETE FROM memory WHERE workspace_id = $1', [id])
  await tx.run('DELETE FROM workspace WHERE workspace_id = $1', [id])
}
