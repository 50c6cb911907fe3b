import { parseUsd } from '../cost/money.ts'
import type { UsageRecord } from '../model.ts'
import {
  COUNTS,
  DAY,
  MINUTE,
  noCounts,
  type AggregateRow,
  type Counts,
  type Dimensions,
  type Span,
} from '../store/aggregates.ts'
import type { Spend } from '../store/budgets.ts'
import { storable, toUsageRecord } from '../store/usage-record.ts'
import type { UsageRow } from '../store/usage.ts'
import { addTime, addTimes, encodeTimes, noTimes, type Times } from './histogram.ts'

interface Sum extends Dimensions, Counts {
  cost_nano: bigint
  estimated_nano: bigint
  times: Times
}

/** What records come to: everything that is written beside them. Contract: gateway.md 2.8, 7.2. */
export class Digest {
  readonly #minutes = new Map<string, Sum>()
  /** Where the record before of the same credential was added: most go there too, and need no key. */
  readonly #latest = new Map<number, Sum>()
  /** When each was last used, epoch ms. */
  readonly credentials = new Map<number, number>()
  readonly keys = new Map<number, number>()

  /** @param at when it began, epoch ms */
  add(record: UsageRecord, at: number): void {
    const cost = record.cost_usd === null ? undefined : parseUsd(record.cost_usd)
    const dimensions = dimensionsOf(record, at - (at % MINUTE))
    let sum = this.#latest.get(dimensions.credential_id)
    if (!sum || !isSame(sum, dimensions)) {
      sum = sumOf(this.#minutes, dimensions)
      this.#latest.set(dimensions.credential_id, sum)
    }
    addRecord(sum, record, cost)
    for (const { credential_id } of record.attempts) keepLater(this.credentials, credential_id, at)
    if (record.key_id !== undefined) keepLater(this.keys, record.key_id, at)
  }

  /** By owner and day. */
  get spends(): Spend[] {
    const spends = new Map<string, Spend>()
    for (const sum of this.#minutes.values()) if (sum.cost_nano > 0n) addSpend(spends, sum)
    return [...spends.values()]
  }

  aggregates(span: Span): AggregateRow[] {
    return [...(span === MINUTE ? this.#minutes : coarser(this.#minutes, span)).values()].map(toRow)
  }
}

/** Of rows that were written or set aside before. */
export function digestOf(rows: readonly UsageRow[]): Digest {
  const digest = new Digest()
  for (const row of rows) digest.add(toUsageRecord(row), row.started_at)
  return digest
}

const dimensionsOf = (record: UsageRecord, bucket: number): Dimensions => ({
  organization_id: record.organization_id,
  bucket,
  user_id: record.user_id ?? 0,
  key_id: record.key_id ?? 0,
  credential_id: record.credential_id ?? 0,
  provider: record.provider ?? '',
  model: storable(record.model_used ?? ''),
  surface: record.surface,
})

const isSame = (one: Dimensions, other: Dimensions): boolean =>
  one.bucket === other.bucket &&
  one.key_id === other.key_id &&
  one.credential_id === other.credential_id &&
  one.user_id === other.user_id &&
  one.organization_id === other.organization_id &&
  one.model === other.model &&
  one.surface === other.surface &&
  one.provider === other.provider

function sumOf(sums: Map<string, Sum>, dimensions: Dimensions): Sum {
  const { organization_id, bucket, user_id, key_id, credential_id, provider, model, surface } = dimensions
  // The model is last: it alone may hold any character.
  const key = `${organization_id} ${bucket} ${user_id} ${key_id} ${credential_id} ${provider} ${surface} ${model}`
  let sum = sums.get(key)
  if (!sum) sums.set(key, (sum = { ...dimensions, ...noCounts(), cost_nano: 0n, estimated_nano: 0n, times: noTimes() }))
  return sum
}

function addRecord(sum: Sum, record: UsageRecord, cost: bigint | undefined): void {
  const { outcome, cost_state: state, attempts } = record
  const { times } = sum
  sum.requests++
  if (outcome === 'error') sum.errors++
  if (outcome === 'rejected') sum.rejected++
  if (outcome === 'cached') sum.cached++
  if (record.status === 429 && record.error_code !== 'budget_exceeded') sum.rate_limited++
  sum.fallbacks += movesIn(attempts)
  sum.input_tokens += record.input_tokens ?? 0
  sum.output_tokens += record.output_tokens ?? 0
  sum.cache_read_tokens += record.cache_read_tokens ?? 0
  sum.cache_write_tokens += record.cache_write_tokens ?? 0
  sum.cache_write_1h_tokens += record.cache_write_1h_tokens ?? 0
  sum.reasoning_tokens += record.reasoning_tokens ?? 0
  if (cost !== undefined) {
    sum.cost_requests++
    sum.cost_nano += cost
    if (state === 'estimated') sum.estimated_nano += cost
  } else if (state === 'unknown_price') sum.unknown_price++
  else if (state === 'no_usage') sum.no_usage++
  addTime(times.duration_ms, record.duration_ms)
  addTime(times.overhead_ms, record.overhead_ms)
  if (attempts.length > 0) addTime(times.upstream_ms, record.upstream_ms)
  if (record.first_token_ms !== undefined) addTime(times.first_token_ms, record.first_token_ms)
}

/** How often a call went on to another credential or model. */
function movesIn(attempts: UsageRecord['attempts']): number {
  let moves = 0
  for (let i = 1; i < attempts.length; i++) {
    const [before, now] = [attempts[i - 1], attempts[i]]
    if (before?.credential_id !== now?.credential_id || before?.model !== now?.model) moves++
  }
  return moves
}

function addSpend(
  spends: Map<string, Spend>,
  { organization_id, user_id, key_id, bucket, cost_nano: cost }: Sum,
): void {
  const day = bucket - (bucket % DAY)
  const add = (owner: string): void => {
    const found = spends.get(`${owner} ${day}`)
    if (found) found.cost += cost
    else spends.set(`${owner} ${day}`, { owner, day, cost })
  }
  add(`organization:${organization_id}`)
  if (user_id !== 0) add(`user:${user_id}`)
  if (key_id !== 0) add(`key:${key_id}`)
}

function keepLater(times: Map<number, number>, id: number, at: number): void {
  if ((times.get(id) ?? 0) < at) times.set(id, at)
}

/** The sums of a finer span over a coarser one. */
function coarser(finer: ReadonlyMap<string, Sum>, span: Span): Map<string, Sum> {
  const sums = new Map<string, Sum>()
  for (const part of finer.values()) {
    const sum = sumOf(sums, { ...part, bucket: part.bucket - (part.bucket % span) })
    addSum(sum, part)
  }
  return sums
}

function addSum(to: Sum, from: Sum): void {
  for (const name of COUNTS) to[name] += from[name]
  to.cost_nano += from.cost_nano
  to.estimated_nano += from.estimated_nano
  addTimes(to.times, from.times)
}

const toRow = ({ times, ...sum }: Sum): AggregateRow => ({ ...sum, times: encodeTimes(times) })
