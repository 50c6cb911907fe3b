import type { Clock } from '../base/clock.ts'
import { errorText } from '../base/errors.ts'
import { IDEMPOTENCY_TTL_MS } from './mutation.ts'
import type { Logger } from './ports.ts'
import type { Seams } from './seams.ts'
import { purgeAnswers } from './store/idempotency.ts'
import { purgeVersions } from './store/versions.ts'

const INTERVAL_MS = 5 * 60_000
const DAY_MS = 24 * 3600 * 1000

/** Removes what has had its time: stored answers, and superseded versions past retention. Contract: memory.md 9.3.7. */
export class Sweeper {
  readonly #seams: Seams
  readonly #clock: Clock
  readonly #retentionDays: number
  readonly #log: Logger
  #timer: NodeJS.Timeout | undefined

  constructor(seams: Seams, clock: Clock, retentionDays: number, log: Logger) {
    this.#seams = seams
    this.#clock = clock
    this.#retentionDays = retentionDays
    this.#log = log
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.sweep().catch((error: unknown) => this.#log.error({ reason: errorText(error) }, 'sweeping failed'))
    }, INTERVAL_MS).unref()
  }

  async sweep(): Promise<void> {
    const now = this.#clock.now()
    const purged = await this.#seams.metadata.transaction(async (tx) => {
      await purgeAnswers(tx, now - IDEMPOTENCY_TTL_MS)
      return this.#retentionDays > 0 ? purgeVersions(tx, now - this.#retentionDays * DAY_MS) : 0
    })
    if (purged > 0) this.#seams.scrub()
  }

  close(): void {
    clearInterval(this.#timer)
  }
}
