import { toTimestamp } from '../../base/clock.ts'
import { inList, inNumbers, type Queryable } from '../../database/database.ts'
import type { Cell } from '../model.ts'
import { fromJson, insertMany, optional } from './rows.ts'

export interface CellRow {
  cell_no: number
  cell_id: string
  workspace_id: string
  memory_id: string
  seq: number
  /** Null when it is in a content store alone, in the object of its Memory's head. Read it through `Bodies`. */
  text: string | null
  /** Length in UTF-8 of a text that was put into a content store; null for one that never was. */
  text_bytes: number | null
  text_md5: string
  agent_id: string
  metadata_json: string | null
  /** The model its vector is of; null while it waits for one. */
  embedding_model: string | null
  created_at: number
}

/** The Cell as shown. */
export const toCell = (row: CellRow & { text: string }): Cell => ({
  cell_id: row.cell_id,
  memory_id: row.memory_id,
  seq: row.seq,
  text: row.text,
  text_md5: row.text_md5,
  written_by_agent_id: row.agent_id,
  ...optional('embedding_model', row.embedding_model),
  ...optional('vector_key', row.embedding_model === null ? null : row.cell_id),
  ...optional('metadata_json', fromJson(row.metadata_json)),
  created_at: toTimestamp(row.created_at),
})

/** In `seq` order. */
export function findCells(db: Queryable, memoryId: string): Promise<CellRow[]> {
  return db.all<CellRow>('SELECT * FROM cell WHERE memory_id = $1 ORDER BY seq', [memoryId])
}

/** Of a Memory, in no promised order. Relies on cell_by_memory. */
export async function findCellNos(db: Queryable, memoryId: string): Promise<number[]> {
  const rows = await db.all<{ cell_no: number }>('SELECT cell_no FROM cell WHERE memory_id = $1', [memoryId])
  return rows.map((row) => row.cell_no)
}

/** Those of the Cells that are there. By the primary key. */
export async function findCellsByNo(db: Queryable, cellNos: readonly number[]): Promise<Map<number, CellRow>> {
  const rows = await db.all<CellRow>(`SELECT * FROM cell WHERE cell_no IN ${inNumbers(db, '$1')}`, [
    JSON.stringify(cellNos),
  ])
  return new Map(rows.map((row) => [row.cell_no, row]))
}

/** The first Cell of each of these Memories. */
export async function findFirstCells(db: Queryable, memoryIds: readonly string[]): Promise<CellRow[]> {
  return db.all<CellRow>(`SELECT * FROM cell WHERE memory_id IN ${inList(db, '$1')} AND seq = 0`, [
    JSON.stringify(memoryIds),
  ])
}

/** Those of the Cells that are still there. */
export async function findLivingCells(db: Queryable, cellNos: readonly number[]): Promise<Set<number>> {
  const rows = await db.all<{ cell_no: number }>(`SELECT cell_no FROM cell WHERE cell_no IN ${inNumbers(db, '$1')}`, [
    JSON.stringify(cellNos),
  ])
  return new Set(rows.map((row) => row.cell_no))
}

/** No text of the Memory's Cells is in a content store alone. */
export async function hasTexts(db: Queryable, memoryId: string): Promise<boolean> {
  return (await db.get('SELECT 1 FROM cell WHERE memory_id = $1 AND text IS NULL LIMIT 1', [memoryId])) === undefined
}

/** Cells of the Memory without a vector of the model. */
export async function countUnembedded(db: Queryable, memoryId: string, model: string): Promise<number> {
  const row = await db.get<{ n: number }>(
    'SELECT count(*) AS n FROM cell WHERE memory_id = $1 AND (embedding_model IS NULL OR embedding_model <> $2)',
    [memoryId, model],
  )
  return row?.n ?? 0
}

/** Inserts the Cells and tells the number each id got. */
export async function insertCells(
  tx: Queryable,
  cells: readonly Omit<CellRow, 'cell_no'>[],
): Promise<Map<string, number>> {
  const rows = await insertMany<{ cell_no: number; cell_id: string }>(
    tx,
    'cell',
    'cell_id, workspace_id, memory_id, seq, text, text_bytes, text_md5, agent_id, metadata_json, embedding_model, created_at',
    cells.map((cell) => [
      cell.cell_id,
      cell.workspace_id,
      cell.memory_id,
      cell.seq,
      cell.text,
      cell.text_bytes,
      cell.text_md5,
      cell.agent_id,
      cell.metadata_json,
      cell.embedding_model,
      cell.created_at,
    ]),
    'RETURNING cell_no, cell_id',
  )
  return new Map(rows.map((row) => [row.cell_id, row.cell_no]))
}

/** Gives Cells that an edit kept their new place. */
export async function moveCells(tx: Queryable, moves: readonly { cellNo: number; seq: number }[]): Promise<void> {
  for (const { cellNo, seq } of moves) await tx.run('UPDATE cell SET seq = $2 WHERE cell_no = $1', [cellNo, seq])
}

/** Says of which model the Cells' vectors are, with `onlyDue` of those alone that have a job of the model; gives them. */
export function markEmbedded(
  tx: Queryable,
  cellNos: readonly number[],
  model: string,
  onlyDue: boolean,
): Promise<Pick<CellRow, 'cell_no' | 'memory_id'>[]> {
  const due = 'AND EXISTS (SELECT 1 FROM embed_job AS job WHERE job.cell_no = cell.cell_no AND job.model = $2)'
  return tx.all(
    `UPDATE cell SET embedding_model = $2 WHERE cell_no IN ${inNumbers(tx, '$1')} ${onlyDue ? due : ''}
     RETURNING cell_no, memory_id`,
    [JSON.stringify(cellNos), model],
  )
}

/** Those of the Cells that are gone, or marked with another model. */
export async function findUnmarked(tx: Queryable, cellNos: readonly number[], model: string): Promise<number[]> {
  const rows = await tx.all<{ cell_no: number }>(
    `SELECT cell_no FROM cell WHERE cell_no IN ${inNumbers(tx, '$1')} AND embedding_model = $2`,
    [JSON.stringify(cellNos), model],
  )
  const marked = new Set(rows.map((row) => row.cell_no))
  return cellNos.filter((cellNo) => !marked.has(cellNo))
}

/** By the primary key. */
export async function deleteCells(tx: Queryable, cellNos: readonly number[]): Promise<void> {
  await tx.run(`DELETE FROM cell WHERE cell_no IN ${inNumbers(tx, '$1')}`, [JSON.stringify(cellNos)])
}
