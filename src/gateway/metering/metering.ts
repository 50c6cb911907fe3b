import type { UsageRecord } from '../model.ts'
import type { GatewayCaller } from '../state/organization-state.ts'

/** Prompt and answer, where an organization keeps them; cut to 256 KiB a side by who takes them. */
export interface Content {
  readonly request: Buffer
  readonly response: Buffer
  /** Whether something was cut off; where it is not said, a side that is as long as may be counts as cut. */
  readonly truncated?: boolean
}

/** Where requests leave their records, off the request path. Contract: gateway.md 7. */
export interface Metering {
  /** @throws GatewayError 503 `metering_unavailable` while queue and spill are full */
  admit(): void
  /**
   * Takes the record of a request that has ended. What its attempts settled (`Reservation`) comes to its cost: the blocks they
   * were paid from go back with it.
   */
  record(record: UsageRecord, content?: Content): void
}

/** Money set aside for one attempt. Its end must be told exactly once. */
export interface Reservation {
  /** The true cost; undefined when it is not known. Nano-dollars. */
  settle(cost: bigint | undefined): void
  release(): void
}

export interface Budgets {
  /**
   * Sets aside from every budget that applies to the caller, all or none; synchronous while the blocks drawn suffice.
   * @param amount nano-dollars; undefined when the price is unknown
   * @throws GatewayError 429 `budget_exceeded`, 403 `price_unknown`, 503 `metering_unavailable` when what is left cannot be
   *   told now
   */
  reserve(caller: GatewayCaller, amount: bigint | undefined): Reservation | Promise<Reservation>
}
