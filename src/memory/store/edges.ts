import { toTimestamp } from '../../base/clock.ts'
import type { Page } from '../../base/pages.ts'
import { toPage } from '../../base/pages.ts'
import { inList, type Param, type Queryable } from '../../database/database.ts'
import { SYNTHETIC_EDGE_TYPE, type Edge, type EdgeType } from '../model.ts'
import type { Direction } from '../requests.ts'
import { fromJson, optional, toJson } from './rows.ts'

interface EdgeRow {
  edge_id: string
  workspace_id: string
  source_memory_id: string
  target_memory_id: string
  edge_type: EdgeType
  properties_json: string | null
  created_by_agent_id: string
  created_at: number
  watermark: string
}

const toEdge = (row: EdgeRow): Edge => ({
  edge_id: row.edge_id,
  workspace_id: row.workspace_id,
  source_memory_id: row.source_memory_id,
  target_memory_id: row.target_memory_id,
  edge_type: row.edge_type,
  ...optional('properties_json', fromJson(row.properties_json)),
  created_by_agent_id: row.created_by_agent_id,
  created_at: toTimestamp(row.created_at),
  watermark: row.watermark,
})

/** By the primary key. */
export async function findEdge(db: Queryable, workspaceId: string, edgeId: string): Promise<Edge | undefined> {
  const row = await db.get<EdgeRow>('SELECT * FROM edge WHERE edge_id = $1 AND workspace_id = $2', [
    edgeId,
    workspaceId,
  ])
  return row && toEdge(row)
}

/** The workspace that has the Edge. */
export async function findEdgeOwner(db: Queryable, id: string): Promise<string | undefined> {
  const sql = 'SELECT workspace_id FROM edge WHERE edge_id = $1'
  return (await db.get<{ workspace_id: string }>(sql, [id]))?.workspace_id
}

/** By the unique key of workspace, ends and type. */
export async function findEdgeByTriple(
  db: Queryable,
  workspaceId: string,
  source: string,
  target: string,
  type: string,
): Promise<Edge | undefined> {
  const row = await db.get<EdgeRow>(
    `SELECT * FROM edge
      WHERE workspace_id = $1 AND source_memory_id = $2 AND target_memory_id = $3 AND edge_type = $4`,
    [workspaceId, source, target, type],
  )
  return row && toEdge(row)
}

/** The synthetic Edge that joins two Memories in either direction. */
export async function findSynthetic(
  db: Queryable,
  workspaceId: string,
  a: string,
  b: string,
): Promise<Edge | undefined> {
  return (
    (await findEdgeByTriple(db, workspaceId, a, b, SYNTHETIC_EDGE_TYPE)) ??
    (await findEdgeByTriple(db, workspaceId, b, a, SYNTHETIC_EDGE_TYPE))
  )
}

/** Edges that start at the Memory. Relies on edge_by_source. */
export async function countOutEdges(db: Queryable, memoryId: string): Promise<number> {
  const row = await db.get<{ n: number }>('SELECT count(*) AS n FROM edge WHERE source_memory_id = $1', [memoryId])
  return row?.n ?? 0
}

/** Synthetic Edges into a Memory made since a time (ms). */
export async function countIncomingSynthetic(db: Queryable, memoryId: string, since: number): Promise<number> {
  const row = await db.get<{ n: number }>(
    'SELECT count(*) AS n FROM edge WHERE target_memory_id = $1 AND edge_type = $2 AND created_at >= $3',
    [memoryId, SYNTHETIC_EDGE_TYPE, since],
  )
  return row?.n ?? 0
}

/** One side of the Edges of a Memory, newest first. Relies on edge_by_source, edge_by_target. */
const sideOf = (column: string, db: Queryable): string =>
  `SELECT * FROM edge
    WHERE ${column} = $1 AND (CAST($2 AS TEXT) IS NULL OR edge_id < $2) AND (CAST($3 AS TEXT) IS NULL OR edge_type IN ${inList(db, '$3')})
    ORDER BY edge_id DESC LIMIT $4`

/** Newest first; `before` is the id of the last one shown. */
export async function listEdges(
  db: Queryable,
  memoryId: string,
  direction: Direction,
  types: readonly string[] | undefined,
  limit: number,
  before: string | undefined,
): Promise<Page<Edge>> {
  const params: Param[] = [memoryId, before ?? null, types ? JSON.stringify(types) : null, limit + 1]
  const out = sideOf('source_memory_id', db)
  const into = sideOf('target_memory_id', db)
  const sql =
    direction === 'out'
      ? out
      : direction === 'in'
        ? into
        : `SELECT * FROM (SELECT * FROM (${out}) AS o UNION SELECT * FROM (${into}) AS i) AS e ORDER BY edge_id DESC LIMIT $4`
  return toPage(await db.all<EdgeRow>(sql, params), limit, (row) => [row.edge_id], toEdge)
}

/**
 * Edges of many Memories: in the order of the Memories, newest first, at most `most` a Memory and direction.
 * `cut` tells that some Memory has more.
 */
export async function listEdgesOfMany(
  db: Queryable,
  memoryIds: readonly string[],
  direction: Direction,
  types: readonly string[] | undefined,
  most: number,
): Promise<{ edges: { from: string; edge: Edge }[]; cut: boolean }> {
  const side = (column: string): string =>
    `SELECT edge.*, ${column} AS origin,
       row_number() OVER (PARTITION BY ${column} ORDER BY edge_id DESC) AS place
     FROM edge WHERE ${column} IN ${inList(db, '$1')} AND (CAST($2 AS TEXT) IS NULL OR edge_type IN ${inList(db, '$2')})`
  const sides = { out: ['source_memory_id'], in: ['target_memory_id'], both: ['source_memory_id', 'target_memory_id'] }
  const rows = await db.all<EdgeRow & { origin: string; place: number }>(
    `SELECT * FROM (${sides[direction].map(side).join(' UNION ALL ')}) AS ranked
      WHERE place <= $3 ORDER BY edge_id DESC`,
    [JSON.stringify(memoryIds), types ? JSON.stringify(types) : null, most + 1],
  )
  const order = new Map(memoryIds.map((id, i) => [id, i]))
  const shown = rows.filter((row) => row.place <= most)
  shown.sort((a, b) => (order.get(a.origin) ?? 0) - (order.get(b.origin) ?? 0))
  return { edges: shown.map((row) => ({ from: row.origin, edge: toEdge(row) })), cut: shown.length < rows.length }
}

/** One that is there already, by its id or its ends and type, is left alone. */
export async function insertEdge(tx: Queryable, edge: Edge): Promise<void> {
  await tx.run(
    `INSERT INTO edge (edge_id, workspace_id, source_memory_id, target_memory_id, edge_type, properties_json,
       created_by_agent_id, created_at, watermark)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     ON CONFLICT DO NOTHING`,
    [
      edge.edge_id,
      edge.workspace_id,
      edge.source_memory_id,
      edge.target_memory_id,
      edge.edge_type,
      toJson(edge.properties_json),
      edge.created_by_agent_id,
      Date.parse(edge.created_at),
      edge.watermark,
    ],
  )
}

/** By the primary key. */
export async function deleteEdge(tx: Queryable, edgeId: string): Promise<void> {
  await tx.run('DELETE FROM edge WHERE edge_id = $1', [edgeId])
}

/** Every Edge that starts or ends at the Memory. */
export async function findEdgesOf(db: Queryable, memoryId: string): Promise<Edge[]> {
  const rows = await db.all<EdgeRow>(
    `SELECT * FROM edge WHERE source_memory_id = $1
     UNION SELECT * FROM edge WHERE target_memory_id = $1 ORDER BY edge_id`,
    [memoryId],
  )
  return rows.map(toEdge)
}

/** Those that start or end at the Memory. Relies on edge_by_source, edge_by_target. */
export async function deleteEdgesOf(tx: Queryable, memoryId: string): Promise<void> {
  await tx.run('DELETE FROM edge WHERE source_memory_id = $1 OR target_memory_id = $1', [memoryId])
}

/** Live Edges per type with at least one. Relies on edge_by_type. */
export async function countEdgesByType(db: Queryable, workspaceId: string): Promise<Record<string, number>> {
  const rows = await db.all<{ edge_type: string; n: number }>(
    'SELECT edge_type, count(*) AS n FROM edge WHERE workspace_id = $1 GROUP BY edge_type ORDER BY edge_type',
    [workspaceId],
  )
  return Object.fromEntries(rows.map((row) => [row.edge_type, row.n]))
}
