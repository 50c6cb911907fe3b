import type { OrganizationState } from '../../../src/gateway/state/organization-state.ts'
import type { Spender } from '../../../src/gateway/store/aggregates.ts'
import { ProcessBudgets } from '../../../src/gateway/metering/budgets.ts'
import { RequestMeter, type MeterParts } from '../../../src/gateway/metering/meter.ts'
import { Processes } from '../../../src/gateway/metering/processes.ts'
import { Retention } from '../../../src/gateway/metering/retention.ts'

export interface MeteringParts extends Omit<MeterParts, 'budgets' | 'processId'> {
  /** Of all organizations. */
  states: () => Iterable<OrganizationState>
  /** Told of every call that a budget refuses. */
  onExceeded?: (organizationId: number, spender: Spender) => void
  drawTimeoutMs?: number
}

/** What meters the calls of this process. Contract: gateway.md 7. */
export class GatewayMetering {
  /** The servers over the same database. */
  readonly processes: Processes
  readonly budgets: ProcessBudgets
  readonly meter: RequestMeter
  readonly retention: Retention

  constructor(parts: MeteringParts) {
    const { database, clock, log, states } = parts
    this.processes = new Processes(database, clock, log)
    this.budgets = new ProcessBudgets({ ...parts, processes: this.processes })
    this.meter = new RequestMeter({ ...parts, budgets: this.budgets, processId: this.processes.id })
    this.retention = new Retention(database, clock, log, states)
  }

  /** @throws when the database does not answer */
  async start(): Promise<void> {
    await this.processes.start()
    await this.meter.start()
    this.retention.start()
  }

  /** When no call is under way any more: all is written, and what was set aside goes back. @throws when the database does not answer */
  async close(): Promise<void> {
    await this.retention.close()
    await this.meter.close()
    await this.processes.close()
  }
}
