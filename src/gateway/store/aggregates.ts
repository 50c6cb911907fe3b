import { inNumbers, type Param, type Queryable } from '../../database/database.ts'

/** Aggregates of usage: sums and histograms over spans of time. Contract: gateway.md 2.8. */

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR
/** From the finest to the coarsest. */
export const SPANS = [MINUTE, HOUR, DAY] as const
export type Span = (typeof SPANS)[number]

/** What a row is of; 0 and '' stand for none. */
export interface Dimensions {
  organization_id: number
  /** When the span begins, epoch ms. */
  bucket: number
  user_id: number
  key_id: number
  credential_id: number
  provider: string
  model: string
  surface: string
}

export const COUNTS = [
  'requests',
  'errors',
  'fallbacks',
  'rate_limited',
  'rejected',
  'cached',
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'cache_write_1h_tokens',
  'reasoning_tokens',
  'cost_requests',
  'unknown_price',
  'no_usage',
] as const
/** `cost_requests` have a known cost. */
export type Counts = Record<(typeof COUNTS)[number], number>

/** Counts from which adding begins. */
export const noCounts = (): Counts => ({
  requests: 0,
  errors: 0,
  fallbacks: 0,
  rate_limited: 0,
  rejected: 0,
  cached: 0,
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  cache_write_1h_tokens: 0,
  reasoning_tokens: 0,
  cost_requests: 0,
  unknown_price: 0,
  no_usage: 0,
})

/** A row; money is nano-dollars, `times` JSON as histogram.ts makes it. */
export interface AggregateRow extends Dimensions, Counts {
  cost_nano: bigint
  estimated_nano: bigint
  times: string
}

const KEY = 'organization_id span bucket user_id key_id credential_id provider model surface'.split(' ')
const SUMS = [...COUNTS, 'cost_nano', 'estimated_nano']
const COLUMNS = [...KEY, ...SUMS, 'times']
const TEXTS = new Set(['provider', 'model', 'surface', 'times'])

/** One statement for so many rows: on PostgreSQL each costs a way to the server and back. */
const ROWS = 50

/** `(…), (…)`: the columns of so many rows as parameters. */
const tuples = (count: number, columns: readonly string[]): string =>
  Array.from({ length: count }, (_, row) => {
    const cells = columns.map((name, i) => {
      const param = `$${row * columns.length + i + 1}`
      return TEXTS.has(name) ? param : `CAST(${param} AS BIGINT)`
    })
    return `(${cells.join(', ')})`
  }).join(', ')

const add = (count: number): string => {
  const sums = SUMS.map((name) => `${name} = gateway_usage_aggregates.${name} + excluded.${name}`)
  return `INSERT INTO gateway_usage_aggregates (${COLUMNS.join(', ')}) VALUES ${tuples(count, COLUMNS)}
    ON CONFLICT (${KEY.join(', ')}) DO UPDATE SET ${sums.join(', ')}, times = excluded.times`
}

const findTimes = (count: number): string => `
  SELECT ${KEY.join(', ')}, times FROM gateway_usage_aggregates WHERE (${KEY.join(', ')}) IN (VALUES ${tuples(count, KEY)})`

/** By how many rows they are for. */
const ADD = new Map<number, string>()
const FIND = new Map<number, string>()

function statement(known: Map<number, string>, make: (count: number) => string, count: number): string {
  const sql = known.get(count) ?? make(count)
  known.set(count, sql)
  return sql
}

/**
 * Adds rows of one span to what is there. By the primary key. The caller holds `lockTallies`: histograms are read, merged
 * here and written back, as SQL takes a millisecond to add two of them.
 * @param merge adds two `times`
 */
export async function addAggregates(
  tx: Queryable,
  span: Span,
  rows: readonly AggregateRow[],
  merge: (before: string, more: string) => string,
): Promise<void> {
  for (let first = 0; first < rows.length; first += ROWS) {
    const some = rows.slice(first, first + ROWS)
    const keys = some.map((row) => [
      row.organization_id,
      span,
      row.bucket,
      row.user_id,
      row.key_id,
      row.credential_id,
      row.provider,
      row.model,
      row.surface,
    ])
    const found = await tx.all<Record<string, string | number>>(statement(FIND, findTimes, some.length), keys.flat())
    const before = new Map(found.map(({ times, ...key }) => [KEY.map((name) => key[name]).join(' '), String(times)]))
    const values = some.flatMap((row, i) => {
      const key = keys[i] ?? []
      const known = before.get(key.join(' '))
      return [
        ...key,
        ...COUNTS.map((name) => row[name]),
        String(row.cost_nano),
        String(row.estimated_nano),
        known === undefined ? row.times : merge(known, row.times),
      ]
    })
    await tx.run(statement(ADD, add, some.length), values)
  }
}

/** Which aggregates of an organization; `to` is not included. */
export interface AggregateFilter {
  from: number
  to: number
  ownerId?: number | undefined
  user_id?: number | undefined
  key_id?: number | undefined
  credential_id?: number | undefined
  provider?: string | undefined
  model?: string | undefined
  surface?: string | undefined
}

const EQUAL = ['user_id', 'key_id', 'credential_id', 'provider', 'model', 'surface'] as const
const ORDER = 'bucket, user_id, key_id, credential_id, provider, model, surface'

type Stored = Omit<AggregateRow, 'cost_nano' | 'estimated_nano'> & { cost_text: string; estimated_text: string }

/**
 * A page of rows in the order of their keys, behind the last one of the page before. By the primary key; with an owner or
 * a user by gateway_usage_aggregates_by_user, with a key by gateway_usage_aggregates_by_key.
 */
export async function listAggregates(
  db: Queryable,
  organizationId: number,
  span: Span,
  filter: AggregateFilter,
  after: Dimensions | undefined,
  limit: number,
): Promise<AggregateRow[]> {
  const params: Param[] = [organizationId, span, filter.from, filter.to, limit]
  const conditions = ['organization_id = $1', 'span = $2', 'bucket >= $3', 'bucket < $4']
  const where = (column: string, value: Param | undefined): void => {
    if (value !== undefined) conditions.push(`${column} = $${params.push(value)}`)
  }
  where('user_id', filter.ownerId)
  for (const column of EQUAL) where(column, filter[column])
  if (after) {
    const { bucket, user_id, key_id, credential_id, provider, model, surface } = after
    const place = [bucket, user_id, key_id, credential_id, provider, model, surface]
    conditions.push(`(${ORDER}) > (${place.map((value) => `$${params.push(value)}`).join(', ')})`)
  }
  const rows = await db.all<Stored>(
    `SELECT organization_id, ${ORDER}, ${COUNTS.join(', ')}, CAST(cost_nano AS TEXT) AS cost_text,
            CAST(estimated_nano AS TEXT) AS estimated_text, times
       FROM gateway_usage_aggregates WHERE ${conditions.join(' AND ')} ORDER BY ${ORDER} LIMIT $5`,
    params,
  )
  return rows.map(({ cost_text, estimated_text, ...row }) => ({
    ...row,
    cost_nano: BigInt(cost_text),
    estimated_nano: BigInt(estimated_text),
  }))
}

/** Whose money it is. */
export type Spender = { type: 'organization' | 'user' | 'key'; id: number }

/**
 * Nano-dollars spent from a day on. By the primary key, gateway_usage_aggregates_by_user or gateway_usage_aggregates_by_key.
 */
export async function sumSpent(
  db: Queryable,
  organizationId: number,
  { type, id }: Spender,
  from: number,
): Promise<bigint> {
  const whose = type === 'organization' ? '' : `AND ${type}_id = $4`
  const row = await db.get<{ spent: string }>(
    `SELECT CAST(COALESCE(sum(cost_nano), 0) AS TEXT) AS spent FROM gateway_usage_aggregates
      WHERE organization_id = $1 AND span = $2 AND bucket >= $3 ${whose}`,
    [organizationId, DAY, from, ...(whose === '' ? [] : [id])],
  )
  return BigInt(row?.spent ?? 0)
}

/** As `sumSpent`, of several users or keys, by their ids. */
export async function sumSpentOfEach(
  db: Queryable,
  organizationId: number,
  type: 'user' | 'key',
  ids: readonly number[],
  from: number,
): Promise<Map<number, bigint>> {
  const rows = await db.all<{ id: number; spent: string }>(
    `SELECT ${type}_id AS id, CAST(sum(cost_nano) AS TEXT) AS spent FROM gateway_usage_aggregates
      WHERE organization_id = $1 AND span = $2 AND bucket >= $3 AND ${type}_id IN ${inNumbers(db, '$4')}
      GROUP BY ${type}_id`,
    [organizationId, DAY, from, JSON.stringify(ids)],
  )
  return new Map(rows.map(({ id, spent }) => [id, BigInt(spent)]))
}

/** Deletes the oldest rows of a span, so many at most; how many that were. By the primary key. */
export const deleteAggregatesBefore = (
  db: Queryable,
  organizationId: number,
  span: Span,
  before: number,
  limit: number,
): Promise<number> =>
  db.run(
    `DELETE FROM gateway_usage_aggregates WHERE organization_id = $1 AND span = $2 AND bucket < $3
       AND (${ORDER}) IN (SELECT ${ORDER} FROM gateway_usage_aggregates
         WHERE organization_id = $1 AND span = $2 AND bucket < $3 ORDER BY bucket LIMIT $4)`,
    [organizationId, span, before, limit],
  )
