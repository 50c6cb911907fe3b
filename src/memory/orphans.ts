import type { Clock } from '../base/clock.ts'
import type { IdSource } from '../base/ids.ts'
import { SYSTEM_AGENT } from './model.ts'
import type { Mutations } from './mutation.ts'
import type { Logger } from './ports.ts'
import type { Seams } from './seams.ts'
import { listChains } from './store/chains.ts'
import { prefixOf, type ContentStore, type StoredObject } from './store/content/store.ts'
import { releaseLease, takeLease } from './store/outbox.ts'
import { findWatermarks } from './store/versions.ts'
import { workspaceExists } from './store/workspaces.ts'

/** A write is committed or given up long before. */
const AGE_MS = 3600_000
/** Of one sweep; the next one goes on behind them, so that a large store is not read every few minutes. */
const OBJECTS_MAX = 20_000
const LEASE = 'sweep content'
const LEASE_MS = 10 * 60_000

interface Parts {
  store: ContentStore
  seams: Seams
  mutations: Mutations
  clock: Clock
  ids: IdSource
  log: Logger
}

interface Position {
  workspaceId: string
  key?: string | undefined
}

/**
 * Deletes objects that no version has: what was left by writes that ended between their body and their rows. Only in
 * workspaces of this metadata store, of which several may share a bucket. Contract: memory.md 9.3.5.
 */
export class Orphans {
  readonly #parts: Parts
  readonly #stopping = new AbortController()
  /** Where the last sweep stopped; undefined at the beginning. */
  #position: Position | undefined

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Lets a running sweep end after the page at hand. */
  stop(): void {
    this.#stopping.abort()
  }

  /** Does nothing while another process sweeps. @throws ContentError */
  async sweep(): Promise<void> {
    const { seams, clock, ids } = this.#parts
    const holder = ids('proc_')
    const now = clock.now()
    const mine = await seams.metadata.transaction((tx) => takeLease(tx, LEASE, holder, now, now + LEASE_MS))
    if (!mine) return
    try {
      await this.#walk(now - AGE_MS)
    } finally {
      await seams.metadata.transaction((tx) => releaseLease(tx, LEASE, holder))
    }
  }

  async #walk(before: number): Promise<void> {
    const from = this.#position
    this.#position = undefined
    let left = OBJECTS_MAX
    for (const { workspaceId } of await listChains(this.#parts.seams.metadata)) {
      if (from && workspaceId < from.workspaceId) continue
      const after = from?.workspaceId === workspaceId ? from.key : undefined
      const outcome = await this.#sweepWorkspace(workspaceId, before, left, after)
      left -= outcome.scanned
      if (outcome.deleted > 0) await this.#record(workspaceId, outcome)
      if (left > 0 && !this.#stopping.signal.aborted) continue
      this.#position = { workspaceId, key: outcome.last }
      return
    }
  }

  async #sweepWorkspace(
    workspaceId: string,
    before: number,
    most: number,
    after: string | undefined,
  ): Promise<{ scanned: number; deleted: number; last: string | undefined }> {
    const { store, log } = this.#parts
    let scanned = 0
    let deleted = 0
    let last: string | undefined
    for await (const page of store.list(prefixOf(workspaceId), after)) {
      const orphans = await this.#orphansOf(page.filter(({ storedAt }) => storedAt <= before))
      if (orphans.length > 0) {
        await store.delete(orphans)
        log.info({ workspace: workspaceId, deleted: orphans.length }, 'bodies without a version were deleted')
      }
      scanned += page.length
      deleted += orphans.length
      last = page.at(-1)?.key
      if (scanned >= most || this.#stopping.signal.aborted) break
    }
    return { scanned, deleted, last }
  }

  async #orphansOf(objects: readonly StoredObject[]): Promise<string[]> {
    const watermarkOf = (key: string): string => key.slice(key.lastIndexOf('/') + 1)
    const keys = objects.map(({ key }) => key)
    const known = await findWatermarks(this.#parts.seams.metadata, keys.map(watermarkOf))
    return keys.filter((key) => !known.has(watermarkOf(key)))
  }

  /** The ledger of a deleted workspace is closed: the log alone tells of what was left there. */
  async #record(workspaceId: string, { scanned, deleted }: { scanned: number; deleted: number }): Promise<void> {
    const { seams, mutations, ids } = this.#parts
    if (!(await workspaceExists(seams.metadata, workspaceId))) return
    const caller = {
      requestId: ids('req_'),
      startedAt: performance.now(),
      agentId: SYSTEM_AGENT,
      signal: new AbortController().signal,
    }
    await mutations.run(caller, workspaceId, async (mutation) => {
      mutation.record('orphan_gc', { target: workspaceId, metadata: { scanned, deleted } })
    })
  }
}
