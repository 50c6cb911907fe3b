import { inList, type Database } from '../../database/database.ts'
import { openDatabase, type DatabaseAddress } from '../../database/open.ts'
import type { CellDocument, CellSource, ChangeBatch, MemoryCells } from '../search/types.ts'
import { findVectors, type CellRow } from './cells.ts'

const MEMORIES_AT_ONCE = 500
const CELLS_AT_ONCE = 500

interface ChangedMemory {
  memory_id: string
  collection_id: string | null
  written_by_agent_id: string
  created_at: number
  cell_count: number
  change_seq: number
}

/** Where a search worker opens its own connections. */
export interface CellSourceAddress {
  metadata: DatabaseAddress
  vector: DatabaseAddress
}

/** A source with connections of its own, for reading only. */
export function openCellSource(address: CellSourceAddress): CellSource {
  const metadata = openDatabase({ ...address.metadata, readonly: true })
  const isShared = address.vector.dsn === address.metadata.dsn
  const vector = isShared ? metadata : openDatabase({ ...address.vector, readonly: true })
  const source = createCellSource(metadata, vector)
  return {
    ...source,
    close: async () => {
      await metadata.close()
      if (!isShared) await vector.close()
    },
  }
}

/** Reads what recall searches from the databases that hold it; `close` leaves them open. */
export function createCellSource(metadata: Database, vector: Database): CellSource {
  return {
    count: (workspaceId) => countCells(metadata, workspaceId),
    changes: (workspaceId, model, sinceSeq) => readChanges(metadata, vector, workspaceId, model, sinceSeq),
    vectors: (model, cellNos) => findVectors(vector, model, cellNos),
    close: () => Promise.resolve(),
  }
}

async function countCells(db: Database, workspaceId: string): Promise<number> {
  const row = await db.get<{ n: number | null }>(
    'SELECT sum(cell_count) AS n FROM memory WHERE workspace_id = $1 AND forgotten_at IS NULL',
    [workspaceId],
  )
  return row?.n ?? 0
}

async function* readChanges(
  metadata: Database,
  vector: Database,
  workspaceId: string,
  model: string,
  sinceSeq: number,
): AsyncGenerator<ChangeBatch> {
  const isFirst = sinceSeq === 0
  for (let since = sinceSeq; ;) {
    const changed = await findChanged(metadata, workspaceId, since, isFirst)
    const last = changed.at(-1)
    if (!last) return
    since = last.change_seq
    yield { seq: since, memories: await readCells(metadata, vector, model, changed) }
  }
}

/**
 * The next changed Memories: some 500 Cells of them, but always all that one mutation changed. A first reading leaves
 * out tombstones. Relies on memory_by_change.
 */
async function findChanged(
  db: Database,
  workspaceId: string,
  since: number,
  isFirst: boolean,
): Promise<ChangedMemory[]> {
  const rows = await db.all<ChangedMemory>(
    `SELECT memory_id, collection_id, written_by_agent_id, created_at, cell_count, change_seq FROM memory
      WHERE workspace_id = $1 AND change_seq > $2 ${isFirst ? 'AND forgotten_at IS NULL' : ''}
      ORDER BY change_seq LIMIT $3`,
    [workspaceId, since, MEMORIES_AT_ONCE],
  )
  let cells = 0
  const cut = rows.findIndex((row, i) => {
    const isWhole = rows[i - 1]?.change_seq !== row.change_seq
    const isFull = isWhole && cells >= CELLS_AT_ONCE
    cells += row.cell_count
    return isFull
  })
  if (cut > 0) return rows.slice(0, cut)
  if (rows.length < MEMORIES_AT_ONCE) return rows
  const lastSeq = rows.at(-1)?.change_seq
  return rows.filter((row) => row.change_seq !== lastSeq)
}

async function readCells(
  metadata: Database,
  vector: Database,
  model: string,
  changed: readonly ChangedMemory[],
): Promise<MemoryCells[]> {
  const rows = await metadata.all<CellRow>(
    `SELECT * FROM cell WHERE memory_id IN ${inList(metadata, '$1')} ORDER BY memory_id, seq`,
    [JSON.stringify(changed.map((memory) => memory.memory_id))],
  )
  const vectors = await findVectors(
    vector,
    model,
    rows.map((row) => row.cell_no),
  )
  const byMemory = new Map(changed.map((memory) => [memory.memory_id, { memory, cells: new Array<CellDocument>() }]))
  for (const row of rows) {
    const owner = byMemory.get(row.memory_id)
    owner?.cells.push({
      cellNo: row.cell_no,
      cellId: row.cell_id,
      memoryId: row.memory_id,
      seq: row.seq,
      text: row.text,
      collectionId: owner.memory.collection_id,
      agentId: owner.memory.written_by_agent_id,
      createdAt: owner.memory.created_at,
      vector: vectors.get(row.cell_no) ?? null,
    })
  }
  return changed.map((memory) => ({
    memoryId: memory.memory_id,
    cells: byMemory.get(memory.memory_id)?.cells ?? [],
  }))
}
