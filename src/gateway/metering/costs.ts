import type { Clock } from '../../base/clock.ts'
import type { Queryable } from '../../database/database.ts'
import type { Caller } from '../../platform/caller.ts'
import { invalidRequest } from '../../platform/errors.ts'
import { formatUsd } from '../cost/money.ts'
import type { ModelRow, ModelTable, Prices } from '../cost/model-table.ts'
import type { OrganizationState } from '../state/organization-state.ts'
import { DAY } from '../store/aggregates.ts'
import { ownerOnly, rangeOf, type SummaryQuery } from './analytics.ts'
import { piecesOf } from './ranges.ts'
import type { BudgetStand, Spending } from './spending.ts'
import { addRow, addSums, costUsd, groupOf, noSums, readUsage, type Sums } from './summary.ts'
import { FOREVER } from './windows.ts'

const GROUPS_MAX = 10_000

export interface CostAnswer {
  enabled: boolean
  currency: 'USD'
  total_usd: string | null
  estimated_usd: string | null
  unknown_price_requests: number
  no_usage_requests: number
  breakdown: { group: object; cost_usd: string | null; requests: number }[]
  budgets: BudgetStand[]
  model_table_version: string
}

export interface CostsParts {
  database: Queryable
  clock: Clock
  spending: Spending
  table: ModelTable
  stateOf: (organizationId: number) => OrganizationState | undefined
}

/** What calls cost. Contract: gateway.md 3.5, 7.2. */
export class Costs {
  readonly #parts: CostsParts

  constructor(parts: CostsParts) {
    this.#parts = parts
  }

  /**
   * Of all time unless asked otherwise; ranges are widened as those of analytics. Nothing is known where costs are not
   * tracked.
   * @throws invalid_request 400 for a range that is none
   */
  async read(caller: Caller, { from = 0, to = FOREVER, filter, groupBy }: SummaryQuery): Promise<CostAnswer> {
    const { database, clock, spending, table, stateOf } = this.#parts
    const { organization_id: organizationId } = caller.user
    const range = rangeOf(from, to, clock.now())
    const pieces = piecesOf(range.from, range.to, DAY)
    const groups = new Map<string, Sums & { group: object }>()
    for await (const row of readUsage(database, organizationId, pieces, { ...filter, ...ownerOnly(caller) })) {
      const group = groupOf(row, groupBy)
      const key = JSON.stringify(group)
      let entry = groups.get(key)
      if (!entry) {
        if (groups.size === GROUPS_MAX)
          throw invalidRequest(`more than ${GROUPS_MAX} groups: ask for fewer`, 'group_by')
        groups.set(key, (entry = { ...noSums(), group }))
      }
      addRow(entry, row)
    }
    const totals = noSums()
    for (const entry of groups.values()) addSums(totals, entry)
    const enabled = stateOf(organizationId)?.settings.cost_tracking ?? true
    const known = (sums: Sums): string | null => (enabled ? costUsd(sums) : null)
    return {
      enabled,
      currency: 'USD',
      total_usd: known(totals),
      estimated_usd: enabled ? formatUsd(totals.estimated_nano) : null,
      unknown_price_requests: totals.unknown_price,
      no_usage_requests: totals.no_usage,
      breakdown: [...groups.values()].map((sums) => ({
        group: sums.group,
        cost_usd: known(sums),
        requests: sums.requests,
      })),
      budgets: await spending.budgetsFor(caller),
      model_table_version: table.version,
    }
  }

  /** The prices in force. */
  prices(): { version: string; prices: object[] } {
    const { table } = this.#parts
    return { version: table.version, prices: table.rows().filter(hasPrice).map(toPrice) }
  }
}

const hasPrice = ({ usd_per_million, tiers, usd_per_request }: ModelRow): boolean =>
  usd_per_million !== undefined || tiers !== undefined || usd_per_request !== undefined

const toPrice = ({ provider, model, usd_per_million, tiers, usd_per_request }: ModelRow): object => ({
  provider,
  model,
  ...(usd_per_million && { usd_per_million: inUsd(usd_per_million) }),
  ...(tiers && {
    tiers: tiers.map((tier) => ({ ...tier, usd_per_million: inUsd(tier.usd_per_million) })),
  }),
  ...(usd_per_request !== undefined && { usd_per_request: formatUsd(usd_per_request) }),
})

const inUsd = (prices: Prices): Record<string, string> =>
  Object.fromEntries(
    Object.entries(prices).flatMap(([name, nano]) => (nano === undefined ? [] : [[name, formatUsd(nano)]])),
  )
