import { inList, type Param, type Queryable } from '../../database/database.ts'
import { GENESIS_HASH } from './chains.ts'
import { insertMany } from './rows.ts'

export type Table =
  | 'workspace'
  | 'chain'
  | 'collection'
  | 'agent'
  | 'pin'
  | 'memory'
  | 'memory_version'
  | 'memory_tag'
  | 'cell'
  | 'edge'
  | 'ledger'

/** Inserts rows that all have the same columns, in the same order; a `returning` clause gives columns of each. */
export async function insertRows<T = never>(
  tx: Queryable,
  table: Table,
  rows: readonly Record<string, Param>[],
  returning?: string,
): Promise<T[]> {
  const columns = Object.keys(rows[0] ?? {}).join(', ')
  return insertMany<T>(tx, table, columns, rows.map(Object.values<Param>), returning)
}

/** Whether an id or a name is there already. */
export const isDuplicate = (error: unknown): boolean =>
  error instanceof Error &&
  'code' in error &&
  ['23505', 'SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_CONSTRAINT_PRIMARYKEY'].includes(String(error.code))

/** Whether one of these tables has a row of the workspace. */
export async function hasRows(db: Queryable, tables: readonly Table[], workspaceId: string): Promise<boolean> {
  const some = tables.map((table) => `EXISTS (SELECT 1 FROM ${table} WHERE workspace_id = $1)`)
  return (await db.get(`SELECT 1 AS found WHERE ${some.join(' OR ')}`, [workspaceId])) !== undefined
}

/**
 * From here on the workspace is not there for anybody: what it consists of may be deleted piece by piece. Its chain, which
 * has no entries now, remembers the last change that a running server can have seen. Relies on memory_by_change.
 */
export async function hideWorkspace(tx: Queryable, workspaceId: string): Promise<void> {
  await tx.run(
    `UPDATE chain SET seq = 0, head_hash = $2,
        change_seq = (SELECT coalesce(max(change_seq), 0) FROM
          (SELECT change_seq FROM chain WHERE workspace_id = $1
           UNION ALL SELECT max(change_seq) FROM memory WHERE workspace_id = $1) AS seen)
      WHERE workspace_id = $1`,
    [workspaceId, GENESIS_HASH],
  )
  for (const table of ['workspace', 'collection', 'agent', 'pin']) {
    await tx.run(`DELETE FROM ${table} WHERE workspace_id = $1`, [workspaceId])
  }
  await tx.run('DELETE FROM idempotency WHERE scope = $1', [workspaceId])
}

/** It is there again, whole. A deleted one has its chain alone. */
export async function showWorkspace(
  tx: Queryable,
  workspace: Record<string, Param> | undefined,
  chain: Record<string, Param> & { workspace_id: string },
): Promise<void> {
  if (workspace) await insertRows(tx, 'workspace', [workspace])
  await tx.run('DELETE FROM chain WHERE workspace_id = $1', [chain.workspace_id])
  await insertRows(tx, 'chain', [chain])
}

/** Some Memories of the workspace, tombstones included. */
export async function findSomeMemories(db: Queryable, workspaceId: string, limit: number): Promise<string[]> {
  const rows = await db.all<{ memory_id: string }>('SELECT memory_id FROM memory WHERE workspace_id = $1 LIMIT $2', [
    workspaceId,
    limit,
  ])
  return rows.map((row) => row.memory_id)
}

/** Deletes these Memories with all they have in this database, but for vectors; gives the numbers of their Cells. */
export async function eraseMemories(tx: Queryable, memoryIds: readonly string[]): Promise<number[]> {
  const ids = [JSON.stringify(memoryIds)]
  const cells = await tx.all<{ cell_no: number }>(
    `DELETE FROM cell WHERE memory_id IN ${inList(tx, '$1')} RETURNING cell_no`,
    ids,
  )
  for (const table of ['embed_job', 'memory_tag', 'memory_version', 'memory']) {
    await tx.run(`DELETE FROM ${table} WHERE memory_id IN ${inList(tx, '$1')}`, ids)
  }
  return cells.map((row) => row.cell_no)
}

/** Deletes some rows of the workspace, and gives their number. */
export function eraseSome(
  tx: Queryable,
  table: 'edge' | 'ledger',
  workspaceId: string,
  limit: number,
): Promise<number> {
  const key = table === 'edge' ? 'edge_id' : 'ledger_id'
  return tx.run(`DELETE FROM ${table} WHERE ${key} IN (SELECT ${key} FROM ${table} WHERE workspace_id = $1 LIMIT $2)`, [
    workspaceId,
    limit,
  ])
}

/** A queue row for each Cell of the workspace that has no vector; gives their number. */
export const queueCells = (tx: Queryable, workspaceId: string, model: string, now: number): Promise<number> =>
  tx.run(
    `INSERT INTO embed_job (cell_no, workspace_id, memory_id, model, attempts, next_at)
     SELECT cell_no, m.workspace_id, m.memory_id, CAST($2 AS TEXT), 0, CAST($3 AS BIGINT)
       FROM memory m JOIN cell c ON c.memory_id = m.memory_id
      WHERE m.workspace_id = $1 AND c.embedding_model IS NULL`,
    [workspaceId, model, now],
  )
