import type { Clock } from '../../base/clock.ts'
import { errorText } from '../../base/errors.ts'
import { KeyedMutex } from '../../base/keyed-mutex.ts'
import type { Database, Queryable } from '../../database/database.ts'
import { endBefore } from '../../http/deadline.ts'
import type { Logger } from '../../platform/ports.ts'
import { parseUsd } from '../cost/money.ts'
import { GatewayError } from '../errors.ts'
import type { Budget } from '../model.ts'
import type { GatewayCaller, OpenKey } from '../state/organization-state.ts'
import type { Spender } from '../store/aggregates.ts'
import { drawBlock, openBudget, ownerOf, returnBlock, spentIn, type Spend } from '../store/budgets.ts'
import { hasProcess } from '../store/processes.ts'
import { Account } from './account.ts'
import type { Budgets, Reservation } from './metering.ts'
import { exceeded, refuseUnknown } from './budget-refusals.ts'
import type { Processes } from './processes.ts'
import { windowAt } from './windows.ts'

/** A budget that applies to a caller. */
interface Demand {
  readonly organizationId: number
  readonly spender: Spender
  readonly owner: string
  readonly budget: Budget
  readonly limit: bigint
}

/** Money to be set aside in time. */
interface Wanted {
  readonly demands: readonly Demand[]
  /** One of each demand. */
  readonly accounts: readonly Account[]
  readonly amount: bigint
  readonly deadline: AbortSignal
}

/** What of an account goes back with the records that were paid from it. */
interface Return {
  readonly account: Account
  readonly cost: bigint
  readonly amount: bigint
}

interface BudgetsParts {
  database: Database
  clock: Clock
  log: Logger
  processes: Processes
  /** Told of every refusal for want of money. */
  onExceeded?: (organizationId: number, spender: Spender) => void
  /** How long a call waits until money is set aside, ms. */
  drawTimeoutMs?: number
}

const DRAW_TIMEOUT_MS = 5000
const NOTHING: Reservation = { settle: () => undefined, release: () => undefined }

/**
 * Money set aside for calls. This process draws blocks from the shared budgets, and calls are paid from them without a
 * statement; records that are written turn blocks into money spent. Contract: gateway.md 7.3.
 */
export class ProcessBudgets implements Budgets {
  /** Records of which nobody knows whether a transaction that failed, or took too long, wrote them: by their ids. */
  readonly unsettled = new Set<string>()
  readonly #parts: BudgetsParts
  /** By owner; each in the windows that it was asked for. */
  readonly #accounts = new Map<string, Account[]>()
  readonly #turns = new KeyedMutex()
  /** The limits of budgets, parsed once. */
  readonly #limits = new WeakMap<Budget, bigint>()
  /** Of the latest caller with a key. */
  readonly #demands = new WeakMap<OpenKey, { readonly caller: GatewayCaller; readonly demands: readonly Demand[] }>()

  constructor(parts: BudgetsParts) {
    this.#parts = parts
    parts.processes.onLost(() => {
      for (const account of [...this.#accounts.values()].flat()) account.lose()
    })
    parts.processes.onBeat(() => this.#returnIdle())
  }

  reserve(caller: GatewayCaller, amount: bigint | undefined): Reservation | Promise<Reservation> {
    const demands = this.#demandsOf(caller)
    if (demands.length === 0 || amount === 0n) return NOTHING
    if (amount === undefined) {
      refuseUnknown(demands)
      return NOTHING
    }
    const { clock, processes } = this.#parts
    const now = clock.now()
    const accounts = demands.map((demand) => this.#accountOf(demand, now))
    if (processes.holds(now) && demands.every(({ limit }, i) => accounts[i]?.covers(amount, limit))) {
      for (const account of accounts) account.take(amount, now)
      return this.#held(accounts, amount)
    }
    return this.#reserveSoon(demands, accounts, amount)
  }

  /** What of the blocks these spends, of records of this process, use up; to be given back in their transaction. */
  prepare(spends: readonly Spend[]): Return[] {
    const costs = new Map<Account, bigint>()
    for (const { owner, day, cost } of spends) {
      for (const account of this.#accounts.get(owner) ?? []) {
        if (account.isAt(day)) costs.set(account, (costs.get(account) ?? 0n) + cost)
      }
    }
    return [...costs].map(([account, cost]) => ({ account, cost, amount: account.usedBy(cost) }))
  }

  async write(tx: Queryable, returns: readonly Return[]): Promise<void> {
    const { processes } = this.#parts
    for (const { account, amount } of returns) {
      if (amount > 0n) await returnBlock(tx, processes.id, account.window, amount)
    }
  }

  /** The transaction is durable. */
  commit(returns: readonly Return[]): void {
    for (const { account, cost, amount } of returns) account.spend(cost, amount)
  }

  /** Gives back the blocks that nobody uses, and forgets windows that are over. */
  async #returnIdle(): Promise<void> {
    const now = this.#parts.clock.now()
    for (const [owner, accounts] of this.#accounts) {
      for (const account of accounts) {
        if (account.isIdle(now)) await this.#turns.run(owner, () => this.#giveBack(account, account.forget(now)))
      }
      // A call may have opened another window meanwhile.
      const known = this.#accounts.get(owner) ?? []
      const left = known.filter((account) => !account.isIdle(now) || account.window.endsAt > now)
      if (left.length === 0) this.#accounts.delete(owner)
      else if (left.length < known.length) this.#accounts.set(owner, left)
    }
  }

  #demandsOf(caller: GatewayCaller): readonly Demand[] {
    const { key, state, userId } = caller
    const known = key && this.#demands.get(key)
    if (known?.caller.state === state && known.caller.userId === userId) return known.demands
    const demands = this.#findDemands(caller)
    if (key) this.#demands.set(key, { caller, demands })
    return demands
  }

  /** Those that apply, the narrowest first: everybody asks in this order. */
  #findDemands({ state, userId, key }: GatewayCaller): Demand[] {
    const { id: organizationId, settings } = state
    const demands: Demand[] = []
    const add = (type: Spender['type'], id: number | undefined, budget: Budget | null | undefined): void => {
      if (!budget || id === undefined) return
      const spender = { type, id }
      demands.push({ organizationId, spender, owner: ownerOf(spender), budget, limit: this.#limitOf(budget) })
    }
    if (!settings.cost_tracking) return demands
    add('key', key?.id, key?.budget)
    add('user', userId, settings.user_budget)
    add('organization', organizationId, settings.budget)
    return demands
  }

  #limitOf(budget: Budget): bigint {
    let limit = this.#limits.get(budget)
    if (limit === undefined) this.#limits.set(budget, (limit = parseUsd(budget.limit_usd) ?? 0n))
    return limit
  }

  #accountOf({ organizationId, spender, owner, budget: { window: period } }: Demand, now: number): Account {
    const known = this.#accounts.get(owner)
    const found = known?.find((account) => account.window.period === period && account.isAt(now))
    if (found) return found
    const account = new Account(organizationId, spender, { owner, ...windowAt(period, now) }, now)
    this.#accounts.set(owner, [...(known ?? []), account])
    return account
  }

  #held(accounts: readonly Account[], amount: bigint): Reservation {
    let open = true
    const end = (cost: bigint): void => {
      if (!open) return
      open = false
      const now = this.#parts.clock.now()
      for (const account of accounts) account.settle(amount, cost, now)
    }
    return { settle: (cost = 0n) => end(cost), release: () => end(0n) }
  }

  /** @throws GatewayError also 503 `metering_unavailable` when the database does not say in time what is left */
  async #reserveSoon(demands: readonly Demand[], accounts: readonly Account[], amount: bigint): Promise<Reservation> {
    const unavailable = (): GatewayError =>
      new GatewayError('metering_unavailable', 'the budget cannot be checked now: try again soon')
    const deadline = AbortSignal.timeout(this.#parts.drawTimeoutMs ?? DRAW_TIMEOUT_MS)
    const work = this.#takeAll({ demands, accounts, amount, deadline })
    try {
      return await endBefore(deadline, work, unavailable)
    } catch (error) {
      // What came too late is nobody's.
      void work.then(
        (late) => late.release(),
        () => undefined,
      )
      if (error instanceof GatewayError) throw error
      this.#parts.log.error({ reason: errorText(error) }, 'a budget could not be drawn from')
      throw unavailable()
    }
  }

  /** All or none. Whoever waited for a turn until the deadline asks the database for nothing: the others wait behind. */
  async #takeAll({ demands, accounts, amount, deadline }: Wanted): Promise<Reservation> {
    const { processes, clock } = this.#parts
    if (!processes.holds(clock.now())) await processes.renew()
    const taken: Account[] = []
    try {
      for (const [i, account] of accounts.entries()) {
        const demand = demands[i]
        const take = async (): Promise<void> => {
          deadline.throwIfAborted()
          if (demand) await this.#take(demand, account, amount)
        }
        await this.#turns.run(account.window.owner, take)
        taken.push(account)
      }
    } catch (error) {
      for (const account of taken) account.settle(amount, 0n, clock.now())
      throw error
    }
    return this.#held(accounts, amount)
  }

  async #take({ organizationId, spender, limit }: Demand, account: Account, amount: bigint): Promise<void> {
    const { clock, database, onExceeded } = this.#parts
    if (limit < account.limit) account.isExcessive = true
    account.limit = limit
    if (account.isExcessive) await this.#giveBack(account, account.giveUp())
    while (!account.covers(amount, limit)) {
      const need = amount - account.free()
      const usual = limit / 100n
      const drawn =
        (usual > need && (await this.#draw(account, usual, limit))) || (await this.#draw(account, need, limit))
      if (drawn) continue
      onExceeded?.(organizationId, spender)
      const isHeld = (await spentIn(database, account.window)) + account.unwritten + amount <= limit
      throw exceeded(spender, account.window, { amount, isHeld }, clock.now())
    }
    account.take(amount, clock.now())
  }

  async #draw(account: Account, block: bigint, limit: bigint): Promise<boolean> {
    const { database, processes } = this.#parts
    const drawn = await database.transaction(async (tx) => {
      if (!(await hasProcess(tx, processes.id))) return undefined
      if (!account.isOpen) await openBudget(tx, account.organizationId, account.spender, account.window)
      return drawBlock(tx, processes.id, account.window, block, limit)
    })
    if (drawn === undefined) {
      await processes.renew()
      return this.#draw(account, block, limit)
    }
    account.isOpen = true
    if (drawn) {
      account.add(block)
      account.isExcessive = false
    }
    return drawn
  }

  async #giveBack(account: Account, amount: bigint): Promise<void> {
    const { database, processes } = this.#parts
    if (amount === 0n) return
    try {
      await database.transaction((tx) => returnBlock(tx, processes.id, account.window, amount))
    } catch (error) {
      account.add(amount)
      throw error
    }
  }
}
