import { md5 } from '../base/hash.ts'
import type { IdSource } from '../base/ids.ts'
import { KeyedMutex } from '../base/keyed-mutex.ts'
import type { Caller } from './caller.ts'
import { planCells, type CellPlan } from './chunker/cell-plan.ts'
import { rechunk } from './chunker/edit.ts'
import { bodyColumns, chunkingOf, storeCells, storingBody } from './content.ts'
import type { EmbedQueue } from './embed-queue.ts'
import type { Embedding } from './embedding.ts'
import { MemoryError, notFound } from './errors.ts'
import type { VersionOp, Workspace } from './model.ts'
import { elapsedMs, type Mutation, type Mutations } from './mutation.ts'
import { applyPatch, refuseLonger } from './patch.ts'
import type { AppendRequest, PatchRequest, UpdateRequest } from './requests.ts'
import type { Seams } from './seams.ts'
import { deleteCells, findCells, hasTexts, moveCells, type CellRow } from './store/cells.ts'
import type { Cell } from './store/content/bodies.ts'
import { deleteJobs } from './store/jobs.ts'
import { advanceHead, findMemory, type MemoryRow, type Tags } from './store/memories.ts'
import { stringsFromJson } from './store/rows.ts'
import { deleteTags, findTags, insertTags } from './store/tags.ts'
import { findVersion, insertVersion, supersedeVersion } from './store/versions.ts'

/** What every edit answers with (*E* of memory.md 3.2). */
export interface EditAnswer {
  memory_id: string
  watermark: string
  content_md5: string
  cells_skipped: number
  last_modified_by_agent_id: string
  ledger_id?: string
  latency_ms: number
}
interface UpdateCounters {
  cells_re_embedded: number
}
interface PatchCounters extends UpdateCounters {
  patches_applied: number
  cells_added: number
  cells_removed: number
}
interface AppendCounters {
  cells_added: number
}
export type UpdateAnswer = EditAnswer & UpdateCounters
export type PatchAnswer = EditAnswer & PatchCounters
export type AppendAnswer = EditAnswer & AppendCounters

/** The Memory as an edit found it. */
interface Head {
  row: MemoryRow
  content: string
  versionNo: number
  cells: Cell[]
}

/** The version that an edit puts over it. */
interface Edit<Counters> {
  op: VersionOp
  content: string
  /** Replaces all tags; absent keeps them. */
  tags?: Tags | undefined
  counters: (plan: CellPlan) => Counters
}

/** Update, patch and append: each moves the head by compare-and-set. Contract: memory.md 3.2, 5, 9.3. */
export class Edits {
  readonly #seams: Seams
  readonly #mutations: Mutations
  readonly #ids: IdSource
  readonly #embedding: Embedding
  readonly #queue: EmbedQueue
  /** Edits of one Memory take turns, so that only another process can make an append start anew. */
  readonly #turns = new KeyedMutex()

  constructor(parts: { seams: Seams; mutations: Mutations; ids: IdSource; embedding: Embedding; queue: EmbedQueue }) {
    this.#seams = parts.seams
    this.#mutations = parts.mutations
    this.#ids = parts.ids
    this.#embedding = parts.embedding
    this.#queue = parts.queue
  }

  /** Replaces the content; always a new watermark. @throws not_found 404, cas_conflict 412. */
  update(
    caller: Caller,
    workspace: Workspace,
    memoryId: string,
    request: UpdateRequest,
    expected: string,
  ): Promise<UpdateAnswer> {
    return this.#turns.run(memoryId, async () => {
      const head = await this.#read(workspace.id, memoryId, expected)
      return this.#write(caller, workspace, head, {
        op: 'update',
        content: request.content,
        tags: request.tags,
        counters: (plan) => ({ cells_re_embedded: plan.added.length }),
      })
    })
  }

  /** Runs anchored replacements; the same watermark when nothing changes. @throws patch_anchor_not_found 400, 404, 412. */
  patch(
    caller: Caller,
    workspace: Workspace,
    memoryId: string,
    request: PatchRequest,
    expected: string,
  ): Promise<PatchAnswer> {
    return this.#turns.run(memoryId, async () => {
      const head = await this.#read(workspace.id, memoryId, expected)
      const content = await applyPatch(head.content, request.patch, caller.signal)
      const counters = (plan: CellPlan): PatchCounters => {
        const growth = plan.added.length - plan.removed.length
        return {
          patches_applied: request.patch.length,
          cells_re_embedded: plan.added.length,
          cells_added: Math.max(growth, 0),
          cells_removed: Math.max(-growth, 0),
        }
      }
      if (content === head.content) return unchanged(caller, head, counters({ kept: [], added: [], removed: [] }))
      return this.#write(caller, workspace, head, { op: 'patch', content, counters })
    })
  }

  /** Joins text to the end. Without a watermark it follows the head wherever it moves. @throws 404, cas_conflict 412. */
  append(
    caller: Caller,
    workspace: Workspace,
    memoryId: string,
    request: AppendRequest,
    expected: string | undefined,
  ): Promise<AppendAnswer> {
    return this.#turns.run(memoryId, async () => {
      // A repeat that waited for its first run must not meet the head that run moved.
      await this.#mutations.refuseRepeat(caller, workspace.id)
      for (;;) {
        caller.signal.throwIfAborted()
        const head = await this.#read(workspace.id, memoryId, expected)
        refuseLonger(head.content.length + request.content.length, 'content')
        try {
          return await this.#write(caller, workspace, head, {
            op: 'append',
            content: head.content + request.content,
            counters: (plan) => ({ cells_added: plan.added.length }),
          })
        } catch (error) {
          const isMoved = error instanceof MemoryError && error.code === 'cas_conflict'
          if (!isMoved || expected !== undefined) throw error
        }
      }
    })
  }

  async #read(workspaceId: string, memoryId: string, expected: string | undefined): Promise<Head> {
    const found = await this.#seams.metadata.snapshot(async (view) => {
      const row = await findMemory(view, workspaceId, memoryId)
      if (!row) throw notFound('memory', memoryId)
      if (expected !== undefined && expected !== row.head_watermark) throw casConflict(expected, row.head_watermark)
      const version = await findVersion(view, memoryId, row.head_watermark)
      if (!version) throw new Error(`the body of ${memoryId} at ${row.head_watermark} is missing`)
      return { row, version, cells: await findCells(view, memoryId) }
    })
    const body = await this.#seams.bodies.head(workspaceId, found.version, found.cells)
    if (!body) throw notFound('memory', memoryId)
    return { row: found.row, versionNo: found.version.version_no, ...body }
  }

  async #write<Counters extends object>(
    caller: Caller,
    workspace: Workspace,
    head: Head,
    edit: Edit<Counters>,
  ): Promise<EditAnswer & Counters> {
    const { row } = head
    const chunking = chunkingOf(workspace, row.chunker_id, stringsFromJson(row.chunker_config))
    const texts = rechunk(chunking.name, chunking.config, head.cells, head.content, edit.content)
    const plan = planCells(head.cells.map(toPlanned), texts)
    const embedder = this.#embedding.of(workspace)
    const newTexts = plan.added.map(({ text }) => text)
    const embedded = await this.#embedding.inline(embedder, newTexts, caller.signal)
    const watermark = this.#ids('wmk_')
    const contentMd5 = md5(edit.content)

    const commit = (): Promise<EditAnswer & Counters> =>
      this.#mutations.run(caller, workspace.id, async (mutation) => {
        const { tx, now } = mutation
        const owner = { workspaceId: workspace.id, memoryId: row.memory_id, agentId: caller.agentId }
        const kept = await this.#keep(mutation, head, plan)
        const stored = await storeCells(mutation, this.#seams, this.#ids, owner, plan.added, embedder, embedded)
        const isReady = stored.complete && kept.every((cell) => cell.embedding_model === embedder.model)
        const next: MemoryRow = {
          ...row,
          content_md5: contentMd5,
          head_watermark: watermark,
          last_modified_by_agent_id: caller.agentId,
          cell_count: texts.length,
          embedded_model: isReady && texts.length > 0 ? embedder.model : null,
          change_seq: mutation.changeSeq(),
          updated_at: now,
        }
        if (!(await advanceHead(tx, row.head_watermark, next))) {
          const moved = await findMemory(tx, workspace.id, row.memory_id)
          throw moved ? casConflict(row.head_watermark, moved.head_watermark) : notFound('memory', row.memory_id)
        }
        await this.#replaceVersion(mutation, head, next, edit)
        const counters = edit.counters(plan)
        const ledgerId = mutation.record(edit.op, {
          target: row.memory_id,
          before: row.head_watermark,
          after: watermark,
          metadata: { ...counters, cells_skipped: plan.kept.length },
        })
        if (!isReady) mutation.afterCommit(() => this.#queue.takeOver(workspace.id, embedder.model, stored.pending))
        return {
          memory_id: row.memory_id,
          watermark,
          content_md5: contentMd5,
          ...counters,
          cells_skipped: plan.kept.length,
          last_modified_by_agent_id: caller.agentId,
          ledger_id: ledgerId,
          latency_ms: elapsedMs(caller),
        }
      })
    const version = { workspaceId: workspace.id, memoryId: row.memory_id, watermark }
    return storingBody(this.#seams, version, { content: edit.content, cells: texts }, caller.signal, commit)
  }

  /** Moves the Cells that stay, removes the others, and gives those that stay. */
  async #keep({ tx }: Mutation, head: Head, plan: CellPlan): Promise<CellRow[]> {
    const byId = new Map(head.cells.map((cell) => [cell.cell_id, cell]))
    const rowsOf = (ids: readonly string[]): CellRow[] => ids.flatMap((id) => byId.get(id) ?? [])
    const moves = plan.kept.flatMap(({ cellId, from, to }) => {
      const cell = byId.get(cellId)
      return cell && from !== to ? [{ cellNo: cell.cell_no, seq: to }] : []
    })
    const removed = rowsOf(plan.removed).map((cell) => cell.cell_no)
    await moveCells(tx, moves)
    if (removed.length > 0) {
      await deleteCells(tx, removed)
      await deleteJobs(tx, removed)
      await this.#seams.deleteVectors(tx, removed)
    }
    // `migrate content --prune` may have taken texts since they were read; without a content store they must stay here.
    if (!this.#seams.bodies.areApart && !(await hasTexts(tx, head.row.memory_id))) {
      throw new Error(`the Cells of ${head.row.memory_id} moved to a content store, and none is configured`)
    }
    return rowsOf(plan.kept.map(({ cellId }) => cellId))
  }

  /** Freezes the old version with the tags it ended with, and writes the new one. */
  async #replaceVersion<C>({ tx, now }: Mutation, head: Head, next: MemoryRow, edit: Edit<C>): Promise<void> {
    const { memory_id: memoryId, workspace_id: workspaceId } = head.row
    const tags = (await findTags(tx, [memoryId])).get(memoryId) ?? {}
    await supersedeVersion(tx, head.row.head_watermark, JSON.stringify(tags), now)
    await insertVersion(tx, {
      watermark: next.head_watermark,
      memory_id: memoryId,
      version_no: head.versionNo + 1,
      op: edit.op,
      agent_id: next.last_modified_by_agent_id,
      content_md5_before: head.row.content_md5,
      content_md5_after: next.content_md5,
      ...bodyColumns(this.#seams, edit.content),
      created_at: now,
    })
    if (edit.tags === undefined) return
    await deleteTags(tx, memoryId)
    await insertTags(tx, workspaceId, memoryId, edit.tags)
  }
}

const toPlanned = (cell: CellRow): { cellId: string; textMd5: string; seq: number } => ({
  cellId: cell.cell_id,
  textMd5: cell.text_md5,
  seq: cell.seq,
})

const unchanged = <Counters extends object>(caller: Caller, head: Head, counters: Counters): EditAnswer & Counters => ({
  memory_id: head.row.memory_id,
  watermark: head.row.head_watermark,
  content_md5: head.row.content_md5,
  ...counters,
  cells_skipped: head.cells.length,
  last_modified_by_agent_id: head.row.last_modified_by_agent_id,
  latency_ms: elapsedMs(caller),
})

/** The head is not where the caller believed it. */
export const casConflict = (expected: string, head: string): MemoryError =>
  new MemoryError('cas_conflict', `the Memory is at ${head}, not at ${expected}: read it again and retry`, {
    expected_watermark: expected,
    head_watermark: head,
  })
