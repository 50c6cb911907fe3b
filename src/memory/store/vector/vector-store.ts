import type { Database, Queryable } from '../../../database/database.ts'
import type { VectorSearch } from '../../search/types.ts'

export interface CellVector {
  cellNo: number
  /** Of unit length, or zero. */
  vector: Float32Array
}

/** How a database keeps vectors: for each Cell at most one of a model. Contract: memory.md 6.4, 9.1. */
export interface VectorStore {
  insert(tx: Queryable, workspaceId: string, model: string, vectors: readonly CellVector[]): Promise<void>
  find(db: Queryable, model: string, cellNos: readonly number[]): Promise<Map<number, Float32Array>>
  /** The same as they are stored, to be read by bytes.ts. Only where vectors are searched in memory. */
  findBytes?: (db: Queryable, model: string, cellNos: readonly number[]) => Promise<Map<number, Uint8Array>>
  /** Those of the Cells that have a vector of the model. */
  findEmbedded(db: Queryable, model: string, cellNos: readonly number[]): Promise<Set<number>>
  /** Deletes the Cells' vectors: of one model if it is named, else all. */
  delete(tx: Queryable, cellNos: readonly number[], model?: string): Promise<void>
  /** Deletes the Cells' vectors of other models, and gives their number. */
  deleteOthers(tx: Queryable, model: string, cellNos: readonly number[]): Promise<number>
  /** Absent where vectors are searched in memory. */
  search?: (db: Database, workspaceId: string, model: string) => VectorSearch
}
