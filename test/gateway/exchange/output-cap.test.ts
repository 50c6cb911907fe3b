import { expect, test } from 'vitest'
import { outputCap } from '../../../src/gateway/exchange/output-cap.ts'
import type { Alias, Surface } from '../../../src/gateway/model.ts'
import { bodyOf, candidateOf, chat, HI, requestOf } from './support.ts'

const alias: Alias = {
  id: 1,
  organization_id: 7,
  name: 'short',
  scope: 'organization',
  strategy: 'weighted',
  members: [],
  fallback_models: [],
  fallback_on: [],
  max_output_tokens: 8,
  enabled: true,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
}

test('the output cap of a call', () => {
  const cap = (fields: object, maxOutputTokens?: number, served?: Alias) =>
    outputCap(
      requestOf('chat', { model: 'm', messages: HI, ...fields }, { maxOutputTokens }),
      candidateOf('openai', { alias: served }),
    )
  expect(cap({})).toBeUndefined()
  expect(cap({ max_tokens: 9 })).toBe(9)
  expect(cap({ max_tokens: 9, max_completion_tokens: 20 })).toBe(20)
  expect(cap({ max_tokens: 9 }, 5)).toBe(5)
  expect(cap({}, 5)).toBe(5)
  expect(cap({ max_tokens: 'x' }, 5)).toBe(5)
  expect(cap({ max_tokens: 9 }, undefined, alias)).toBe(8)
  expect(cap({}, 5, alias)).toBe(5)
})

test('a field of another surface is no cap, and of one that is given twice the largest counts', () => {
  const cap = (surface: Surface, fields: string) =>
    outputCap(requestOf(surface, `{"model":"m",${fields}}`), candidateOf('openai'))
  expect(cap('chat', '"max_output_tokens":1')).toBeUndefined()
  expect(cap('chat', '"max_output_tokens":1,"max_tokens":9')).toBe(9)
  expect(cap('responses', '"max_tokens":1,"max_completion_tokens":1')).toBeUndefined()
  expect(cap('responses', '"max_output_tokens":9')).toBe(9)
  expect(cap('messages', '"max_completion_tokens":900,"max_tokens":9')).toBe(9)
  expect(cap('chat', '"max_tokens":100000,"max_tokens":1')).toBe(100_000)
  expect(cap('chat', '"max_tokens":2,"max_tokens":100000,"max_tokens":1')).toBe(100_000)
  expect(cap('chat', '"max_tokens":null,"max_tokens":1')).toBeUndefined()
})

test('an alias that serves as a fallback keeps its cap, relayed and translated', () => {
  const more = { maxOutputTokens: 500 }
  expect(bodyOf(chat(candidateOf('openai', { alias }), { max_tokens: 100 }, more))).toMatchObject({ max_tokens: 8 })
  expect(bodyOf(chat(candidateOf('anthropic', { alias }), { max_tokens: 100 }, more))).toMatchObject({ max_tokens: 8 })
  expect(bodyOf(chat(candidateOf('openai', { alias }), { max_tokens: 3 }, more))).toMatchObject({ max_tokens: 3 })
})
