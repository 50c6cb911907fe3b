import type { Spender } from '../store/aggregates.ts'
import type { BudgetWindow } from '../store/budgets.ts'

const IDLE_MS = 10_000
/** Calls that were paid may wait so long for their record to be written. */
const UNWRITTEN_MS = 10 * 60_000

/** What this process holds of one budget in one window. Amounts are nano-dollars. */
export class Account {
  readonly organizationId: number
  readonly spender: Spender
  readonly window: BudgetWindow
  /** Whether the shared row is there. */
  isOpen = false
  limit = 0n
  /** Drawn under a larger limit: only what can be drawn anew may be used. */
  isExcessive = false
  /** The block: set aside in the database for this process. */
  #drawn = 0n
  /** Of calls under way. */
  #reserved = 0n
  /** Of calls that ended and whose records are not written yet. */
  #settled = 0n
  #usedAt: number

  constructor(organizationId: number, spender: Spender, window: BudgetWindow, now: number) {
    this.organizationId = organizationId
    this.spender = spender
    this.window = window
    this.#usedAt = now
  }

  /** Below 0 when calls cost more than was set aside for them. */
  free(): bigint {
    return this.#drawn - this.#reserved - this.#settled
  }

  get unwritten(): bigint {
    return this.#settled
  }

  covers(amount: bigint, limit: bigint): boolean {
    return !this.isExcessive && limit >= this.limit && this.free() >= amount
  }

  take(amount: bigint, now: number): void {
    this.#reserved += amount
    this.#usedAt = now
  }

  settle(amount: bigint, cost: bigint, now: number): void {
    this.#reserved -= amount
    this.#settled += cost
    this.#usedAt = now
  }

  add(block: bigint): void {
    this.#drawn += block
  }

  /** What of the block goes back when so much is spent: calls under way keep what covers them. */
  usedBy(cost: bigint): bigint {
    return atLeastZero(least(cost, this.#settled, this.#drawn - this.#reserved))
  }

  /** So much was spent in the database, and so much of the block given back. */
  spend(cost: bigint, returned: bigint): void {
    this.#drawn = atLeastZero(this.#drawn - returned)
    this.#settled = atLeastZero(this.#settled - cost)
  }

  /** Lets go of what nobody uses, and says how much that was. */
  giveUp(): bigint {
    const free = atLeastZero(this.free())
    this.#drawn -= free
    return free
  }

  /** Lets go of the whole block, and says how much that was. */
  lose(): bigint {
    const drawn = this.#drawn
    this.#drawn = 0n
    this.isOpen = false
    return drawn
  }

  /** As `lose`, of a window that nothing happens in any more; nothing when something just did. */
  forget(now: number): bigint {
    if (!this.isIdle(now)) return 0n
    this.#settled = 0n
    return this.lose()
  }

  isAt(time: number): boolean {
    return time >= this.window.startsAt && time < this.window.endsAt
  }

  isIdle(now: number): boolean {
    return this.#reserved === 0n && this.#usedAt < now - (this.#settled === 0n ? IDLE_MS : UNWRITTEN_MS)
  }
}

const atLeastZero = (amount: bigint): bigint => (amount > 0n ? amount : 0n)
const least = (...amounts: bigint[]): bigint => amounts.reduce((a, b) => (a < b ? a : b))
