import type { Clock } from '../../base/clock.ts'
import type { Config } from '../../config/load.ts'
import type { Logger } from '../../platform/ports.ts'
import type { Platform } from '../../platform/service.ts'
import type { OrganizationState } from '../state/organization-state.ts'
import type { Spender } from '../store/aggregates.ts'
import { ProcessBudgets } from './budgets.ts'
import { RequestMeter } from './meter.ts'
import { Processes } from './processes.ts'
import { Retention } from './retention.ts'
import { Spending } from './spending.ts'

interface BookkeepingParts {
  config: Config
  platform: Platform
  clock: Clock
  log: Logger
  stateOf: (organizationId: number) => OrganizationState | undefined
  states: () => Iterable<OrganizationState>
  /** Told of every refusal for want of money. */
  onExceeded: (organizationId: number, spender: Spender) => void
}

/** What counts usage and money, as one process does it. Contract: gateway.md 7. */
export class Bookkeeping {
  readonly processes: Processes
  readonly spending: Spending
  readonly budgets: ProcessBudgets
  readonly meter: RequestMeter
  readonly #retention: Retention

  constructor({ config, platform, clock, log, stateOf, states, onExceeded }: BookkeepingParts) {
    const { gateway, storage } = config
    const { database, sealer } = platform
    this.processes = new Processes(database, clock, log)
    this.spending = new Spending(database, clock, stateOf)
    this.budgets = new ProcessBudgets({ database, clock, log, processes: this.processes, onExceeded })
    this.meter = new RequestMeter({
      database,
      clock,
      log,
      sealer,
      budgets: this.budgets,
      processId: this.processes.id,
      dataDir: storage.data_dir,
      flushIntervalMs: gateway.flush_interval,
      flushRows: gateway.flush_rows,
      onFull: gateway.on_metering_full,
    })
    this.#retention = new Retention(database, clock, log, states)
  }

  async start(): Promise<void> {
    await this.processes.start()
    await this.meter.start()
    this.#retention.start()
  }

  /** Writes what is to be written. */
  async close(): Promise<void> {
    // What is deleted may take its time: usage must be safe before whoever waits for the end loses patience.
    await Promise.all([this.meter.close(), this.#retention.close()])
    await this.processes.close()
  }
}
