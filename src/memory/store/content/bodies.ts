import { errorText } from '../../../base/errors.ts'
import { md5 } from '../../../base/hash.ts'
import type { Database } from '../../../database/database.ts'
import { MemoryError } from '../../errors.ts'
import type { Logger } from '../../ports.ts'
import { findLivingCells, type CellRow } from '../cells.ts'
import { findStoredHeads, findWatermarks, type VersionRow } from '../versions.ts'
import { keyOf, type ContentStore, type VersionKey } from './store.ts'
import { decodeVersion, encodeVersion, type VersionBody } from './version-object.ts'

/** What tells the body of a version: `content_bytes` is set once it was put into a content store. */
export type VersionRef = Pick<VersionRow, 'memory_id' | 'watermark' | 'content' | 'content_bytes' | 'content_md5_after'>

/** What tells the text of a Cell. */
export type CellText = Pick<CellRow, 'cell_no' | 'memory_id' | 'seq' | 'text' | 'text_bytes' | 'text_md5'>

/** A Cell with its text, wherever that lies. */
export type Cell<T extends CellText = CellRow> = T & { text: string }

/** Texts that are nowhere any more: refused with a 500, or left out. */
type Lost = 'refuse' | 'skip'

/**
 * The one way to read bodies: from the content store where they were put there, checked by MD5, else from the metadata row.
 * Not within a snapshot or a transaction, which wait for nothing but their own statements: read the rows there, and their
 * bodies after it. Contract: memory.md 9.1.
 */
export class Bodies {
  readonly #db: Database
  readonly #store: ContentStore | undefined
  readonly #log: Logger

  /** Without a store (driver `none`) bodies stay in the metadata rows. */
  constructor(db: Database, store: ContentStore | undefined, log: Logger) {
    this.#db = db
    this.#store = store
    this.#log = log
  }

  /** New bodies go to a store of their own. */
  get areApart(): boolean {
    return this.#store !== undefined
  }

  /** Stores the body of a version with the texts of all its Cells, before its rows are committed. */
  async put(version: VersionKey, body: VersionBody, signal?: AbortSignal): Promise<void> {
    await this.#ask(async (store) => store.put(keyOf(version), encodeVersion(body), signal), signal)
  }

  /** Takes back the body of a version that was refused. What cannot be deleted now is left to the sweeper. */
  async discard(version: VersionKey): Promise<void> {
    await this.#store?.delete([keyOf(version)]).catch((error: unknown) => {
      this.#log.warn({ reason: errorText(error) }, 'the body of a refused write stays until it is swept')
    })
  }

  /**
   * Bodies of versions of a workspace by watermark, whatever their number. One whose version was erased meanwhile is left out.
   * @throws internal_error 500 with `details.reason` content_lost, content_damaged or content_unavailable.
   */
  async contents(
    workspaceId: string,
    versions: readonly VersionRef[],
    signal?: AbortSignal,
  ): Promise<Map<string, string>> {
    const apart = versions.filter(isApart)
    const objects = await this.#objects(
      apart.map((version) => ({ workspaceId, memoryId: version.memory_id, watermark: version.watermark })),
      signal,
    )
    const found = new Map<string, string>()
    for (const version of versions) {
      const content = choose(objects.get(version.watermark)?.content, version.content, version.content_md5_after)
      if (content !== undefined) found.set(version.watermark, content)
    }
    const missing = versions.filter(({ watermark }) => !found.has(watermark))
    await this.#refuseLostVersions(missing, objects)
    return found
  }

  /** Cells with their texts, in the order given. A Cell that was removed meanwhile is left out. @throws as `contents`. */
  async texts<T extends CellText>(
    cells: readonly T[],
    lost: Lost = 'refuse',
    signal?: AbortSignal,
  ): Promise<Cell<T>[]> {
    const apart = new Set(cells.filter(isCellApart).map((cell) => cell.memory_id))
    if (apart.size === 0) return cells.filter(hasText)
    const heads = await findStoredHeads(this.#db, [...apart])
    const objects = await this.#objects([...heads.values()], signal)
    const finders = new Map([...objects].map(([watermark, body]) => [watermark, textFinder(body)]))
    const found = cells.flatMap((cell): Cell<T>[] => {
      const stored = finders.get(heads.get(cell.memory_id)?.watermark ?? '')?.(cell)
      const text = choose(stored, cell.text, cell.text_md5)
      return text === undefined ? [] : [{ ...cell, text }]
    })
    if (lost === 'refuse' && found.length < cells.length) {
      const known = new Set(found.map((cell) => cell.cell_no))
      const missing = cells.filter((cell) => !known.has(cell.cell_no))
      const living = await findLivingCells(
        this.#db,
        missing.map((cell) => cell.cell_no),
      )
      const first = missing.find((cell) => living.has(cell.cell_no))
      const watermark = heads.get(first?.memory_id ?? '')?.watermark ?? 'its head'
      if (first) throw this.#lost(first.memory_id, watermark, objects.has(watermark))
    }
    return found
  }

  /** The head of a Memory and all its Cells, from one object. Undefined when it was erased meanwhile. @throws as `contents`. */
  async head(
    workspaceId: string,
    version: VersionRef,
    cells: readonly CellRow[],
    signal?: AbortSignal,
  ): Promise<{ content: string; cells: Cell[] } | undefined> {
    const key = { workspaceId, memoryId: version.memory_id, watermark: version.watermark }
    const objects = await this.#objects(isApart(version) ? [key] : [], signal)
    const body = objects.get(version.watermark)
    const content = choose(body?.content, version.content, version.content_md5_after)
    const textOf = body && textFinder(body)
    const texts = cells.flatMap((cell) => {
      const text = choose(textOf?.(cell), cell.text, cell.text_md5)
      return text === undefined ? [] : [{ ...cell, text }]
    })
    if (content !== undefined && texts.length === cells.length) return { content, cells: texts }
    await this.#refuseLostVersions([version], objects)
    return undefined
  }

  async #objects(keys: readonly VersionKey[], signal?: AbortSignal): Promise<Map<string, VersionBody>> {
    const found = new Map<string, VersionBody>()
    if (keys.length === 0 || !this.#store) return found
    const bodies = await this.#ask((store) => store.get(keys.map(keyOf), signal), signal)
    for (const version of keys) {
      const bytes = bodies.get(keyOf(version))
      const body = bytes && decodeVersion(bytes)
      if (bytes) found.set(version.watermark, body ?? DAMAGED)
      if (!body)
        this.#log.warn(
          { key: keyOf(version) },
          bytes ? 'a body in the content store is damaged' : 'a body is not in the content store',
        )
    }
    return found
  }

  /** One that is not there any more was erased since its row was read, and is no fault. */
  async #refuseLostVersions(
    versions: readonly Pick<VersionRef, 'memory_id' | 'watermark'>[],
    objects: ReadonlyMap<string, VersionBody>,
  ): Promise<void> {
    if (versions.length === 0) return
    const left = await findWatermarks(
      this.#db,
      versions.map(({ watermark }) => watermark),
    )
    const lost = versions.find(({ watermark }) => left.has(watermark))
    if (lost) throw this.#lost(lost.memory_id, lost.watermark, objects.has(lost.watermark))
  }

  #lost(memoryId: string, watermark: string, isThere: boolean): MemoryError {
    const reason = isThere ? 'content_damaged' : 'content_lost'
    const store = this.#store?.location ?? 'none: set storage.content_driver to where the bodies are'
    this.#log.error({ memory: memoryId, watermark, reason, store }, 'a body cannot be read')
    const state = isThere ? 'is damaged in' : 'is not in'
    return new MemoryError('internal_error', `the body of ${memoryId} at ${watermark} ${state} the content store`, {
      reason,
    })
  }

  async #ask<T>(work: (store: ContentStore) => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (!this.#store) throw new Error('there is no content store')
    try {
      return await work(this.#store)
    } catch (error) {
      signal?.throwIfAborted()
      this.#log.error({ reason: errorText(error) }, 'the content store failed')
      throw new MemoryError('internal_error', 'the content store cannot be used now: see the log of the server', {
        reason: 'content_unavailable',
      })
    }
  }
}

/** Of an object that is there, but cannot be read: no body that says something has its MD5. */
const DAMAGED: VersionBody = { content: '', cells: [] }

const isApart = ({ content, content_bytes: bytes }: Pick<VersionRef, 'content' | 'content_bytes'>): boolean =>
  content === null || bytes !== null

const isCellApart = ({ text, text_bytes: bytes }: CellText): boolean => text === null || bytes !== null

const hasText = <T extends CellText>(cell: T): cell is Cell<T> => cell.text !== null

/** Finds a Cell's text by where it stands, else by its hash: the Cell may have moved since its row was read. */
function textFinder({ cells }: VersionBody): (cell: CellText) => string | undefined {
  let byHash: Map<string, string> | undefined
  return ({ seq, text_md5: hash }) => {
    const text = cells[seq]
    if (text !== undefined && md5(text) === hash) return text
    byHash ??= new Map(cells.map((each) => [md5(each), each]))
    return byHash.get(hash)
  }
}

/** The stored text when it is the one meant; else the row's. */
function choose(stored: string | undefined, inRow: string | null, hash: string): string | undefined {
  if (stored === undefined) return inRow ?? undefined
  if (md5(stored) === hash) return stored
  return inRow !== null && md5(inRow) === hash ? inRow : undefined
}
