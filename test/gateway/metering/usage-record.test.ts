import { expect, test } from 'vitest'
import { toUsageRecord, toUsageRow } from '../../../src/gateway/store/usage-record.ts'
import { usageRecord } from '../observe/samples.ts'

const record = usageRecord({
  key_id: 3,
  error_code: 'upstream_error',
  cost_usd: null,
  attempts: [
    {
      credential_id: 7,
      model: 'gpt-5',
      class: 'ok',
      status: 200,
      started_at: '2026-11-01T08:00:00.000Z',
      duration_ms: 12,
    },
  ],
})

test('a record comes back from its row as it was', () => {
  expect(toUsageRecord(toUsageRow(record))).toEqual(record)
})

test('rows of earlier versions, which hold the record by name, are read too', () => {
  expect(toUsageRecord({ ...toUsageRow(record), record: JSON.stringify(record) })).toEqual(record)
})
