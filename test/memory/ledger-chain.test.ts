import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalJson } from '../../src/base/canonical-json.ts'
import { toTimestamp } from '../../src/base/clock.ts'
import { sha256 } from '../../src/base/hash.ts'
import { chainEntry } from '../../src/memory/ledger-chain.ts'

const text = fc.string({ unit: 'binary' })
const maybe = fc.option(text)
const entry = fc.record({
  ledger_id: text,
  workspace_id: text,
  op: fc.constantFrom('imprint' as const, 'forget' as const),
  agent_id: text,
  ts: fc.integer({ min: 0, max: 4e12 }),
  target: maybe,
  watermark_before: maybe,
  watermark_after: maybe,
  request_id: text,
  latency_ms: fc.double({ min: 0, noNaN: true }),
  api_key_id: maybe,
  user_id: maybe,
  metadata: fc.constantFrom(null, '{"key":"a"}'),
  ip: maybe,
  user_agent: maybe,
  redact_audit: fc.constantFrom(0, 1),
})

describe('chainEntry', () => {
  it('hashes the canonical JSON of all that redaction leaves, without the keys that have no value', () => {
    fc.assert(
      fc.property(entry, fc.nat(), (unchained, seq) => {
        const row = chainEntry(unchained, { seq, headHash: 'head' })
        const { entry_hash, metadata, ip, user_agent, salt, redacted_fields, redact_audit, ts, ...fields } = row
        const present = Object.entries(fields).filter(([, value]) => value !== null)
        const shown = {
          ...Object.fromEntries(present),
          ts: toTimestamp(ts),
          ...(redact_audit && { redact_audit: true }),
        }
        expect(entry_hash).toBe(sha256(canonicalJson(shown)))
        expect(row).toMatchObject({ seq: seq + 1, prev_hash: 'head' })
      }),
    )
  })
})
