import type { UsageRecord } from '../../../src/gateway/model.ts'
import { ModelTable } from '../../../src/gateway/cost/model-table.ts'
import type { OrganizationState } from '../../../src/gateway/state/organization-state.ts'
import { DEFAULT_SETTINGS } from '../../../src/gateway/store/settings.ts'

export const organizationState = (id: number, fields: Partial<OrganizationState> = {}): OrganizationState => ({
  id,
  revision: 1,
  settings: DEFAULT_SETTINGS,
  credentials: [],
  aliases: [],
  keys: [],
  users: new Map(),
  metricsTokenHash: undefined,
  ...fields,
})

export const modelTable = (...names: [provider: string, model: string][]): ModelTable =>
  new ModelTable('2026-11-01', () => [
    names.map(([provider, model]) => ({ provider, model, sampling: true, reasoning: 'none' })),
  ])

/** The record of a call that went well, but for these fields. */
export const usageRecord = (fields: Partial<UsageRecord> = {}): UsageRecord => ({
  id: '0193a000-0000-7000-8000-000000000001',
  request_id: 'r1',
  organization_id: 1,
  surface: 'chat',
  stream: false,
  test: false,
  model_requested: 'gpt-5',
  credential_id: 7,
  provider: 'openai',
  model_used: 'gpt-5',
  outcome: 'ok',
  status: 200,
  attempts: [
    {
      credential_id: 7,
      model: 'gpt-5',
      class: 'ok',
      status: 200,
      started_at: '2026-11-01T10:00:00.000Z',
      duration_ms: 900,
    },
  ],
  input_tokens: 100,
  cache_read_tokens: 40,
  cache_write_tokens: 10,
  cache_write_1h_tokens: 5,
  output_tokens: 30,
  reasoning_tokens: 20,
  cost_usd: '0.000123457',
  cost_state: 'exact',
  model_table_version: '2026-11-01',
  started_at: '2026-11-01T10:00:00.000Z',
  duration_ms: 1000,
  upstream_ms: 900,
  overhead_ms: 0.2,
  bytes_in: 10,
  bytes_out: 20,
  ...fields,
})
