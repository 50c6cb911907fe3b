import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonFault } from '../../src/base/json.ts'

function faultIn(text: string): string {
  try {
    JSON.parse(text)
  } catch (error) {
    return jsonFault(error)
  }
  return ''
}

test('what is wrong with JSON is told without what stands around it', () => {
  expect(faultIn('{"password":"secretword",}')).toMatch(/./)
  fc.assert(
    fc.property(fc.nat(25), fc.constantFrom('', '\n', '"', 'ü'), (cut, broken) => {
      const text = '{"password":"secretword"}'
      const fault = faultIn(`${text.slice(0, cut)}${broken}}${text.slice(cut)}`)
      expect(fault).not.toMatch(/pass|word|secret/)
    }),
  )
})
