import fc from 'fast-check'
import { expect, test } from 'vitest'
import { redact } from '../../src/base/redact.ts'

const token = fc
  .tuple(fc.constantFrom('mst', 'mrt', 'mvk', 'mmt'), fc.uint8Array({ minLength: 32, maxLength: 32 }))
  .map(([kind, bytes]) => `${kind}_${Buffer.from(bytes).toString('base64url')}`)

test('tokens leave no text, whatever stands around them', () => {
  const around = fc.constantFrom('', ' ', '"', '\\n', 'Bearer ', 'session=', '; ', '{"a":"', '\n')
  fc.assert(
    fc.property(around, token, around, token, (before, one, after, two) => {
      const redacted = redact(`${before}${one}"${after}"${two}`)
      expect(redacted).not.toContain(one.slice(4))
      expect(redacted).not.toContain(two.slice(4))
      expect(redacted).toContain(`${one.slice(0, 4)}[REDACTED]`)
    }),
  )
})

test('what only looks like one stays', () => {
  const texts = ['mst_short', `mst_${'a'.repeat(42)}`, `mxt_${'a'.repeat(43)}`, 'req_01M80GP28SYZFB8TRWKAV739E0']
  expect(texts.map(redact)).toEqual(texts)
})
