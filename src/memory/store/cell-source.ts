import { systemClock } from '../../base/clock.ts'
import { createLogger } from '../../base/log.ts'
import { inList, type Database } from '../../database/database.ts'
import { openDatabase, type DatabaseAddress } from '../../database/open.ts'
import { HASH_MODEL } from '../embedder/hash.ts'
import type { CellDocument, CellSource, ChangeBatch, MemoryCells } from '../search/types.ts'
import { findLivingCells, type CellRow } from './cells.ts'
import { Bodies } from './content/bodies.ts'
import { openContent, type ContentAddress } from './content/open.ts'
import { fromBytes, productsWith } from './vector/bytes.ts'
import { vectorStore, type VectorDriver } from './vector/index.ts'
import { VectorCache } from './vector/vector-cache.ts'
import type { VectorStore } from './vector/vector-store.ts'

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
  vectorDriver: VectorDriver
  content?: ContentAddress | undefined
}

/** A source with connections of its own, for reading only. */
export function openCellSource(address: CellSourceAddress): CellSource {
  const opened = new Map<string, Database>()
  const open = (database: DatabaseAddress): Database => {
    const known = opened.get(database.dsn) ?? openDatabase({ ...database, readonly: true })
    opened.set(database.dsn, known)
    return known
  }
  const metadata = open(address.metadata)
  const { content } = address
  const bodiesIn = content && 'database' in content ? open(content.database) : undefined
  const store = content && openContent(content, systemClock, bodiesIn)
  const bodies = new Bodies(metadata, store, createLogger('error', 'json'))
  return {
    ...createCellSource(metadata, open(address.vector), vectorStore(address.vectorDriver), bodies),
    close: async () => {
      for (const database of opened.values()) await database.close()
    },
  }
}

/** Reads what recall searches from the databases that hold it; `close` leaves them open. */
export function createCellSource(
  metadata: Database,
  vector: Database,
  vectors: VectorStore,
  bodies: Bodies,
): CellSource {
  const { search, findBytes } = vectors
  const kept = new VectorCache()
  const bytesOf = async (model: string, cellNos: readonly number[]): Promise<Map<number, Uint8Array>> => {
    const found = (await findBytes?.(vector, model, cellNos)) ?? new Map<number, Uint8Array>()
    if (model === HASH_MODEL) for (const [cellNo, bytes] of found) kept.put(cellNo, bytes)
    return found
  }
  const vectorsOf = async (cells: readonly CellRow[], model: string): Promise<VectorsOfCells> => {
    if (search) return new Map(cells.map((cell) => [cell.cell_no, cell.embedding_model === model ? 'elsewhere' : null]))
    const found = await bytesOf(
      model,
      cells.map((cell) => cell.cell_no),
    )
    return new Map(Array.from(found, ([cellNo, bytes]) => [cellNo, fromBytes(bytes)]))
  }
  const cosines: CellSource['cosines'] = async (model, query, cellNos) => {
    const productOf = productsWith(query)
    const products = new Map<number, number>()
    const unread: number[] = []
    for (const cellNo of cellNos) {
      const bytes = model === HASH_MODEL ? kept.get(cellNo) : undefined
      if (bytes) products.set(cellNo, productOf(bytes))
      else unread.push(cellNo)
    }
    if (unread.length === 0) return products
    for (const [cellNo, bytes] of await bytesOf(model, unread)) products.set(cellNo, productOf(bytes))
    return products
  }
  return {
    count: (workspaceId) => countCells(metadata, workspaceId),
    changes: (workspaceId, model, sinceSeq) =>
      readChanges(metadata, bodies, workspaceId, sinceSeq, (cells) => vectorsOf(cells, model)),
    has: async (cellNo) => (await findLivingCells(metadata, [cellNo])).has(cellNo),
    version: () => metadata.version(),
    ...(findBytes && { cosines }),
    ...(search && { vectorSearch: (workspaceId, model) => search(vector, workspaceId, model) }),
    close: () => Promise.resolve(),
  }
}

type VectorsOfCells = ReadonlyMap<number, CellDocument['vector']>

async function countCells(db: Database, workspaceId: string): Promise<number> {
  const row = await db.get<{ n: number | null }>(
    'SELECT sum(cell_count) AS n FROM memory WHERE workspace_id = $1 AND forgotten_at IS NULL',
    [workspaceId],
  )
  return row?.n ?? 0
}

async function* readChanges(
  metadata: Database,
  bodies: Bodies,
  workspaceId: string,
  sinceSeq: number,
  vectorsOf: (cells: readonly CellRow[]) => Promise<VectorsOfCells>,
): AsyncGenerator<ChangeBatch> {
  const isFirst = sinceSeq === 0
  for (let from: ChangePlace = { change_seq: sinceSeq + 1, memory_id: '' }; ;) {
    const { changed, isRest } = await findChanged(metadata, workspaceId, from, isFirst)
    const last = changed.at(-1)
    if (!last) return
    const { change_seq: seq } = last
    yield { seq: isRest ? seq : seq - 1, memories: await readCells(metadata, bodies, changed, vectorsOf) }
    if (isRest) return
    from = last
  }
}

/** Where to go on: behind a Memory among those of one change. */
type ChangePlace = Pick<ChangedMemory, 'change_seq' | 'memory_id'>

/**
 * The next changed Memories: some 500 Cells of them, and whether they are the last. A first reading leaves out tombstones.
 * Relies on memory_by_change.
 */
async function findChanged(
  db: Database,
  workspaceId: string,
  from: ChangePlace,
  isFirst: boolean,
): Promise<{ changed: ChangedMemory[]; isRest: boolean }> {
  const rows = await db.all<ChangedMemory>(
    `SELECT memory_id, collection_id, written_by_agent_id, created_at, cell_count, change_seq FROM memory
      WHERE workspace_id = $1 AND change_seq >= $2 AND (change_seq > $2 OR memory_id > $3)
            ${isFirst ? 'AND forgotten_at IS NULL' : ''}
      ORDER BY change_seq, memory_id LIMIT $4`,
    [workspaceId, from.change_seq, from.memory_id, MEMORIES_AT_ONCE],
  )
  let cells = 0
  const cut = rows.findIndex((row) => {
    const isFull = cells >= CELLS_AT_ONCE
    cells += row.cell_count
    return isFull
  })
  const changed = cut < 0 ? rows : rows.slice(0, cut)
  return { changed, isRest: cut < 0 && rows.length < MEMORIES_AT_ONCE }
}

/** A text that is lost is as blank here, so that one lost body does not end recall for all others. */
async function readCells(
  metadata: Database,
  bodies: Bodies,
  changed: readonly ChangedMemory[],
  vectorsOf: (cells: readonly CellRow[]) => Promise<VectorsOfCells>,
): Promise<MemoryCells[]> {
  const rows = await metadata.all<CellRow>(
    `SELECT * FROM cell WHERE memory_id IN ${inList(metadata, '$1')} ORDER BY memory_id, seq`,
    [JSON.stringify(changed.map((memory) => memory.memory_id))],
  )
  const vectors = await vectorsOf(rows)
  const texts = new Map((await bodies.texts(rows, 'skip')).map((cell) => [cell.cell_no, cell.text]))
  const byMemory = new Map(changed.map((memory) => [memory.memory_id, { memory, cells: new Array<CellDocument>() }]))
  for (const row of rows) {
    const owner = byMemory.get(row.memory_id)
    owner?.cells.push({
      cellNo: row.cell_no,
      cellId: row.cell_id,
      memoryId: row.memory_id,
      seq: row.seq,
      text: texts.get(row.cell_no) ?? '',
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
