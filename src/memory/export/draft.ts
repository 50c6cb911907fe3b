import { setTimeout as sleep } from 'node:timers/promises'
import { eachBounded } from '../../base/bounded.ts'
import type { Param, Queryable } from '../../database/database.ts'
import { bodyColumns } from '../content.ts'
import type { Embedder } from '../embedder/types.ts'
import type { Embedding } from '../embedding.ts'
import type { Seams } from '../seams.ts'
import { countOutbox } from '../store/backlog.ts'
import { findChain } from '../store/chains.ts'
import { findMemories } from '../store/memories.ts'
import {
  eraseMemories,
  eraseSome,
  findSomeMemories,
  hasRows,
  hideWorkspace,
  insertRows,
  isDuplicate,
  queueCells,
  showWorkspace,
} from '../store/restore.ts'
import { optional } from '../store/rows.ts'
import type { CellVector } from '../store/vector/vector-store.ts'
import { ExportError, type ExportRecord, type RecordOf } from './format.ts'

type Row = Record<string, Param>

/** Models that are a function of the text in this program; others are asked by the queue. */
const BUILT_IN = /^(hash|noop):/
/** Held before it is written. */
const ROWS = 4000
const BYTES = 8 * 2 ** 20
const AT_ONCE = 16
const ERASED_AT_ONCE = 500
/** How long other stores may take to erase something. */
const PAUSES = 150
const PAUSE_MS = 200

const IN_METADATA = ['collection', 'agent', 'pin', 'memory', 'memory_version', 'memory_tag'] as const
const NEVER = new AbortController().signal

/** What was taken and not yet written. */
const newBatch = () => ({
  rows: {
    collection: new Array<Row>(),
    agent: new Array<Row>(),
    pin: new Array<Row>(),
    memory: new Array<Row>(),
    memory_version: new Array<Row>(),
    memory_tag: new Array<Row>(),
    cell: new Array<Row>(),
    edge: new Array<Row & { source_memory_id: string; target_memory_id: string }>(),
    ledger: new Array<Row>(),
  },
  /** By Cell, the texts that get vectors with it. */
  toEmbed: new Map<string, string>(),
  bodies: new Array<{ memoryId: string; watermark: string; content: string; cells: readonly string[] }>(),
  count: 0,
  bytes: 0,
})
type Batch = ReturnType<typeof newBatch>

interface Numbered {
  cell_no: number
  cell_id: string
}

/**
 * A workspace that is being restored. Its rows go into the stores bit by bit, where nobody sees them: the rows of workspace
 * and chain come last, in one transaction. What was left of an earlier attempt has no entries in its chain, and is erased first.
 */
export class Draft {
  readonly #seams: Seams
  readonly #embedding: Embedding
  readonly #workspaceId: string
  #workspace: Row | undefined
  #embedder: Embedder | undefined
  /** Changes are numbered behind the last one that was here, so that running servers see them. */
  #changeSeq = 0
  #memory: RecordOf<'memory'> | undefined
  /** Of the Memory whose Cells are being read, where bodies have a store of their own. */
  #head: { watermark: string; content: string; cells: string[] } | undefined
  #taken = newBatch()

  constructor(seams: Seams, embedding: Embedding, workspaceId: string) {
    this.#seams = seams
    this.#embedding = embedding
    this.#workspaceId = workspaceId
  }

  /** Erases the workspace as far as it is here, in many small transactions. */
  async erase(): Promise<void> {
    const { metadata, graph, ledger, bodies } = this.#seams
    const workspaceId = this.#workspaceId
    if (!(await this.#isHere())) return
    await metadata.transaction((tx) => hideWorkspace(tx, workspaceId))
    this.#changeSeq = (await findChain(metadata, workspaceId))?.changeSeq ?? 0
    for (;;) {
      const ids = await findSomeMemories(metadata, workspaceId, ERASED_AT_ONCE)
      if (ids.length === 0) break
      await metadata.transaction(async (tx) => {
        await this.#seams.deleteVectors(tx, await eraseMemories(tx, ids))
        if (bodies.areApart) for (const memoryId of ids) await this.#seams.eraseBodies(tx, { workspaceId, memoryId })
      })
    }
    for (const [table, database] of [['edge', graph] as const, ['ledger', ledger] as const]) {
      let erased = database ? ERASED_AT_ONCE : 0
      while (database && erased > 0) {
        erased = await database.transaction((tx) => eraseSome(tx, table, workspaceId, ERASED_AT_ONCE))
      }
    }
    await this.#untilDelivered()
    this.#seams.scrub()
  }

  async #isHere(): Promise<boolean> {
    const { metadata, graph, ledger } = this.#seams
    const found = await Promise.all([
      hasRows(metadata, ['chain', 'workspace', 'collection', 'agent', 'pin', 'memory'], this.#workspaceId),
      graph && hasRows(graph, ['edge'], this.#workspaceId),
      ledger && hasRows(ledger, ['ledger'], this.#workspaceId),
    ])
    return found.includes(true)
  }

  /** What is still to be erased elsewhere would take what comes now under the same name. */
  async #untilDelivered(): Promise<void> {
    let left = Infinity
    for (let pauses = 0; ; pauses++) {
      await this.#seams.deliver()
      const waiting = (await countOutbox(this.#seams.metadata)).reduce((sum, { n }) => sum + n, 0)
      if (waiting === 0) return
      if (waiting < left) pauses = 0
      left = waiting
      if (pauses === PAUSES) {
        throw new ExportError(
          'a store outside the metadata database does not answer: see `mem doctor`, and run it again',
        )
      }
      await sleep(PAUSE_MS)
    }
  }

  /** Takes the next record. @throws ExportError for an id that another workspace has, and for Edges without a graph store */
  async add(record: Exclude<ExportRecord, RecordOf<'chain'>>): Promise<void> {
    this.#take(record)
    this.#taken.count++
    if (this.#taken.count >= ROWS || this.#taken.bytes >= BYTES) await this.#flush()
  }

  #take(record: Exclude<ExportRecord, RecordOf<'chain'>>): void {
    const workspace_id = this.#workspaceId
    switch (record.type) {
      case 'workspace': {
        const { type: _, ...row } = record
        this.#workspace = { workspace_id, ...row }
        this.#embedder = this.#embedding.of(optional('embedding_model', row.embedding_model))
        return
      }
      case 'memory':
        return this.#takeMemory(record)
      case 'version':
        return this.#takeVersion(record)
      case 'cell':
        return this.#takeCell(record)
      case 'edge': {
        const { type: _, ...row } = record
        this.#taken.rows.edge.push({ workspace_id, ...row })
        return
      }
      case 'ledger': {
        const { type: _, ...row } = record
        this.#taken.rows.ledger.push({ workspace_id, ...row })
        return
      }
      default: {
        const { type, ...row } = record
        this.#taken.rows[type].push({ workspace_id, ...row })
      }
    }
  }

  #takeMemory(record: RecordOf<'memory'>): void {
    this.#closeMemory()
    const { type: _, tags = {}, ...row } = record
    const workspace_id = this.#workspaceId
    this.#memory = record
    this.#taken.rows.memory.push({
      workspace_id,
      ...row,
      embedded_model: row.cell_count > 0 ? (this.#modelNow()?.model ?? null) : null,
      change_seq: ++this.#changeSeq,
    })
    for (const [key, value] of Object.entries(tags)) {
      this.#taken.rows.memory_tag.push({ workspace_id, memory_id: row.memory_id, key, value })
      this.#taken.count++
    }
  }

  /** The model whose vectors the Memory's Cells get at once; undefined leaves them, and a due auto-link, to the queue. */
  #modelNow(): Embedder | undefined {
    const model = this.#embedder?.model ?? ''
    return BUILT_IN.test(model) && this.#memory?.auto_link_due === 0 ? this.#embedder : undefined
  }

  #takeVersion(record: RecordOf<'version'>): void {
    const { type: _, content, ...row } = record
    const memoryId = this.#memory?.memory_id ?? ''
    this.#taken.rows.memory_version.push({ memory_id: memoryId, ...row, ...bodyColumns(this.#seams, content) })
    this.#taken.bytes += content.length
    if (!this.#seams.bodies.areApart) return
    const { watermark } = row
    if (watermark === this.#memory?.head_watermark) this.#head = { watermark, content, cells: [] }
    else this.#taken.bodies.push({ memoryId, watermark, content, cells: [] })
  }

  #takeCell(record: RecordOf<'cell'>): void {
    const { type: _, text, ...row } = record
    const model = this.#modelNow()?.model ?? null
    this.#taken.rows.cell.push({
      workspace_id: this.#workspaceId,
      memory_id: this.#memory?.memory_id ?? '',
      ...row,
      text: this.#head ? null : text,
      text_bytes: this.#head ? Buffer.byteLength(text) : null,
      embedding_model: model,
    })
    if (model !== null) this.#taken.toEmbed.set(row.cell_id, text)
    this.#head?.cells.push(text)
    this.#taken.bytes += text.length
  }

  #closeMemory(): void {
    if (this.#head && this.#memory) this.#taken.bodies.push({ memoryId: this.#memory.memory_id, ...this.#head })
    this.#head = undefined
  }

  async #flush(): Promise<void> {
    const { rows, bodies, toEmbed } = this.#taken
    this.#taken = newBatch()
    const { metadata, graph, ledger, vectorShared } = this.#seams
    if (rows.edge.length > 0 && !graph) throw new ExportError('it holds Edges, and no graph store is configured here')
    await eachBounded(bodies, AT_ONCE, ({ memoryId, watermark, ...body }) =>
      this.#seams.bodies.put({ workspaceId: this.#workspaceId, memoryId, watermark }, body),
    )
    const vectors = await this.#embed([...toEmbed.values()])
    try {
      const cellVectors = await metadata.transaction(async (tx) => {
        for (const table of IN_METADATA) await insertRows(tx, table, rows[table])
        const cells = await insertRows<Numbered>(tx, 'cell', rows.cell, 'RETURNING cell_no, cell_id')
        const embedded = cells.flatMap(({ cell_no: cellNo, cell_id: id }) => {
          const vector = vectors.get(toEmbed.get(id) ?? '')
          return vector ? [{ cellNo, vector }] : []
        })
        if (vectorShared) await this.#insertVectors(tx, embedded)
        await refuseLoose(tx, this.#workspaceId, rows.edge)
        if (graph === metadata) await insertRows(tx, 'edge', rows.edge)
        if (ledger === metadata) await insertRows(tx, 'ledger', rows.ledger)
        return embedded
      })
      if (!vectorShared) await this.#seams.vector.transaction((tx) => this.#insertVectors(tx, cellVectors))
      if (graph && graph !== metadata) await graph.transaction((tx) => insertRows(tx, 'edge', rows.edge))
      if (ledger && ledger !== metadata) await ledger.transaction((tx) => insertRows(tx, 'ledger', rows.ledger))
    } catch (error) {
      if (!isDuplicate(error)) throw error
      throw new ExportError(`an id or a name in ${this.#workspaceId} is there already, maybe in another workspace`)
    }
  }

  async #insertVectors(tx: Queryable, vectors: readonly CellVector[]): Promise<void> {
    if (this.#embedder) await this.#seams.vectors.insert(tx, this.#workspaceId, this.#embedder.model, vectors)
  }

  async #embed(texts: readonly string[]): Promise<Map<string, Float32Array>> {
    const vectors = new Map<string, Float32Array>()
    if (!this.#embedder) return vectors
    for await (const batch of this.#embedding.batches(this.#embedder, texts, NEVER)) {
      for (const [text, vector] of batch) vectors.set(text, vector)
    }
    return vectors
  }

  /** Makes the workspace visible, whole; gives the number of Cells that wait for the queue. */
  async finish(chain: RecordOf<'chain'>, now: number, confirm: (tx: Queryable) => Promise<void>): Promise<number> {
    this.#closeMemory()
    await this.#flush()
    const { type: _, ...row } = chain
    return this.#seams.metadata.transaction(async (tx) => {
      await confirm(tx)
      await showWorkspace(tx, this.#workspace, { ...row, change_seq: this.#changeSeq })
      return this.#embedder ? queueCells(tx, this.#workspaceId, this.#embedder.model, now) : 0
    })
  }
}

/** @throws ExportError when an end of an Edge is no live Memory of the workspace */
async function refuseLoose(tx: Queryable, workspaceId: string, edges: Batch['rows']['edge']): Promise<void> {
  if (edges.length === 0) return
  const ends = [...new Set(edges.flatMap((edge) => [edge.source_memory_id, edge.target_memory_id]))]
  const found = await findMemories(tx, workspaceId, ends)
  const missing = ends.find((id) => !found.has(id))
  if (missing !== undefined) throw new ExportError(`an Edge of ${workspaceId} ends at ${missing}, which is not there`)
}
