import { createHash } from 'node:crypto'
import * as z from 'zod'
import { eachBounded } from '../../base/bounded.ts'
import type { Seams } from '../seams.ts'
import { findChainsAfter, findTombstonesAfter, findVersionsAfter, measureHistories, readRows } from '../store/export.ts'
import { readChain } from '../store/ledger.ts'
import type { MemoryRow } from '../store/memories.ts'
import { findCellsOf, findMemoriesAfter, type Position } from '../store/migration.ts'
import { findTags } from '../store/tags.ts'
import type { VersionRow } from '../store/versions.ts'
import { ExportError, FORMAT, FORMAT_VERSION, RECORDS, type RecordType } from './format.ts'
import { readMoment, type View } from './snapshot.ts'

/** How many records of each type were written. */
export type Counts = Record<RecordType, number>

/** Of a workspace, rows read at once; and of Memories with their histories, as many as take this. */
const ROWS = 500
const HISTORY = { bytes: 8 * 2 ** 20, versions: 2000 }
/** Bodies asked of a store of their own. */
const AT_ONCE = 16
/** Written at once. */
const CHUNK = 256 * 1024

/**
 * Writes all workspaces, or those of `only`, as they are at one moment. Equal stores give equal bytes; memory use does not
 * grow with the store. @param write resolves when it takes more.
 * @throws ExportError for stores that do not stand still, internal_error 500 for a body that cannot be read
 */
export async function exportStore(
  seams: Seams,
  only: readonly string[] | undefined,
  write: (text: string) => Promise<unknown>,
): Promise<Counts> {
  const lines = new Lines(write)
  await readMoment(seams, async (view) => {
    lines.header()
    for (let after = ''; ;) {
      const chains = await findChainsAfter(view.metadata, after, only, ROWS)
      for (const chain of chains) await writeWorkspace(view, seams, lines, chain)
      if (chains.length < ROWS) break
      after = chains.at(-1)?.workspace_id ?? ''
    }
    await lines.end()
  })
  return lines.counts
}

async function writeWorkspace(
  view: View,
  seams: Seams,
  lines: Lines,
  chain: { workspace_id: string; seq: number; head_hash: string },
): Promise<void> {
  const { workspace_id: id } = chain
  await lines.add('chain', [chain])
  for (const type of ['workspace', 'collection', 'agent', 'pin'] as const) {
    for await (const rows of readRows(view.metadata, type, id, ROWS)) await lines.add(type, rows)
  }
  await writeMemories(view, seams, lines, id)
  if (view.graph) {
    for await (const rows of readRows(view.graph, 'edge', id, ROWS)) await lines.add('edge', rows)
  }
  for (let seq = 0; ;) {
    const rows = await readChain(view.ledger, id, seq, ROWS)
    await lines.add('ledger', rows)
    if (rows.length < ROWS) return
    seq = rows.at(-1)?.seq ?? 0
  }
}

async function writeMemories(view: View, seams: Seams, lines: Lines, workspaceId: string): Promise<void> {
  for (let position: Position = [Number.MIN_SAFE_INTEGER, '']; ;) {
    const memories = await findMemoriesAfter(view.metadata, workspaceId, position, ROWS)
    for (const group of await grouped(view, memories)) await writeHistories(view, seams, lines, workspaceId, group)
    const last = memories.at(-1)
    if (!last || memories.length < ROWS) break
    position = [last.created_at, last.memory_id]
  }
  for (let after = ''; ;) {
    const buried = await findTombstonesAfter(view.metadata, workspaceId, after, ROWS)
    await lines.add('memory', buried)
    if (buried.length < ROWS) return
    after = buried.at(-1)?.memory_id ?? ''
  }
}

/** Memories that are read together: all their versions at once, or `page` versions of one that is larger than that. */
interface Group {
  memories: MemoryRow[]
  page: number
}

async function grouped({ metadata }: View, memories: readonly MemoryRow[]): Promise<Group[]> {
  const sizes = await measureHistories(
    metadata,
    memories.map((memory) => memory.memory_id),
  )
  const sizeOf = new Map(sizes.map((size) => [size.memory_id, size]))
  const groups: Group[] = []
  let room = { bytes: 0, versions: 0 }
  for (const memory of memories) {
    const { bytes = 0, versions = 0, largest = 0 } = sizeOf.get(memory.memory_id) ?? {}
    const current = groups.at(-1)
    if (current && bytes <= room.bytes && versions <= room.versions) {
      current.memories.push(memory)
      room = { bytes: room.bytes - bytes, versions: room.versions - versions }
      continue
    }
    room = { bytes: HISTORY.bytes - bytes, versions: HISTORY.versions - versions }
    const fitting = room.bytes >= 0 ? HISTORY.versions : Math.floor(HISTORY.bytes / Math.max(largest, 1))
    groups.push({ memories: [memory], page: Math.min(Math.max(fitting, 1), HISTORY.versions) })
  }
  return groups
}

async function writeHistories(
  { metadata }: View,
  { bodies }: Seams,
  lines: Lines,
  workspaceId: string,
  { memories, page }: Group,
): Promise<void> {
  const ids = memories.map((memory) => memory.memory_id)
  const heads = new Set(memories.map((memory) => memory.head_watermark))
  const tags = await findTags(metadata, ids)
  const cells = byMemory(await findCellsOf(metadata, ids))
  const readPage = async (afterNo: number): Promise<VersionRow[]> => {
    const rows = await findVersionsAfter(metadata, ids, afterNo, page)
    const isHead = ({ watermark }: VersionRow): boolean => heads.has(watermark)
    const contents = await bodies.contents(
      workspaceId,
      rows.filter((row) => !isHead(row)),
    )
    await eachBounded(rows.filter(isHead), AT_ONCE, async (row) => {
      const head = await bodies.head(workspaceId, row, cells.get(row.memory_id) ?? [])
      if (!head) return
      contents.set(row.watermark, head.content)
      cells.set(row.memory_id, head.cells)
    })
    return rows.map((row) => ({ ...row, content: contents.get(row.watermark) ?? gone(row) }))
  }
  let rows = await readPage(0)
  const versions = byMemory(rows)
  for (const memory of memories) {
    const { memory_id: id } = memory
    await lines.add('memory', [{ ...memory, tags: tags.get(id) }])
    await lines.add('version', versions.get(id) ?? [])
    while (memories.length === 1 && rows.length === page) {
      rows = await readPage(rows.at(-1)?.version_no ?? 0)
      await lines.add('version', rows)
    }
    await lines.add('cell', cells.get(id) ?? [])
  }
}

/** Only where bodies have a store of their own, which knows nothing of snapshots. */
function gone({ memory_id: id, watermark }: VersionRow): never {
  throw new ExportError(`the body of ${id} at ${watermark} was erased while it was exported: run it again`)
}

function byMemory<Row extends { memory_id: string }>(rows: readonly Row[]): Map<string, Row[]> {
  const groups = new Map<string, Row[]>()
  for (const row of rows) {
    const group = groups.get(row.memory_id)
    if (group) group.push(row)
    else groups.set(row.memory_id, [row])
  }
  return groups
}

/** What reads a row may have more columns than its record has keys. */
const WRITERS = new Map<string, z.ZodType>(
  Object.entries(RECORDS).map(([type, { shape }]) => [type, z.object<z.ZodRawShape>(shape)]),
)

/** The lines on their way out, counted and digested. */
class Lines {
  readonly counts: Counts = {
    chain: 0,
    workspace: 0,
    collection: 0,
    agent: 0,
    pin: 0,
    memory: 0,
    version: 0,
    cell: 0,
    edge: 0,
    ledger: 0,
  }
  readonly #write: (text: string) => Promise<unknown>
  readonly #hash = createHash('sha256')
  #text = ''

  constructor(write: (text: string) => Promise<unknown>) {
    this.#write = write
  }

  header(): void {
    this.#text = `${JSON.stringify({ type: 'header', format: FORMAT, version: FORMAT_VERSION })}\n`
  }

  async add(type: RecordType, rows: readonly object[]): Promise<void> {
    const writer = WRITERS.get(type)
    if (!writer) throw new Error(`${type} is no record`)
    for (const row of rows) {
      this.#text += `${JSON.stringify(z.encode(writer, { ...row, type }))}\n`
      this.counts[type]++
      if (this.#text.length > CHUNK) await this.#flush()
    }
  }

  async end(): Promise<void> {
    await this.#flush()
    const records = Object.values(this.counts).reduce((sum, count) => sum + count, 0)
    await this.#write(`${JSON.stringify({ type: 'end', records, sha256: this.#hash.digest('hex') })}\n`)
  }

  async #flush(): Promise<void> {
    const text = this.#text
    this.#text = ''
    this.#hash.update(text)
    await this.#write(text)
  }
}
