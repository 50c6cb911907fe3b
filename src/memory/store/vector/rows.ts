import { inNumbers, type Queryable } from '../../../database/database.ts'
import { fromBytes, toBytes } from './bytes.ts'
import type { VectorStore } from './vector-store.ts'

/** Rows of bytes in either kind of database, searched in memory. */
export const vectorRows: VectorStore = {
  async insert(tx, _workspaceId, model, vectors) {
    for (const { cellNo, vector } of vectors) {
      await tx.run(
        `INSERT INTO cell_vector (cell_no, model, vector) VALUES ($1, $2, $3)
         ON CONFLICT (cell_no, model) DO UPDATE SET vector = excluded.vector`,
        [cellNo, model, toBytes(vector)],
      )
    }
  },

  async find(db, model, cellNos) {
    return new Map(Array.from(await findBytes(db, model, cellNos), ([cellNo, bytes]) => [cellNo, fromBytes(bytes)]))
  },

  findBytes,

  async findEmbedded(db, model, cellNos) {
    const rows = await db.all<{ cell_no: number }>(
      `SELECT cell_no FROM cell_vector WHERE cell_no IN ${inNumbers(db, '$1')} AND model = $2`,
      [JSON.stringify(cellNos), model],
    )
    return new Set(rows.map((row) => row.cell_no))
  },

  async delete(tx, cellNos, model) {
    const ofModel = model === undefined ? '' : 'AND model = $2'
    await tx.run(`DELETE FROM cell_vector WHERE cell_no IN ${inNumbers(tx, '$1')} ${ofModel}`, [
      JSON.stringify(cellNos),
      ...(model === undefined ? [] : [model]),
    ])
  },

  deleteOthers: (tx, model, cellNos) =>
    tx.run(`DELETE FROM cell_vector WHERE cell_no IN ${inNumbers(tx, '$1')} AND model <> $2`, [
      JSON.stringify(cellNos),
      model,
    ]),
}

async function findBytes(db: Queryable, model: string, cellNos: readonly number[]): Promise<Map<number, Uint8Array>> {
  const rows = await db.all<{ cell_no: number; vector: Uint8Array }>(
    `SELECT cell_no, vector FROM cell_vector WHERE cell_no IN ${inNumbers(db, '$1')} AND model = $2`,
    [JSON.stringify(cellNos), model],
  )
  return new Map(rows.map((row) => [row.cell_no, row.vector]))
}
