import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from '../../base/clock.ts'
import type { Database } from '../../database/database.ts'
import type { Logger } from '../../platform/ports.ts'
import type { OrganizationState } from '../state/organization-state.ts'
import { Ticker } from '../state/ticker.ts'
import { DAY, deleteAggregatesBefore, HOUR, MINUTE } from '../store/aggregates.ts'
import { BUDGETS_KEPT_MS, deleteBudgetsBefore } from '../store/budgets.ts'
import { deleteContentsBefore } from '../store/contents.ts'
import { deleteUsageBefore } from '../store/usage.ts'
import { floor, keptFrom } from './ranges.ts'

/** Contents are gone within the hour when an organization stops keeping them. */
const EVERY_MS = 10 * 60_000
/** Rows that one transaction deletes: it holds up whoever else writes. */
const STEP = 200

/** Deletes what was kept long enough. Contract: gateway.md 2.8, 7.1, 9. */
export class Retention {
  readonly #database: Database
  readonly #clock: Clock
  readonly #states: () => Iterable<OrganizationState>
  readonly #ticker: Ticker
  #isClosed = false

  constructor(database: Database, clock: Clock, log: Logger, states: () => Iterable<OrganizationState>) {
    this.#database = database
    this.#clock = clock
    this.#states = states
    this.#ticker = new Ticker('deleting old usage', EVERY_MS, () => this.run(), log)
  }

  start(): void {
    this.#ticker.start()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#ticker.close()
  }

  async run(): Promise<void> {
    const database = this.#database
    const now = this.#clock.now()
    for (const { id, settings } of this.#states()) {
      const days = floor(now, DAY) - settings.usage_retention_days * DAY
      const contents = settings.content_logging ? now - settings.content_retention_days * DAY : Infinity
      await this.#inSteps(() => deleteUsageBefore(database, id, days, STEP))
      const gone = await this.#inSteps(() =>
        deleteContentsBefore(database, id, Math.min(contents, Number.MAX_SAFE_INTEGER), STEP),
      )
      if (gone > 0) database.scrub()
      await this.#inSteps(() => deleteAggregatesBefore(database, id, MINUTE, keptFrom(MINUTE, now) - HOUR, STEP))
      await this.#inSteps(() => deleteAggregatesBefore(database, id, HOUR, keptFrom(HOUR, now) - DAY, STEP))
    }
    await deleteBudgetsBefore(database, now - BUDGETS_KEPT_MS)
  }

  /** How many rows went. */
  async #inSteps(step: () => Promise<number>): Promise<number> {
    let gone = 0
    while (!this.#isClosed) {
      const deleted = await step()
      gone += deleted
      if (deleted < STEP) break
      await nextTurn()
    }
    return gone
  }
}
