import fc from 'fast-check'
import { expect, test } from 'vitest'
import { choicesAsked, estimateInputTokens, roughInputTokens } from '../../../src/gateway/exchange/estimate.ts'
import { Signatures } from '../../../src/gateway/exchange/signatures.ts'
import { HI, requestOf } from './support.ts'

const image = (data: string) => ({ type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } })
const shown = (data: string) => ({ type: 'image', source: { type: 'base64', media_type: 'image/png', data } })

test('gateway#78 a prompt is estimated as a quarter of its bytes, a thousand an image', () => {
  const estimated = (surface: 'chat' | 'messages' | 'embeddings' | 'responses', body: object) =>
    estimateInputTokens(requestOf(surface, { model: 'm', ...body }))
  expect(estimated('chat', { messages: [{ role: 'user', content: 'é🌧' }] })).toBe(2)
  expect(
    estimated('chat', { messages: [{ role: 'user', content: [{ type: 'text', text: 'four' }, image('x')] }] }),
  ).toBe(1001)
  expect(estimated('messages', { system: 'four', messages: [{ role: 'user', content: [shown('x')] }] })).toBe(1001)
  const audio = { type: 'input_audio', input_audio: { data: 'x'.repeat(40_000), format: 'wav' } }
  expect(estimated('chat', { messages: [{ role: 'user', content: [audio] }] })).toBe(1000)
  expect(estimated('embeddings', { input: ['four', 'four'] })).toBe(2)
  expect(estimated('embeddings', { input: [[1, 2, 3], [4]] })).toBe(4)
  expect(estimated('responses', { instructions: 'four', input: 'four' })).toBe(2)
  const tools = [{ name: 'rain', input_schema: { type: 'object', properties: { city: { type: 'string' } } } }]
  const bytes = 'four'.length + JSON.stringify(tools).length
  expect(estimated('messages', { messages: [{ role: 'user', content: 'four' }], tools })).toBe(Math.ceil(bytes / 4))
})

test('the rough estimate is never below, and does not count media by their bytes', () => {
  const text = fc.string({ unit: 'grapheme' })
  fc.assert(
    fc.property(fc.array(text), fc.nat(3), (texts, images) => {
      const data = 'x'.repeat(5000)
      const content = [
        ...texts.map((each) => ({ type: 'text', text: each })),
        ...Array.from({ length: images }, () => image(data)),
      ]
      const request = requestOf('chat', { model: 'm', messages: [{ role: 'user', content }] })
      expect(roughInputTokens(request)).toBeGreaterThanOrEqual(estimateInputTokens(request))
      const anthropic = requestOf('messages', { model: 'm', messages: [{ role: 'user', content: [shown(data)] }] })
      expect(roughInputTokens(anthropic)).toBeLessThan(1100)
    }),
  )
})

test('gateway#43 media that stand as a data URL where bytes alone should be count once', () => {
  const body = (data: string): object => ({ model: 'm', messages: [{ role: 'user', content: [shown(data)] }] })
  const bare = roughInputTokens(requestOf('messages', body('x'.repeat(100_000))))
  const named = roughInputTokens(requestOf('messages', body(`data:image/png;base64,${'x'.repeat(100_000)}`)))
  expect(named).toBeGreaterThanOrEqual(bare)
  expect(named).toBeLessThan(bare + 10)
})

test('gateway#88 the answers that a call asks for', () => {
  const asked = (fields: object) => choicesAsked(requestOf('chat', { model: 'm', messages: HI, ...fields }))
  expect([{}, { n: null }, { n: 1 }, { n: 5 }, { n: 0 }, { n: 'x' }, { n: 1.5 }].map(asked)).toEqual([
    1, 1, 1, 5, 1, 1, 1,
  ])
})

test('gateway#62 signatures are kept for an hour, within bounds', () => {
  let now = 0
  const signatures = new Signatures({ now: () => now })
  signatures.keep(1, 'a', { thoughts: [], signature: 's' })
  now += 3_599_999
  expect(signatures.find(1, 'a')).toMatchObject({ signature: 's' })
  expect(signatures.find(2, 'a')).toBeUndefined()
  now += 1
  expect(signatures.find(1, 'a')).toBeUndefined()
  const text = 'x'.repeat(1024 * 1024)
  for (let i = 0; i < 40; i++)
    signatures.keep(1, `b${i}`, { thoughts: [{ kind: 'reasoning', family: 'claude', text }] })
  expect(signatures.find(1, 'b0')).toBeUndefined()
  expect(signatures.find(1, 'b39')).toBeDefined()
})
