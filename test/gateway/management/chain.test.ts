import fc from 'fast-check'
import { expect, test } from 'vitest'
import { auditHash, auditProblem, GENESIS_HASH, type AuditRecord } from '../../../src/gateway/audit-chain.ts'
import { difference } from '../../../src/gateway/audit.ts'
import { weight } from '../../../src/gateway/requests/fields.ts'

const anyRecord: fc.Arbitrary<AuditRecord> = fc
  .record({
    id: fc.nat(),
    organization_id: fc.nat(),
    at: fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }).map((date) => date.toISOString()),
    actor: fc.record({ type: fc.constantFrom('user' as const, 'key' as const), id: fc.nat() }),
    action: fc.string(),
    target: fc.record({ type: fc.string(), id: fc.string(), name: fc.string() }),
    changes: fc.dictionary(fc.string(), fc.tuple(fc.jsonValue(), fc.jsonValue())),
    request_id: fc.string(),
    ip: fc.ipV4(),
    user_agent: fc.string(),
    count: fc.nat(),
  })
  .map((facts) => {
    const record = { ...facts, seq: 1, prev_hash: GENESIS_HASH, hash: '' }
    return { ...record, hash: auditHash(record) }
  })

test('gateway#101 a record stands in its place, and in no other form', () => {
  fc.assert(
    fc.property(anyRecord, anyRecord, (record, other) => {
      expect(auditProblem(record, 1, GENESIS_HASH)).toBeUndefined()
      expect(auditProblem(record, 2, GENESIS_HASH)).toContain('missing')
      expect(auditProblem(record, 1, record.hash)).toContain('prev_hash')
      for (const field of [
        'id',
        'organization_id',
        'at',
        'actor',
        'action',
        'target',
        'changes',
        'ip',
        'count',
      ] as const) {
        const forged = { ...record, [field]: other[field] }
        const isSame = auditHash(forged) === record.hash
        expect(auditProblem(forged, 1, GENESIS_HASH) === undefined).toBe(isSame)
        if (!isSame) continue
        expect(JSON.parse(JSON.stringify(forged[field]))).toEqual(JSON.parse(JSON.stringify(record[field])))
      }
    }),
  )
})

test('a difference names what changed, and leads from one record to the other', () => {
  const anyFields = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.oneof(fc.nat(3), fc.string({ maxLength: 2 })))
  fc.assert(
    fc.property(anyFields, anyFields, (before, after) => {
      const changes = difference(before, after)
      expect(difference(before, before)).toEqual({})
      for (const field of ['a', 'b', 'c']) {
        const [was, is] = [before[field] ?? null, after[field] ?? null]
        expect(changes[field]).toEqual(was === is ? undefined : [was, is])
      }
    }),
  )
})

test('weights of up to three decimals, and no finer, are weights', () => {
  fc.assert(
    fc.property(fc.nat(1_000_000), (thousandths) => {
      expect(weight.safeParse(thousandths / 1000).success).toBe(true)
      expect(weight.safeParse(thousandths / 1000 + 0.0005).success).toBe(false)
      expect(weight.safeParse(thousandths / 1000 + 1e-10).success).toBe(false)
    }),
  )
})
