import { md5 } from '../base/hash.ts'
import type { IdSource } from '../base/ids.ts'
import type { CellPlan } from './chunker/cell-plan.ts'
import { chunkerNamed, parseChunkerConfig, split, type ChunkerConfig, type ChunkerName } from './chunker/index.ts'
import type { Embedder } from './embedder/types.ts'
import type { Embedded } from './embedding.ts'
import { MemoryError } from './errors.ts'
import type { Workspace } from './model.ts'
import { IdempotentReplay, type Mutation } from './mutation.ts'
import type { Seams } from './seams.ts'
import { insertCells, type CellRow } from './store/cells.ts'
import type { VersionKey } from './store/content/store.ts'
import type { VersionBody } from './store/content/version-object.ts'
import { insertJobs } from './store/jobs.ts'
import type { VersionRow } from './store/versions.ts'

/** How long the queue leaves Cells to the write that made them, when vectors live in another database. */
const HANDOVER_MS = 30_000
const FIRST_RETRY_MS = 2000

export interface Chunking {
  name: ChunkerName
  config: ChunkerConfig
}

/**
 * The chunker of a Memory: its own, else the workspace's of the moment.
 * @throws invalid_input 400 for an unknown name or a bad value.
 */
export function chunkingOf(
  workspace: Workspace,
  own: string | null | undefined,
  config: Readonly<Record<string, string>> | undefined,
): Chunking {
  const name = chunkerNamed(own ?? workspace.chunker_id ?? 'default')
  return { name, config: parseChunkerConfig(name, config) }
}

/** A first version's Cells: all are new. */
export const planNew = (chunking: Chunking, content: string): CellPlan => ({
  kept: [],
  added: split(chunking.name, chunking.config, content).map((text, seq) => ({ text, md5: md5(text), seq })),
  removed: [],
})

/**
 * Runs the commit of a version whose body is stored before it, where bodies have a store of their own. A commit that is
 * refused takes the body back; after any other failure the version may be there, and the sweeper will know. Contract:
 * memory.md 9.3.
 * @throws internal_error 500 (content_unavailable), and what the commit throws.
 */
export async function storingBody<T>(
  { bodies }: Seams,
  version: VersionKey,
  body: VersionBody,
  signal: AbortSignal,
  commit: () => Promise<T>,
): Promise<T> {
  if (!bodies.areApart) return commit()
  await bodies.put(version, body, signal)
  try {
    return await commit()
  } catch (error) {
    if (error instanceof MemoryError || error instanceof IdempotentReplay) await bodies.discard(version)
    throw error
  }
}

/** What the row of a version keeps of its body. */
export const bodyColumns = ({ bodies }: Seams, content: string): Pick<VersionRow, 'content' | 'content_bytes'> =>
  bodies.areApart ? { content: null, content_bytes: Buffer.byteLength(content) } : { content, content_bytes: null }

/** New Cells as stored: rows, the vectors that are there, and whether each has one. */
export interface StoredCells {
  /** cell_no and vector of Cells whose vectors go to another database after the commit. */
  pending: { cellNo: number; vector: Float32Array }[]
  /** Every new Cell has its vector in place. */
  complete: boolean
}

interface Vector {
  vector: Float32Array | undefined
}

/** Writes new Cells with the vectors that came in time, and a queue row for each that has none yet. */
export async function storeCells(
  mutation: Mutation,
  seams: Seams,
  ids: IdSource,
  owner: { workspaceId: string; memoryId: string; agentId: string },
  added: CellPlan['added'],
  embedder: Embedder,
  embedded: Embedded,
): Promise<StoredCells> {
  const { tx, now } = mutation
  const inPlace = seams.vectorShared
  const cells = added.map(({ text, md5: text_md5, seq }): Omit<CellRow, 'cell_no'> & Vector => {
    const vector = embedded.vectors.get(text)
    return {
      cell_id: ids('cell_'),
      workspace_id: owner.workspaceId,
      memory_id: owner.memoryId,
      seq,
      text: seams.bodies.areApart ? null : text,
      text_bytes: seams.bodies.areApart ? Buffer.byteLength(text) : null,
      text_md5,
      agent_id: owner.agentId,
      metadata_json: null,
      embedding_model: vector && inPlace ? embedder.model : null,
      created_at: now,
      vector,
    }
  })
  const cellNos = await insertCells(tx, cells)
  const stored = cells.map((cell) => ({ cellNo: cellNos.get(cell.cell_id) ?? 0, vector: cell.vector }))
  const ready = stored.flatMap(({ cellNo, vector }) => (vector ? [{ cellNo, vector }] : []))
  if (inPlace) await seams.vectors.insert(tx, owner.workspaceId, embedder.model, ready)
  const waiting = inPlace ? stored.filter(({ vector }) => !vector) : stored
  await insertJobs(
    tx,
    waiting.map(({ cellNo, vector }) => ({
      cell_no: cellNo,
      workspace_id: owner.workspaceId,
      memory_id: owner.memoryId,
      model: embedder.model,
      attempts: !vector && embedded.failed ? 1 : 0,
      next_at: now + (vector ? HANDOVER_MS : embedded.failed ? FIRST_RETRY_MS : 0),
    })),
  )
  return { pending: inPlace ? [] : ready, complete: waiting.length === 0 }
}
