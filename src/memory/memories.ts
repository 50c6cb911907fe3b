import type { Page } from '../base/pages.ts'
import type { Clock } from '../base/clock.ts'

import type { Database } from '../database/database.ts'
import type { Embedding } from './embedding.ts'
import { notFound } from './errors.ts'
import type { Memory, MemoryWithCells, PastMemory, WatermarkEntry, Workspace } from './model.ts'
import { findCells, toCell } from './store/cells.ts'
import { findMemory, listMemories, toMemory, type MemoryRow } from './store/memories.ts'
import { stringsFromJson } from './store/rows.ts'
import { findTags } from './store/tags.ts'
import { findContents, findVersion, listVersions } from './store/versions.ts'

const HISTORY_WINDOW_MS = 7 * 24 * 3600 * 1000
const DAY_MS = 24 * 3600 * 1000

/** Reads of Memories, each over one consistent state. Contract: memory.md 3.2. */
export class Memories {
  readonly #db: Database
  readonly #embedding: Embedding
  readonly #clock: Clock
  readonly #retentionDays: number

  constructor(db: Database, embedding: Embedding, clock: Clock, retentionDays: number) {
    this.#db = db
    this.#embedding = embedding
    this.#clock = clock
    this.#retentionDays = retentionDays
  }

  /** @throws not_found 404. */
  lookup(workspace: Workspace, id: string): Promise<MemoryWithCells> {
    return this.#db.snapshot(async (view) => {
      const row = await findMemory(view, workspace.id, id)
      if (!row) throw notFound('memory', id)
      const contents = await findContents(view, [row.head_watermark])
      const tags = await findTags(view, [id])
      const cells = await findCells(view, id)
      return {
        ...this.#show(workspace, row, tags.get(id), contents.get(row.head_watermark)),
        cells: cells.map(toCell),
      }
    })
  }

  list(
    workspace: Workspace,
    collectionId: string | undefined,
    includeContent: boolean,
    limit: number,
    before: readonly [number, string] | undefined,
  ): Promise<Page<Memory>> {
    return this.#db.snapshot(async (view) => {
      const { items: rows, ...rest } = await listMemories(view, workspace.id, collectionId, limit, before)
      const tags = await findTags(
        view,
        rows.map((row) => row.memory_id),
      )
      const contents = includeContent
        ? await findContents(
            view,
            rows.map((row) => row.head_watermark),
          )
        : undefined
      const items = rows.map((row) =>
        this.#show(workspace, row, tags.get(row.memory_id), contents?.get(row.head_watermark)),
      )
      return { items, ...rest }
    })
  }

  /** The exact bytes of a version still retained, its tags as they last stood. @throws not_found 404. */
  at(workspace: Workspace, id: string, watermark: string): Promise<PastMemory> {
    return this.#db.snapshot(async (view) => {
      const row = await findMemory(view, workspace.id, id)
      if (!row) throw notFound('memory', id)
      const version = await findVersion(view, id, watermark)
      if (!version || this.#isExpired(version.superseded_at)) throw notFound('watermark', watermark)
      const isHead = watermark === row.head_watermark
      const tags = isHead ? (await findTags(view, [id])).get(id) : stringsFromJson(version.tags)
      const past = {
        ...row,
        content_md5: version.content_md5_after,
        head_watermark: watermark,
        last_modified_by_agent_id: version.agent_id,
        updated_at: version.created_at,
      }
      const shownTags = tags && Object.keys(tags).length > 0 ? tags : undefined
      return { ...this.#show(workspace, past, shownTags, version.content), current_watermark: row.head_watermark }
    })
  }

  /** Newest first, of the last 7 days. @throws not_found 404. */
  history(workspaceId: string, id: string, limit: number, before: number | undefined): Promise<Page<WatermarkEntry>> {
    return this.#db.snapshot(async (view) => {
      if (!(await findMemory(view, workspaceId, id))) throw notFound('memory', id)
      return listVersions(view, id, this.#clock.now() - HISTORY_WINDOW_MS, limit, before)
    })
  }

  /** Past retention a version is gone for readers, whether or not the sweeper has come by. */
  #isExpired(supersededAt: number | null): boolean {
    const days = this.#retentionDays
    return days > 0 && supersededAt !== null && supersededAt < this.#clock.now() - days * DAY_MS
  }

  #show(workspace: Workspace, row: MemoryRow, tags: Record<string, string> | undefined, content?: string): Memory {
    return toMemory(row, tags, this.#embedding.of(workspace).model, content)
  }
}
