import { inList, type Param, type Queryable } from '../../database/database.ts'
import type { MemoryRow } from './memories.ts'
import type { VersionRow } from './versions.ts'

/** Rows of a workspace in an order that every store gives them the same, and that an index has. */
const ORDERS = {
  workspace: ['workspace_id'],
  collection: ['name'],
  agent: ['agent_id'],
  pin: ['pin_id'],
  edge: ['source_memory_id', 'target_memory_id', 'edge_type'],
} as const

/** All of them, page by page. */
export async function* readRows(
  view: Queryable,
  table: keyof typeof ORDERS,
  workspaceId: string,
  limit: number,
): AsyncGenerator<object[]> {
  const order = ORDERS[table]
  const keys = order.join(', ')
  const behind = `AND (${keys}) > (${order.map((_, i) => `$${i + 3}`).join(', ')})`
  let after: unknown[] = []
  for (;;) {
    const rows = await view.all(
      `SELECT * FROM ${table} WHERE workspace_id = $1 ${after.length > 0 ? behind : ''} ORDER BY ${keys} LIMIT $2`,
      [workspaceId, limit, ...after.map(String)],
    )
    const last = rows.at(-1)
    if (last) yield rows
    if (rows.length < limit) return
    after = order.map((key) => last?.[key])
  }
}

/** Tombstones by id, from behind one. Relies on memory_forgotten. */
export const findTombstonesAfter = (
  view: Queryable,
  workspaceId: string,
  after: string,
  limit: number,
): Promise<MemoryRow[]> =>
  view.all<MemoryRow>(
    `SELECT * FROM memory
      WHERE workspace_id = $1 AND forgotten_at IS NOT NULL AND memory_id > $2 ORDER BY memory_id LIMIT $3`,
    [workspaceId, after, limit],
  )

/** What a Memory's history takes: versions, the bytes of all bodies and Cells, and those of the largest body. */
export interface HistorySize {
  memory_id: string
  versions: number
  bytes: number
  largest: number
}

/** Of each of these Memories. Relies on memory_version_by_memory, cell_by_memory. */
export function measureHistories(view: Queryable, memoryIds: readonly string[]): Promise<HistorySize[]> {
  return view.all<HistorySize>(
    `SELECT v.memory_id, versions, CAST(v.bytes + coalesce(c.bytes, 0) AS BIGINT) AS bytes, largest
      FROM (SELECT memory_id, count(*) AS versions, sum(coalesce(content_bytes, octet_length(content))) AS bytes,
              CAST(max(coalesce(content_bytes, octet_length(content))) AS BIGINT) AS largest
            FROM memory_version WHERE memory_id IN ${inList(view, '$1')} GROUP BY memory_id) AS v
      LEFT JOIN (SELECT memory_id, sum(coalesce(text_bytes, octet_length(text))) AS bytes
            FROM cell WHERE memory_id IN ${inList(view, '$1')} GROUP BY memory_id) AS c ON c.memory_id = v.memory_id`,
    [JSON.stringify(memoryIds)],
  )
}

/** Versions of these Memories, each from behind a number; by Memory and number. */
export function findVersionsAfter(
  view: Queryable,
  memoryIds: readonly string[],
  afterNo: number,
  limit: number,
): Promise<VersionRow[]> {
  return view.all<VersionRow>(
    `SELECT * FROM memory_version
      WHERE memory_id IN ${inList(view, '$1')} AND version_no > $2 ORDER BY memory_id, version_no LIMIT $3`,
    [JSON.stringify(memoryIds), afterNo, limit],
  )
}

/** Chains behind a workspace's, by workspace, without those that an import hides; of `only` those, when given. */
export function findChainsAfter(
  view: Queryable,
  after: string,
  only: readonly string[] | undefined,
  limit: number,
): Promise<{ workspace_id: string; seq: number; head_hash: string }[]> {
  const params: Param[] = [after, limit, ...(only ? [JSON.stringify(only)] : [])]
  return view.all(
    `SELECT workspace_id, seq, head_hash FROM chain
      WHERE workspace_id > $1 AND seq > 0 ${only ? `AND workspace_id IN ${inList(view, '$3')}` : ''} ORDER BY workspace_id LIMIT $2`,
    params,
  )
}

/** Changes with every mutation of every workspace. */
export async function totalSeq(view: Queryable): Promise<number> {
  return (await view.get<{ n: number | null }>('SELECT CAST(sum(seq + 1) AS BIGINT) AS n FROM chain'))?.n ?? 0
}

/** A reader may be slow: PostgreSQL ends transactions that pause for a minute unless told otherwise. */
export async function allowPauses(view: Queryable): Promise<void> {
  if (view.dialect === 'postgres') await view.run('SET LOCAL idle_in_transaction_session_timeout = 0')
}
