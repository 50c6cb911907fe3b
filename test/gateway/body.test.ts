import fc from 'fast-check'
import { expect, test } from 'vitest'
import { GatewayError } from '../../src/gateway/errors.ts'
import { readMembers, splice } from '../../src/gateway/relay/body.ts'

const ONCE: ReadonlySet<string> = new Set(['model', 'stream'])
const members = (text: string) => readMembers(Buffer.from(text), ONCE)
const valueOf = (text: string, name: string): string | undefined => {
  const member = members(text).get(name)
  return member && Buffer.from(text).subarray(member.start, member.end).toString()
}

test('members are found where JSON has them, whatever the spacing', () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 5 })),
      fc.constantFrom(0, 1, 4),
      (object, indent) => {
        const text = ` ${JSON.stringify(object, null, indent)}\n`
        const parsed: Record<string, unknown> = JSON.parse(text)
        const found = members(text)
        expect([...found.keys()].sort()).toEqual(Object.keys(parsed).sort())
        for (const [name, json] of Object.entries(parsed)) expect(JSON.parse(valueOf(text, name) ?? '')).toEqual(json)
      },
    ),
  )
})

const isObject = (text: string): boolean => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/** Whether it is read; what is thrown but a GatewayError is thrown on. */
const isRead = (text: string): boolean => {
  try {
    members(text)
    return true
  } catch (error) {
    if (error instanceof GatewayError) return false
    throw error
  }
}

test('what JSON takes is read, whatever stands there', () => {
  const unit = fc.constantFrom('{', '}', '[', ']', '"', '\\', ':', ',', ' ', 'a', '1')
  fc.assert(
    fc.property(fc.string({ unit }), (text) => {
      expect(isRead(text) || !isObject(text)).toBe(true)
    }),
  )
})

test('gateway#48 a member given twice is refused, in any escaping', () => {
  for (const text of [
    '{"model":"a","model":"b"}',
    '{"model":"a","mod\\u0065l":"b"}',
    '{"stream":true,"stream":false}',
  ]) {
    expect(() => members(text)).toThrow(expect.objectContaining({ code: 'invalid_value' }))
  }
  expect(valueOf('{"user":"a","user":"b"}', 'user')).toBe('"b"')
})

test('gateway#48 what some take for a comment or a quote hides no member', () => {
  for (const text of [
    '{"x":[/*"*/],"model":"b","y":[/*"*/],"model":"a"}',
    '{"x":[1 //"\n],"model":"a"}',
    `{"x":['"'],"model":"a"}`,
    '{"x":[#"\n]}',
    '{"x":[`"`]}',
  ]) {
    expect(() => members(text)).toThrow(expect.objectContaining({ code: 'invalid_json' }))
  }
})

test('gateway#95 depth 128 passes, 129 is refused', () => {
  const deep = (depth: number): string => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`
  expect(members(deep(128)).size).toBe(1)
  expect(() => members(deep(129))).toThrow(expect.objectContaining({ code: 'invalid_json' }))
})

test('gateway#47 splicing changes the values named and no other byte', () => {
  const text = '{ "x" : 1.50,\r\n "model":"a", "messages":[{"model":"inner"}],"é":"\\u00e9" }'
  const member = members(text).get('model')
  if (!member) throw new Error('no model')
  const spliced = splice(Buffer.from(text), [{ ...member, text: '"b"' }], '"stream_options":{"include_usage":true}')
  expect(spliced.toString()).toBe(
    text.replace('"a"', '"b"').replace('{ ', '{"stream_options":{"include_usage":true}, '),
  )
  expect(splice(Buffer.from('{ }'), [], '"a":1').toString()).toBe('{"a":1 }')
})
