import { randomBytes } from 'node:crypto'
import type { UsageRecord } from '../../../src/gateway/model.ts'

/** A UUIDv7 of a time. */
export function uuidAt(ms: number): string {
  const bytes = randomBytes(16)
  bytes.writeUIntBE(ms, 0, 6)
  bytes[6] = 0x70 | ((bytes[6] ?? 0) & 15)
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 63)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** A record as a call that went well leaves it, with other fields where told. */
export function usageRecord(startedAt: number, fields: Partial<UsageRecord> = {}): UsageRecord {
  const started_at = new Date(startedAt).toISOString()
  return {
    id: uuidAt(startedAt),
    request_id: 'req-1',
    organization_id: 1,
    user_id: 1,
    surface: 'chat',
    stream: false,
    test: false,
    model_requested: 'gpt-5',
    credential_id: 3,
    provider: 'openai',
    model_used: 'gpt-5',
    response_model: 'gpt-5',
    outcome: 'ok',
    status: 200,
    finish_reason: 'stop',
    attempts: [{ credential_id: 3, model: 'gpt-5', class: 'ok', status: 200, started_at, duration_ms: 50 }],
    input_tokens: 100,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    cache_write_1h_tokens: 0,
    output_tokens: 20,
    reasoning_tokens: 0,
    cost_usd: '0.001',
    cost_state: 'exact',
    model_table_version: '2026-11-01',
    started_at,
    duration_ms: 51,
    upstream_ms: 50,
    overhead_ms: 1,
    bytes_in: 300,
    bytes_out: 900,
    client: 'tests',
    ...fields,
  }
}
