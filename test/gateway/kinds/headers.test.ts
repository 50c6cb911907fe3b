import fc from 'fast-check'
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { expect, test } from 'vitest'
import { checkCustomHeader } from '../../../src/gateway/kinds/headers.ts'
import type { Kind } from '../../../src/gateway/model.ts'

const check = (name: string, value = 'v', kind: Kind = 'openai', config = {}) =>
  checkCustomHeader({ kind, config }, name, value)

test('gateway#18 names are tokens, values have no line breaks', () => {
  const isValid = (make: () => void): boolean => {
    try {
      make()
      return true
    } catch {
      return false
    }
  }
  fc.assert(
    fc.property(fc.string({ unit: 'binary-ascii' }), fc.string({ unit: 'binary' }), (name, value) => {
      const good =
        isValid(() => validateHeaderName(`x${name}`)) && isValid(() => validateHeaderValue(`x${name}`, value))
      expect(check(`x${name}`, value) === undefined).toBe(good)
    }),
  )
  for (const value of ['a\r\nb', 'a\n', '\0', '\u0100']) expect(check('x-a', value)).toBeTypeOf('string')
})

test('gateway#18 headers of the connection are refused, in any case', () => {
  const names =
    'host content-length transfer-encoding connection keep-alive upgrade te trailer expect cookie proxy-authorization Proxy-X'
  for (const name of names.split(' ')) {
    expect([name, check(name)]).toEqual([name, expect.any(String)])
    expect([name, check(name.toUpperCase())]).toEqual([name, expect.any(String)])
  }
  expect(check('x-host')).toBeUndefined()
})

test('gateway#18 the header of the credential is refused, per kind', () => {
  expect(check('Authorization')).toBeTypeOf('string')
  expect(check('x-api-key')).toBeUndefined()
  expect(check('X-API-Key', 'v', 'anthropic')).toBeTypeOf('string')
  expect(check('x-goog-api-key', 'v', 'gemini')).toBeTypeOf('string')
  expect(check('api-key', 'v', 'azure-openai')).toBeTypeOf('string')
  expect(check('x-amz-security-token', 'v', 'bedrock')).toBeTypeOf('string')
  expect(check('X-Amz-Meta', 'v', 'bedrock')).toBeTypeOf('string')
  expect(check('x-amzn-bedrock-trace', 'v', 'bedrock')).toBeUndefined()
  expect(check('authorization', 'v', 'vertex')).toBeTypeOf('string')
  expect(check('authorization', 'v', 'openai-compatible', { auth: 'x-api-key' })).toBeUndefined()
  expect(check('x-api-key', 'v', 'openai-compatible', { auth: 'x-api-key' })).toBeTypeOf('string')
  expect(check('authorization', 'v', 'openai-compatible', { auth: 'none' })).toBeUndefined()
})
