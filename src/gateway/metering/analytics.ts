import { toTimestamp, type Clock } from '../../base/clock.ts'
import type { Queryable } from '../../database/database.ts'
import type { Caller } from '../../platform/caller.ts'
import { invalidRequest } from '../../platform/errors.ts'
import { isAdmin } from '../access.ts'
import { DAY, HOUR, MINUTE, type AggregateRow } from '../store/aggregates.ts'
import type { UsageFilter } from '../store/usage.ts'
import { alignRange, floor, keptFrom, piecesOf } from './ranges.ts'
import {
  addRow,
  addSums,
  costUsd,
  groupOf,
  noSums,
  percentilesOf,
  readUsage,
  type Group,
  type Sums,
} from './summary.ts'

export const INTERVALS = ['minute', 'hour', 'day'] as const
export type Interval = (typeof INTERVALS)[number]
const SPAN_OF = { minute: MINUTE, hour: HOUR, day: DAY } as const

/** Which usage is asked for. */
export interface SummaryQuery {
  from?: number | undefined
  to?: number | undefined
  filter: Omit<UsageFilter, 'from' | 'to' | 'ownerId'>
  groupBy: readonly Group[]
}

const BUCKETS = 2000
/** Of all groups together: what an answer may hold in memory. */
const SERIES = 10_000

type Figures = ReturnType<typeof figuresOf>
export interface AnalyticsAnswer {
  from: string
  to: string
  interval: Interval
  series: ({ bucket: string; group: object } & Figures)[]
  totals: Figures
  active_requests: number
}

/** Members see what is their own. */
export const ownerOnly = (caller: Caller): { ownerId?: number } => (isAdmin(caller) ? {} : { ownerId: caller.user.id })

/** How usage went over time. Contract: gateway.md 3.5. */
export class Analytics {
  readonly #database: Queryable
  readonly #clock: Clock
  readonly #activeRequests: (organizationId: number) => number

  constructor(database: Queryable, clock: Clock, activeRequests: (organizationId: number) => number) {
    this.#database = database
    this.#clock = clock
    this.#activeRequests = activeRequests
  }

  /**
   * The last day by the hour, unless asked otherwise; a range that begins or ends before the last day is widened there to whole
   * minutes (hours, days, where minutes are no longer kept), and what has no usage has no entry.
   * @throws invalid_request 400 for a range that is none, is too long or no longer kept, and for too many groups
   */
  async read(caller: Caller, query: SummaryQuery & { interval: Interval }): Promise<AnalyticsAnswer> {
    const { interval, filter, groupBy } = query
    const { organization_id: organizationId } = caller.user
    const { from, to } = this.#rangeOf(query)
    const span = SPAN_OF[interval]
    const series = new Map<string, Sums & { bucket: number; group: object }>()
    const pieces = piecesOf(from, to, span)
    for await (const row of readUsage(this.#database, organizationId, pieces, {
      ...filter,
      ...ownerOnly(caller),
    })) {
      addRow(entryOf(series, floor(row.bucket, span), row, groupBy), row)
    }
    const totals = noSums()
    for (const entry of series.values()) addSums(totals, entry)
    return {
      from: toTimestamp(from),
      to: toTimestamp(to),
      interval,
      series: [...series.values()]
        .sort((a, b) => a.bucket - b.bucket)
        .map(({ bucket, group, ...sums }) => ({ bucket: toTimestamp(bucket), group, ...figuresOf(sums) })),
      totals: figuresOf(totals),
      active_requests: this.#activeRequests(organizationId),
    }
  }

  #rangeOf({ from: asked, to: end, interval }: SummaryQuery & { interval: Interval }): { from: number; to: number } {
    const now = this.#clock.now()
    const { from, to } = rangeOf(asked ?? (end ?? now) - DAY, end ?? now, now)
    const span = SPAN_OF[interval]
    if (floor(to - 1, span) - floor(from, span) >= BUCKETS * span) {
      throw invalidRequest(
        `from and to must have ${BUCKETS} buckets at most between them: take a longer interval`,
        'from',
      )
    }
    if (span !== DAY && from < keptFrom(span, now)) {
      throw invalidRequest(`${interval}s are not kept so long: take a longer interval`, 'from')
    }
    return { from, to }
  }
}

/** @throws invalid_request 400 */
export function rangeOf(from: number, to: number, now: number): { from: number; to: number } {
  if (from >= to) throw invalidRequest('from must be before to', 'from')
  return alignRange(from, to, now)
}

/** The entry of a row. */
function entryOf(
  series: Map<string, Sums & { bucket: number; group: object }>,
  bucket: number,
  row: AggregateRow,
  groupBy: readonly Group[],
): Sums {
  const group = groupOf(row, groupBy)
  const key = JSON.stringify([bucket, group])
  let entry = series.get(key)
  if (!entry) {
    if (series.size === SERIES)
      throw invalidRequest(`more than ${SERIES} entries: ask for less time or fewer groups`, 'group_by')
    series.set(key, (entry = { ...noSums(), bucket, group }))
  }
  return entry
}

function figuresOf(sums: Sums) {
  return {
    requests: sums.requests,
    errors: sums.errors,
    fallbacks: sums.fallbacks,
    rate_limited: sums.rate_limited,
    rejected: sums.rejected,
    cached: sums.cached,
    input_tokens: sums.input_tokens,
    output_tokens: sums.output_tokens,
    cache_read_tokens: sums.cache_read_tokens,
    cost_usd: costUsd(sums),
    cost_unknown_requests: sums.unknown_price + sums.no_usage,
    ...percentilesOf(sums.times),
  }
}
