import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NO_USAGE, type Usage } from '../../../src/gateway/chat/events.ts'
import { costOf } from '../../../src/gateway/cost/cost.ts'
import { ModelTable, modelTableSchema } from '../../../src/gateway/cost/model-table.ts'
import { divideHalfEven, formatUsd, parseUsd } from '../../../src/gateway/cost/money.ts'

const rows = (models: object[]) => modelTableSchema.parse({ schema: 1, version: 'v', models }).models
const row = (fields: object) => {
  const [first] = rows([{ provider: 'openai', model: 'm', ...fields }])
  if (!first) throw new Error('no row')
  return first
}
const usd = (fields: object, usage: Partial<Usage>): string | undefined => {
  const cost = costOf(row(fields), { ...NO_USAGE, ...usage })
  return cost === undefined ? undefined : formatUsd(cost)
}

test('money is exact, whatever its digits', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 17n }), (nano) => {
      expect(parseUsd(formatUsd(nano))).toBe(nano)
    }),
  )
  for (const text of ['', '.5', '1.', '-1', '1e3', '0.0000000001']) expect(parseUsd(text)).toBeUndefined()
})

test('a price may be written as a number, down to the nano-dollar', () => {
  const priced = (price: number): string | undefined => usd({ usd_per_request: price }, {})
  expect([0, 1e-9, 0.0000005, 0.000001, 0.1, 1000].map(priced)).toEqual([
    '0',
    '0.000000001',
    '0.0000005',
    '0.000001',
    '0.1',
    '1000',
  ])
  for (const price of [1e-10, 1.5e-9, -0.0000005]) expect(() => priced(price)).toThrow('nine decimals')
})

test('halves go to the even neighbour', () => {
  expect([5n, 15n, 25n, 26n, 24n].map((nano) => divideHalfEven(nano, 10n))).toEqual([0n, 2n, 2n, 3n, 2n])
})

describe('gateway#85 each token is priced once, to the nano-dollar', () => {
  const prices = { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75, cache_write_1h: 6 }
  const usage = { input: 1000, cacheRead: 600, cacheWrite: 200, cacheWrite1h: 100, output: 50, reasoning: 20 }

  test('caches and reasoning', () => {
    // 100 x 3 + 600 x .3 + 200 x 3.75 + 100 x 6 + 50 x 15, a million of each
    expect(usd({ usd_per_million: prices }, usage)).toBe('0.00258')
    expect(usd({ usd_per_million: { ...prices, reasoning: 30 } }, usage)).toBe('0.00288')
  })

  test('absent prices of caches are the input price', () => {
    expect(usd({ usd_per_million: { input: '0.000001', output: 1 } }, { input: 1, cacheRead: 1 })).toBe('0')
    expect(usd({ usd_per_million: { input: 2, output: 1 } }, { input: 1000, cacheRead: 400 })).toBe('0.002')
  })

  test('a tier prices the whole call, the highest that is reached', () => {
    const tiers = [10, 100].map((above) => ({
      above_input_tokens: above,
      usd_per_million: { input: above, output: 1 },
    }))
    const fields = { usd_per_million: { input: 1, output: 1 }, tiers: tiers.toReversed() }
    expect([10, 11, 101].map((input) => usd(fields, { input }))).toEqual(['0.00001', '0.00011', '0.0101'])
  })

  test('a price for each request', () => {
    expect(usd({ usd_per_request: '0.01', usd_per_million: { input: 1 } }, { input: 10 })).toBe('0.01001')
  })
})

test('gateway#84 a needed price that is missing makes the cost unknown; 0 is a price', () => {
  expect(usd({}, { input: 1 })).toBeUndefined()
  expect(usd({ usd_per_million: { input: 1 } }, { input: 1, output: 1 })).toBeUndefined()
  expect(usd({ usd_per_million: { input: 1 } }, { input: 1 })).toBe('0.000001')
  expect(usd({ usd_per_million: { input: 0, output: 0 } }, { input: 1, output: 1 })).toBe('0')
})

test('the exact name wins, then the longest pattern, then the earlier layer', () => {
  const own = rows([{ provider: 'openai', model: 'x-1', max_output: 1 }])
  const shipped = rows([
    { provider: 'openai', model: 'x*', max_output: 2 },
    { provider: 'openai', model: 'x-*', max_output: 3 },
    { provider: 'openai', model: 'x-1', max_output: 4 },
    { provider: 'groq', model: '*', max_output: 5 },
  ])
  const table = new ModelTable('v', () => [own, shipped])
  const found = ['x-1', 'x-2', 'xy', 'y'].map((model) => table.find('openai', model)?.max_output)
  expect(found).toEqual([1, 3, 2, undefined])
  expect(table.find('groq', 'anything')?.max_output).toBe(5)
})
