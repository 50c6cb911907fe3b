import type { Clock } from '../base/clock.ts'
import { errorText } from '../base/errors.ts'
import type { Queryable } from '../database/database.ts'
import { IDEMPOTENCY_TTL_MS } from './mutation.ts'
import type { Orphans } from './orphans.ts'
import type { Logger } from './ports.ts'
import type { Seams } from './seams.ts'
import { purgeAnswers } from './store/idempotency.ts'
import { keyOf } from './store/content/store.ts'
import { purgeVersions } from './store/versions.ts'

const INTERVAL_MS = 5 * 60_000
const DAY_MS = 24 * 3600 * 1000
/** Keys in one row of the outbox. */
const KEYS_AT_ONCE = 1000

/** Removes what has had its time: stored answers, superseded versions past retention, orphaned bodies. Contract: memory.md 9.3. */
export class Sweeper {
  readonly #seams: Seams
  readonly #clock: Clock
  readonly #retentionDays: number
  readonly #log: Logger
  readonly #orphans: Orphans | undefined
  #timer: NodeJS.Timeout | undefined
  #sweeping: Promise<void> | undefined

  /** `orphans` where bodies have a store of their own. */
  constructor(seams: Seams, clock: Clock, retentionDays: number, log: Logger, orphans?: Orphans) {
    this.#seams = seams
    this.#clock = clock
    this.#retentionDays = retentionDays
    this.#log = log
    this.#orphans = orphans
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#sweeping ??= this.sweep()
        .catch((error: unknown) => this.#log.error({ reason: errorText(error) }, 'sweeping failed'))
        .finally(() => (this.#sweeping = undefined))
    }, INTERVAL_MS).unref()
  }

  async sweep(): Promise<void> {
    const now = this.#clock.now()
    const { purged, stored } = await this.#seams.metadata.transaction(async (tx) => {
      await purgeAnswers(tx, now - IDEMPOTENCY_TTL_MS)
      return this.#retentionDays > 0 ? this.#purge(tx, now - this.#retentionDays * DAY_MS) : NOTHING
    })
    if (purged > 0) this.#seams.scrub()
    if (stored.length > 0) await this.#seams.deliver()
    await this.#orphans?.sweep()
  }

  async #purge(tx: Queryable, before: number): ReturnType<typeof purgeVersions> {
    const outcome = await purgeVersions(tx, before)
    const keys = outcome.stored.map((version) =>
      keyOf({ workspaceId: version.workspace_id, memoryId: version.memory_id, watermark: version.watermark }),
    )
    for (let start = 0; start < keys.length; start += KEYS_AT_ONCE) {
      await this.#seams.eraseBodies(tx, { keys: keys.slice(start, start + KEYS_AT_ONCE) })
    }
    return outcome
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    this.#orphans?.stop()
    await this.#sweeping
  }
}

const NOTHING = { purged: 0, stored: [] }
