import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Queryable } from '../../database/database.ts'
import { invalidRequest } from '../../platform/errors.ts'
import { formatUsd } from '../cost/money.ts'
import {
  COUNTS,
  listAggregates,
  MINUTE,
  noCounts,
  type AggregateFilter,
  type AggregateRow,
  type Counts,
  type Dimensions,
  type Span,
} from '../store/aggregates.ts'
import { listUsage, type UsageFilter, type UsageRow } from '../store/usage.ts'
import { digestOf } from './digest.ts'
import { addEncoded, addTimes, noTimes, percentile, type Histogram, type TimeName, type Times } from './histogram.ts'
import { RECORD, type Piece } from './ranges.ts'

export const GROUPS = ['provider', 'model', 'credential', 'user', 'key', 'surface'] as const
/** What usage is told apart by. */
export type Group = (typeof GROUPS)[number]

/** What aggregates come to. */
export interface Sums extends Counts {
  cost_nano: bigint
  estimated_nano: bigint
  times: Times
}

const PAGE = 500
/** Records of one answer: of more, aggregates have to do. */
const RECORDS = 200_000
const COLUMN = {
  provider: 'provider',
  model: 'model',
  credential: 'credential_id',
  user: 'user_id',
  key: 'key_id',
  surface: 'surface',
} as const satisfies Record<Group, keyof Dimensions>

export const noSums = (): Sums => ({
  ...noCounts(),
  cost_nano: 0n,
  estimated_nano: 0n,
  times: noTimes(),
})

/**
 * What the usage of a range comes to, by what aggregates tell apart; what they do not is asked of the records, as long as they
 * are kept. Page by page, a turn of the event loop between them. @throws invalid_request 400 for more records than can be read
 */
export async function* readUsage(
  db: Queryable,
  organizationId: number,
  pieces: readonly Piece[],
  filter: UsageFilter,
): AsyncGenerator<AggregateRow> {
  const isOfRecords = filter.outcome !== undefined || filter.request_id !== undefined
  const room = { records: RECORDS }
  for (const { span, from, to } of pieces) {
    const part = { ...filter, from, to }
    if (span === RECORD) yield* readRecords(db, organizationId, MINUTE, part, room)
    else if (isOfRecords) yield* readRecords(db, organizationId, span, part, room)
    else yield* readAggregates(db, organizationId, span, part)
  }
}

async function* readAggregates(
  db: Queryable,
  organizationId: number,
  span: Span,
  filter: AggregateFilter,
): AsyncGenerator<AggregateRow> {
  for (let after: AggregateRow | undefined; ;) {
    const rows = await listAggregates(db, organizationId, span, filter, after, PAGE)
    yield* rows
    if (rows.length < PAGE) return
    after = rows.at(-1)
    await nextTurn()
  }
}

/** @param room for how many there still is some in the answer */
async function* readRecords(
  db: Queryable,
  organizationId: number,
  span: Span,
  filter: UsageFilter,
  room: { records: number },
): AsyncGenerator<AggregateRow> {
  for (let after: UsageRow | undefined; ;) {
    const rows = await listUsage(db, organizationId, filter, after, PAGE)
    room.records -= rows.length
    if (room.records < 0)
      throw invalidRequest(`more than ${RECORDS} records: ask for less time, or for whole minutes`, 'from')
    yield* digestOf(rows).aggregates(span)
    if (rows.length < PAGE) return
    after = rows.at(-1)
    await nextTurn()
  }
}

export function addRow(sums: Sums, row: AggregateRow): void {
  addCounts(sums, row)
  addEncoded(sums.times, row.times)
}

export function addSums(to: Sums, from: Sums): void {
  addCounts(to, from)
  addTimes(to.times, from.times)
}

function addCounts(to: Sums, from: Omit<Sums, 'times'>): void {
  for (const name of COUNTS) to[name] += from[name]
  to.cost_nano += from.cost_nano
  to.estimated_nano += from.estimated_nano
}

/** What a row is grouped under; null where it has none. */
export const groupOf = (row: AggregateRow, names: readonly Group[]): Partial<Record<Group, string | number | null>> =>
  Object.fromEntries(names.map((name) => [name, row[COLUMN[name]] || null]))

/** The money that is known; null where there were calls and none of them has a known cost. Contract: gateway.md 2 */
export const costUsd = ({ requests, cost_requests, cost_nano }: Sums): string | null =>
  requests > 0 && cost_requests === 0 ? null : formatUsd(cost_nano)

type Percentiles = Record<'p50' | 'p95' | 'p99', number | null>

const percentiles = (times: Histogram): Percentiles => ({
  p50: percentile(times, 0.5),
  p95: percentile(times, 0.95),
  p99: percentile(times, 0.99),
})

export const percentilesOf = (times: Times): Record<TimeName, Percentiles> => ({
  duration_ms: percentiles(times.duration_ms),
  upstream_ms: percentiles(times.upstream_ms),
  overhead_ms: percentiles(times.overhead_ms),
  first_token_ms: percentiles(times.first_token_ms),
})
