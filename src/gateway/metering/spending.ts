import { toTimestamp, type Clock } from '../../base/clock.ts'
import type { Queryable } from '../../database/database.ts'
import { optional } from '../../database/rows.ts'
import type { Caller } from '../../platform/caller.ts'
import { isAdmin } from '../access.ts'
import { formatUsd, parseUsd } from '../cost/money.ts'
import type { Budget } from '../model.ts'
import type { Spent } from '../ports.ts'
import type { OrganizationState } from '../state/organization-state.ts'
import { sumSpent, sumSpentOfEach, type Spender } from '../store/aggregates.ts'
import { listBudgets, ownerOf } from '../store/budgets.ts'
import { FOREVER, windowAt } from './windows.ts'

/** A budget and how it stands. Contract: gateway.md 3.5, `cost`. */
export interface BudgetStand {
  scope: Spender['type']
  /** Of the key or user. */
  id?: number
  limit_usd: string
  spent_usd: string
  reserved_usd: string
  window: Budget['window']
  resets_at?: string
}

interface Standing {
  spender: Spender
  budget: Budget
  spent: bigint
  reserved: bigint
}

interface Asked {
  spender: Spender
  /** Absent: what was ever spent. */
  budget: Budget | undefined
}

/** What budgets have left, as records and reservations tell. */
export class Spending {
  readonly #database: Queryable
  readonly #clock: Clock
  readonly #stateOf: (organizationId: number) => OrganizationState | undefined

  constructor(database: Queryable, clock: Clock, stateOf: (organizationId: number) => OrganizationState | undefined) {
    this.#database = database
    this.#clock = clock
    this.#stateOf = stateOf
  }

  /** What keys have spent in the windows of their budgets, or ever. The port `SpentOf`. */
  async spentOf(organizationId: number, keyIds: readonly number[]): Promise<Map<number, Spent>> {
    const budgets = new Map(this.#stateOf(organizationId)?.keys.map(({ id, budget }) => [id, budget]))
    const asked = keyIds.map((id) => ({ spender: { type: 'key' as const, id }, budget: budgets.get(id) }))
    const found = await this.#stand(organizationId, asked)
    return new Map(
      found.map(({ spender, budget, spent, reserved }) => [
        spender.id,
        {
          spent_usd: formatUsd(spent),
          reserved_usd: formatUsd(reserved),
          ...optional('window_resets_at', budget && resetsAt(budget, this.#clock.now())),
        },
      ]),
    )
  }

  /** The budgets that a caller may see: admins all, but of users only those who spend; members their own. */
  async budgetsFor(caller: Caller): Promise<BudgetStand[]> {
    const { id, organization_id: organizationId } = caller.user
    const state = this.#stateOf(organizationId)
    if (!state) return []
    const all = await this.#standings(state, isAdmin(caller) ? undefined : id)
    return all.map(({ spender, budget, spent, reserved }) => ({
      scope: spender.type,
      ...(spender.type !== 'organization' && { id: spender.id }),
      limit_usd: budget.limit_usd,
      spent_usd: formatUsd(spent),
      reserved_usd: formatUsd(reserved),
      window: budget.window,
      ...optional('resets_at', resetsAt(budget, this.#clock.now())),
    }))
  }

  /**
   * What is left, 0 to 1, of the budget of each scope that is nearest to its end: for metrics. One of 0 lets nobody spend
   * and never has anything left: it would hide the others.
   */
  async left(
    states: Iterable<OrganizationState>,
  ): Promise<{ organizationId: number; scope: Spender['type']; ratio: number }[]> {
    const left = []
    for (const state of states) {
      const least = new Map<Spender['type'], number>()
      for (const { spender, budget, spent } of await this.#standings(state, undefined)) {
        const limit = Number(parseUsd(budget.limit_usd) ?? 0n)
        if (limit === 0) continue
        const ratio = Math.max(0, 1 - Number(spent) / limit)
        least.set(spender.type, Math.min(ratio, least.get(spender.type) ?? 1))
      }
      for (const [scope, ratio] of least) left.push({ organizationId: state.id, scope, ratio })
    }
    return left
  }

  async #standings({ id, settings, keys, users }: OrganizationState, only: number | undefined): Promise<Standing[]> {
    const asked: { spender: Spender; budget: Budget }[] = []
    if (settings.budget && only === undefined)
      asked.push({ spender: { type: 'organization', id }, budget: settings.budget })
    for (const user of settings.user_budget ? users.keys() : []) {
      if (settings.user_budget && (only ?? user) === user) {
        asked.push({ spender: { type: 'user', id: user }, budget: settings.user_budget })
      }
    }
    for (const { id: key, userId, budget } of keys) {
      if (budget && (only === undefined || only === userId)) asked.push({ spender: { type: 'key', id: key }, budget })
    }
    const found = await this.#stand(id, asked)
    return found.flatMap(({ spender, budget, spent, reserved }) => {
      const isQuiet = spender.type === 'user' && only === undefined && spent === 0n && reserved === 0n
      return budget && !isQuiet ? [{ spender, budget, spent, reserved }] : []
    })
  }

  async #stand<T extends Asked>(
    organizationId: number,
    asked: readonly T[],
  ): Promise<(T & Omit<Standing, keyof Asked>)[]> {
    if (asked.length === 0) return []
    const now = this.#clock.now()
    const rows = await listBudgets(this.#database, organizationId, now)
    const reserved = new Map(rows.map((row) => [`${row.owner} ${row.period}`, row.reserved]))
    const startOf = ({ budget }: Asked): number => (budget ? windowAt(budget.window, now).startsAt : 0)
    const sums = new Map<string, bigint>()
    for (const type of ['user', 'key'] as const) {
      const ofType = asked.filter(({ spender }) => spender.type === type)
      for (const start of new Set(ofType.map(startOf))) {
        const ids = ofType.filter((each) => startOf(each) === start).map(({ spender }) => spender.id)
        for (const [id, spent] of await sumSpentOfEach(this.#database, organizationId, type, ids, start)) {
          sums.set(`${type}:${id} ${start}`, spent)
        }
      }
    }
    const spentBy = async (each: Asked): Promise<bigint> =>
      each.spender.type === 'organization'
        ? sumSpent(this.#database, organizationId, each.spender, startOf(each))
        : (sums.get(`${ownerOf(each.spender)} ${startOf(each)}`) ?? 0n)
    return Promise.all(
      asked.map(async (each) => ({
        ...each,
        spent: await spentBy(each),
        reserved: reserved.get(`${ownerOf(each.spender)} ${each.budget?.window}`) ?? 0n,
      })),
    )
  }
}

function resetsAt({ window }: Budget, now: number): string | undefined {
  const { endsAt } = windowAt(window, now)
  return endsAt === FOREVER ? undefined : toTimestamp(endsAt)
}
