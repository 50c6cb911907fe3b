import { fromTimestamp, toTimestamp } from '../../base/clock.ts'
import type { AttemptRecord, UsageRecord } from '../model.ts'
import type { UsageRow } from './usage.ts'

/** Of a record, as it is shown. Contract: gateway.md 2.6. */
export const USAGE_FIELDS = [
  'id',
  'request_id',
  'organization_id',
  'user_id',
  'key_id',
  'surface',
  'stream',
  'test',
  'model_requested',
  'alias_id',
  'credential_id',
  'provider',
  'model_used',
  'response_model',
  'outcome',
  'status',
  'error_code',
  'finish_reason',
  'attempts',
  'input_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'cache_write_1h_tokens',
  'output_tokens',
  'reasoning_tokens',
  'cost_usd',
  'cost_state',
  'model_table_version',
  'started_at',
  'duration_ms',
  'upstream_ms',
  'overhead_ms',
  'first_token_ms',
  'bytes_in',
  'bytes_out',
  'client',
  'retry_count',
] as const satisfies readonly (keyof UsageRecord)[]

/**
 * What no record is found by, in the order in which rows hold it (`toRest`): by place and not by name, which is a third of
 * the bytes to write. A new one comes last.
 */
const REST = [
  'stream',
  'test',
  'model_requested',
  'alias_id',
  'model_used',
  'response_model',
  'status',
  'error_code',
  'finish_reason',
  'attempts',
  'input_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'cache_write_1h_tokens',
  'output_tokens',
  'reasoning_tokens',
  'cost_usd',
  'cost_state',
  'model_table_version',
  'duration_ms',
  'upstream_ms',
  'overhead_ms',
  'first_token_ms',
  'bytes_in',
  'bytes_out',
  'client',
  'retry_count',
] as const satisfies readonly (keyof UsageRecord)[]
const ATTEMPT = [
  'credential_id',
  'model',
  'class',
  'status',
  'started_at',
  'duration_ms',
] as const satisfies readonly (keyof AttemptRecord)[]
/** Null is something that they say; the others are absent then. */
const NULLABLE: ReadonlySet<string> = new Set([
  'input_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'cache_write_1h_tokens',
  'output_tokens',
  'reasoning_tokens',
  'cost_usd',
])

/** A record as its row. */
export const toUsageRow = (record: UsageRecord): UsageRow => ({
  id: record.id,
  organization_id: record.organization_id,
  started_at: fromTimestamp(record.started_at),
  request_id: storable(record.request_id),
  user_id: record.user_id ?? null,
  key_id: record.key_id ?? null,
  credential_id: record.credential_id ?? null,
  provider: record.provider ?? null,
  model: record.model_used === undefined ? null : storable(record.model_used),
  outcome: record.outcome,
  surface: record.surface,
  record: JSON.stringify(toRest(record)),
})

/** By hand: names that are looked up one by one take as long as all that is written. */
const toRest = (record: UsageRecord): unknown[] => [
  record.stream,
  record.test,
  record.model_requested,
  record.alias_id,
  record.model_used,
  record.response_model,
  record.status,
  record.error_code,
  record.finish_reason,
  record.attempts.map(toList),
  record.input_tokens,
  record.cache_read_tokens,
  record.cache_write_tokens,
  record.cache_write_1h_tokens,
  record.output_tokens,
  record.reasoning_tokens,
  record.cost_usd,
  record.cost_state,
  record.model_table_version,
  record.duration_ms,
  record.upstream_ms,
  record.overhead_ms,
  record.first_token_ms,
  record.bytes_in,
  record.bytes_out,
  record.client,
  record.retry_count,
]

/** The record of a row; rows of earlier versions hold it as it is shown. */
export function toUsageRecord(row: UsageRow): UsageRecord {
  const rest: unknown[] | UsageRecord = JSON.parse(row.record)
  if (!Array.isArray(rest)) return rest
  const all: Record<string, unknown> = { ...row, started_at: toTimestamp(row.started_at) }
  for (const [i, name] of REST.entries()) all[name] = rest[i] ?? null
  all['attempts'] = (all['attempts'] as unknown[][]).map(toAttempt)
  return told(USAGE_FIELDS, all) as unknown as UsageRecord
}

const toList = (attempt: AttemptRecord): unknown[] => [
  attempt.credential_id,
  attempt.model,
  attempt.class,
  attempt.status,
  attempt.started_at,
  attempt.duration_ms,
]

function toAttempt(values: readonly unknown[]): Record<string, unknown> {
  const all: Record<string, unknown> = {}
  for (const [i, name] of ATTEMPT.entries()) all[name] = values[i] ?? null
  return told(ATTEMPT, all)
}

/** Those fields that something is said of, in their order. */
function told(names: readonly string[], all: Record<string, unknown>): Record<string, unknown> {
  const found: Record<string, unknown> = {}
  for (const name of names) if (all[name] !== null || NULLABLE.has(name)) found[name] = all[name]
  return found
}

/** PostgreSQL has no NUL in text. */
export const storable = (text: string): string => (text.includes('\0') ? text.replaceAll('\0', '') : text)
