import { eachBounded } from '../base/bounded.ts'
import { errorText } from '../base/errors.ts'
import { md5 } from '../base/hash.ts'
import { rest } from '../base/rest.ts'
import type { Caller } from './caller.ts'
import type { Mutations } from './mutation.ts'
import type { Logger } from './ports.ts'
import type { Seams } from './seams.ts'
import { findCells, type CellRow } from './store/cells.ts'
import { lockChain } from './store/chains.ts'
import {
  clearBodies,
  countInScope,
  findInScope,
  findVersionsOf,
  markStored,
  type ContentScope,
} from './store/content-migration.ts'
import { keyOf, type ContentStore, type VersionKey } from './store/content/store.ts'
import { decodeVersion, encodeVersion, type VersionBody } from './store/content/version-object.ts'
import { findMemory, type MemoryRow } from './store/memories.ts'
import { findWatermarks, type VersionRow } from './store/versions.ts'

/** Memories between two reports. */
const REPORTED = 100
/** Memories between two looks at the clock, and at once under way. */
const PAGE = 20
const AT_ONCE = 8

export interface ContentMigrationOptions {
  scope: ContentScope
  /** `copy` stores what is not there, `verify` compares, `prune` clears the rows of what compares equal. */
  mode: 'copy' | 'verify' | 'prune'
  /** Counts, and writes nothing. */
  dryRun: boolean
  /** Memories a second at most; 0 = no limit. */
  maxRate: number
  report: (state: ContentMigrationState) => void
  /** Told more often, for a person who waits. */
  tick: (done: number, total: number) => void
}

/** In Memories: `migrated` were copied or pruned (in a dry run: would be), `skipped` had nothing to do. */
export interface ContentMigrationState {
  event: 'progress' | 'complete' | 'interrupted'
  total: number
  migrated: number
  skipped: number
  errors: number
  /** Bodies of it are not alike in both stores; absent in a mode that does not compare. */
  mismatches?: number
  /** The first Memory that is not done. */
  resume_token?: string
}

type Outcome = 'untried' | 'migrated' | 'skipped' | 'mismatched' | 'failed'

interface Parts {
  seams: Seams
  mutations: Mutations
  target: ContentStore
  log: Logger
}

/** A Memory as it is in both stores. */
interface Compared {
  row: MemoryRow
  versions: VersionRow[]
  cells: CellRow[]
  /** Versions whose object is right. */
  stored: Set<string>
  /** A body in the rows is not what its MD5 says. */
  isDamaged: boolean
}

/** Copies the bodies of a workspace to a content store, beside a running server. Contract: memory.md 11.4. */
export class MigrateContent {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /**
   * The oldest Memory first, each done on its own: a run may end anywhere (`caller.signal` ends it in order), and another
   * one does the rest. A Memory that fails is passed over; when all that were tried together fail, the run ends.
   */
  async run(caller: Caller, options: ContentMigrationOptions): Promise<ContentMigrationState> {
    const { mode, dryRun, maxRate, report, tick } = options
    const { metadata } = this.#parts.seams
    const state: ContentMigrationState = {
      event: 'complete',
      total: await countInScope(metadata, options.scope),
      migrated: 0,
      skipped: 0,
      errors: 0,
      ...(mode !== 'copy' && { mismatches: 0 }),
    }
    const start = performance.now()
    let done = 0
    for await (const page of this.#pages(options.scope, maxRate)) {
      const outcomes = await this.#tryAll(page, options, caller.signal)
      count(state, page, outcomes)
      const isDown = outcomes.every((outcome) => outcome === 'failed')
      if (outcomes.includes('untried') || (isDown && page.length > 1)) {
        state.event = 'interrupted'
        break
      }
      const before = done
      done += page.length
      tick(done, state.total)
      if (Math.floor(done / REPORTED) > Math.floor(before / REPORTED)) report({ ...state, event: 'progress' })
      if (maxRate > 0) await rest(start + (done / maxRate) * 1000 - performance.now(), caller.signal)
    }
    if (!dryRun && mode === 'prune') this.#parts.seams.scrub()
    if (!dryRun && state.migrated > 0) await this.#record(caller, options.scope.workspaceId, state)
    return state
  }

  async *#pages(scope: ContentScope, maxRate: number): AsyncGenerator<MemoryRow[]> {
    const size = maxRate > 0 ? Math.min(maxRate, PAGE) : PAGE
    let last: string | undefined
    for (let from = scope.from; ;) {
      const rows = await findInScope(this.#parts.seams.metadata, { ...scope, from }, size + 1)
      const page = rows.filter((row) => row.memory_id !== last).slice(0, size)
      const end = page.at(-1)
      if (!end) return
      yield page
      last = end.memory_id
      from = [end.created_at, end.memory_id]
    }
  }

  async #tryAll(page: readonly MemoryRow[], options: ContentMigrationOptions, signal: AbortSignal): Promise<Outcome[]> {
    const outcomes = page.map((): Outcome => 'untried')
    await eachBounded([...page.entries()], AT_ONCE, async ([i, row]) => {
      if (signal.aborted) return
      try {
        outcomes[i] = await this.#try(row, options)
        if (outcomes[i] === 'mismatched')
          this.#parts.log.warn({ memory: row.memory_id }, 'the bodies of a Memory are not alike in both stores')
      } catch (error) {
        outcomes[i] = 'failed'
        this.#parts.log.error({ memory: row.memory_id, reason: errorText(error) }, 'a Memory could not be migrated')
      }
    })
    return outcomes
  }

  /** A Memory that was forgotten meanwhile has nothing to do. */
  async #try(listed: MemoryRow, { mode, dryRun }: ContentMigrationOptions): Promise<Outcome> {
    const memory = await this.#compare(listed)
    if (!memory) return 'skipped'
    const isAlike = memory.stored.size === memory.versions.length && !memory.isDamaged
    if (mode === 'copy') return isAlike ? this.#skip(memory, dryRun) : dryRun ? 'migrated' : this.#copy(memory)
    if (!isAlike) return 'mismatched'
    if (mode === 'verify') return 'skipped'
    const has = [...memory.versions.map(({ content }) => content), ...memory.cells.map(({ text }) => text)]
    if (dryRun) return has.some((body) => body !== null) ? 'migrated' : 'skipped'
    return (await this.#mark(memory, clearBodies)) ? 'migrated' : 'skipped'
  }

  async #compare({ workspace_id: workspaceId, memory_id: id }: MemoryRow): Promise<Compared | undefined> {
    const { seams, target } = this.#parts
    const found = await seams.metadata.snapshot(async (view) => {
      const row = await findMemory(view, workspaceId, id)
      return row && { row, versions: await findVersionsOf(view, id), cells: await findCells(view, id) }
    })
    if (!found) return undefined
    const { row, versions, cells } = found
    const objects = await target.get(versions.map((version) => keyOf(keyFor(row, version))))
    const stored = new Set<string>()
    for (const version of versions) {
      const bytes = objects.get(keyOf(keyFor(row, version)))
      const body = bytes && decodeVersion(bytes)
      const needed = version.watermark === row.head_watermark ? cells : []
      if (body && holds(body, version, needed)) stored.add(version.watermark)
    }
    const isDamaged =
      versions.some(({ content, content_md5_after: hash }) => content !== null && md5(content) !== hash) ||
      cells.some(({ text, text_md5: hash }) => text !== null && md5(text) !== hash)
    return { row, versions, cells, stored, isDamaged }
  }

  /** What is stored already may not be known yet to the rows, when an earlier run was killed. */
  async #skip(memory: Compared, dryRun: boolean): Promise<Outcome> {
    const isKnown = memory.versions.every((version) => version.content_bytes !== null)
    if (!isKnown && !dryRun) await this.#mark(memory, markStored)
    return 'skipped'
  }

  async #copy(memory: Compared): Promise<Outcome> {
    const { seams, target } = this.#parts
    const { row, versions, cells, stored } = memory
    const missing = versions.filter((version) => !stored.has(version.watermark))
    const contents = await seams.bodies.contents(row.workspace_id, missing)
    const texts = await seams.bodies.texts(cells)
    for (const version of missing) {
      const content = contents.get(version.watermark)
      if (content === undefined) continue
      const isHead = version.watermark === row.head_watermark
      const body = { content, cells: isHead ? texts.map(({ text }) => text) : [] }
      if (!holds(body, version, isHead ? cells : [])) throw new Error('its body in the rows is not what its MD5 says')
      await target.put(keyOf(keyFor(row, version)), encodeVersion(body))
    }
    await this.#mark(memory, markStored)
    await this.#withdraw(row, versions)
    return 'migrated'
  }

  /** Under the lock of the workspace, so that no edit is between reading its Cells and writing them. */
  #mark({ row, versions }: Compared, work: typeof clearBodies | typeof markStored): Promise<unknown> {
    const marks = versions.map(({ watermark }) => watermark)
    return this.#parts.seams.metadata.transaction(async (tx) => {
      await lockChain(tx, row.workspace_id)
      return work(tx, row.memory_id, row.head_watermark, marks)
    })
  }

  /** A server without this content store cannot erase there what was forgotten while it was copied. */
  async #withdraw(row: MemoryRow, versions: readonly VersionRow[]): Promise<void> {
    const { seams, target } = this.#parts
    const marks = versions.map(({ watermark }) => watermark)
    const left = await findWatermarks(seams.metadata, marks)
    const gone = versions.filter(({ watermark }) => !left.has(watermark))
    if (gone.length > 0) await target.delete(gone.map((version) => keyOf(keyFor(row, version))))
  }

  /** One entry a run, also of one that was interrupted. */
  async #record(
    caller: Caller,
    workspaceId: string,
    { total, migrated, errors }: ContentMigrationState,
  ): Promise<void> {
    const unhurried = { ...caller, signal: new AbortController().signal }
    await this.#parts.mutations.run(unhurried, workspaceId, async (mutation) => {
      mutation.record('migrate_content', { target: workspaceId, metadata: { total, migrated, errors } })
    })
  }
}

const keyFor = (row: MemoryRow, { watermark }: VersionRow): VersionKey => ({
  workspaceId: row.workspace_id,
  memoryId: row.memory_id,
  watermark,
})

/** The object has the version's body and all these Cells. */
function holds(body: VersionBody, version: VersionRow, cells: readonly CellRow[]): boolean {
  if (md5(body.content) !== version.content_md5_after) return false
  const hashes = new Set(body.cells.map(md5))
  return cells.every((cell) => hashes.has(cell.text_md5))
}

function count(state: ContentMigrationState, page: readonly MemoryRow[], outcomes: readonly Outcome[]): void {
  for (const [i, outcome] of outcomes.entries()) {
    if (outcome === 'migrated') state.migrated++
    if (outcome === 'skipped') state.skipped++
    if (outcome === 'failed') state.errors++
    if (outcome === 'mismatched') state.mismatches = (state.mismatches ?? 0) + 1
    const memoryId = page[i]?.memory_id
    if ((outcome === 'failed' || outcome === 'untried') && memoryId) state.resume_token ??= memoryId
  }
}
