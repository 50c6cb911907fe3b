import type { Clock } from '../base/clock.ts'
import type { Page } from '../base/pages.ts'
import type { Database, Queryable } from '../database/database.ts'
import type { Embedding } from './embedding.ts'
import { notFound } from './errors.ts'
import type { Memory, MemoryWithCells, PastMemory, WatermarkEntry, Workspace } from './model.ts'
import { findCells, toCell } from './store/cells.ts'
import type { Bodies } from './store/content/bodies.ts'
import { cutPage, findMemory, listMemories, toMemory, type MemoryRow } from './store/memories.ts'
import { stringsFromJson } from './store/rows.ts'
import { findTags } from './store/tags.ts'
import { findBodySizes, findVersion, findVersions, listVersions } from './store/versions.ts'

const HISTORY_WINDOW_MS = 7 * 24 * 3600 * 1000
const DAY_MS = 24 * 3600 * 1000
/** Of the contents on one page. */
const PAGE_BYTES = 64 * 1024 * 1024

/** Reads of Memories, each over one consistent state; bodies are read behind it, for a version never changes. Contract: memory.md 3.2. */
export class Memories {
  readonly #db: Database
  readonly #bodies: Bodies
  readonly #embedding: Embedding
  readonly #clock: Clock
  readonly #retentionDays: number

  constructor(db: Database, bodies: Bodies, embedding: Embedding, clock: Clock, retentionDays: number) {
    this.#db = db
    this.#bodies = bodies
    this.#embedding = embedding
    this.#clock = clock
    this.#retentionDays = retentionDays
  }

  /** @throws not_found 404. */
  async lookup(workspace: Workspace, id: string): Promise<MemoryWithCells> {
    const found = await this.#db.snapshot(async (view) => {
      const row = await findMemory(view, workspace.id, id)
      if (!row) throw notFound('memory', id)
      const version = await findVersion(view, id, row.head_watermark)
      return { row, version, tags: await findTags(view, [id]), cells: await findCells(view, id) }
    })
    const body = found.version && (await this.#bodies.head(workspace.id, found.version, found.cells))
    if (!body) throw notFound('memory', id)
    return { ...this.#show(workspace, found.row, found.tags.get(id), body.content), cells: body.cells.map(toCell) }
  }

  /** Newest first; a page ends early where its contents are large. */
  async list(
    workspace: Workspace,
    collectionId: string | undefined,
    includeContent: boolean,
    limit: number,
    before: readonly [number, string] | undefined,
  ): Promise<Page<Memory>> {
    const { page, tags, versions } = await this.#db.snapshot(async (view) => {
      const rows = await listMemories(view, workspace.id, collectionId, limit, before)
      const found = includeContent ? await fitting(view, rows) : rows
      const ids = found.items.map((row) => row.memory_id)
      const heads = includeContent ? found.items.map((row) => row.head_watermark) : []
      return { page: found, tags: await findTags(view, ids), versions: await findVersions(view, heads) }
    })
    const contents = await this.#bodies.contents(workspace.id, [...versions.values()])
    const items = page.items
      .filter((row) => !includeContent || contents.has(row.head_watermark))
      .map((row) => this.#show(workspace, row, tags.get(row.memory_id), contents.get(row.head_watermark)))
    return { ...page, items }
  }

  /** The exact bytes of a version still retained, its tags as they last stood. @throws not_found 404. */
  async at(workspace: Workspace, id: string, watermark: string): Promise<PastMemory> {
    const found = await this.#db.snapshot(async (view) => {
      const row = await findMemory(view, workspace.id, id)
      if (!row) throw notFound('memory', id)
      const version = await findVersion(view, id, watermark)
      if (!version || this.#isExpired(version.superseded_at)) throw notFound('watermark', watermark)
      const isHead = watermark === row.head_watermark
      return { row, version, tags: isHead ? (await findTags(view, [id])).get(id) : stringsFromJson(version.tags) }
    })
    const content = (await this.#bodies.contents(workspace.id, [found.version])).get(watermark)
    if (content === undefined) throw notFound('watermark', watermark)
    const past = {
      ...found.row,
      content_md5: found.version.content_md5_after,
      head_watermark: watermark,
      last_modified_by_agent_id: found.version.agent_id,
      updated_at: found.version.created_at,
    }
    const shownTags = Object.keys(found.tags ?? {}).length > 0 ? found.tags : undefined
    return { ...this.#show(workspace, past, shownTags, content), current_watermark: found.row.head_watermark }
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

/** The page, cut before the content that would make it larger than memory and an answer can carry; it has one at least. */
async function fitting(view: Queryable, page: Page<MemoryRow>): Promise<Page<MemoryRow>> {
  const sizes = await findBodySizes(
    view,
    page.items.map((row) => row.head_watermark),
  )
  let bytes = 0
  const first = page.items.findIndex((row, place) => {
    bytes += sizes.get(row.head_watermark) ?? 0
    return place > 0 && bytes > PAGE_BYTES
  })
  return first < 0 ? page : cutPage(page, first)
}
