import { inNumbers } from '../../../database/database.ts'
import type { VectorStore } from './vector-store.ts'

/** Rows of bytes (float32, little-endian) in either kind of database, searched in memory. */
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
    const rows = await db.all<{ cell_no: number; vector: Uint8Array }>(
      `SELECT cell_no, vector FROM cell_vector WHERE cell_no IN ${inNumbers(db, '$1')} AND model = $2`,
      [JSON.stringify(cellNos), model],
    )
    return new Map(rows.map((row) => [row.cell_no, fromBytes(row.vector)]))
  },

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

const toBytes = (vector: Float32Array): Uint8Array =>
  new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength)

/** Copies where it must, because a view of floats must start at a multiple of four. */
const fromBytes = (bytes: Uint8Array): Float32Array => {
  const { buffer, byteOffset, byteLength } = aligned(bytes)
  return new Float32Array(buffer, byteOffset, byteLength / 4)
}

const aligned = (bytes: Uint8Array): Uint8Array => (bytes.byteOffset % 4 === 0 ? bytes : new Uint8Array(bytes))
