import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { NO_USAGE, type Usage } from '../../../src/gateway/chat/events.ts'
import { loadModelTable } from '../../../src/gateway/cost/load.ts'
import { modelTableSchema } from '../../../src/gateway/cost/model-table.ts'
import { formatUsd } from '../../../src/gateway/cost/money.ts'
import { estimateCeiling, priceCall, rowOf, type CallNames } from '../../../src/gateway/cost/pricing.ts'
import { next, credential, routing } from './support.ts'

const usage: Usage = { ...NO_USAGE, input: 1_000_000, output: 1_000_000 }
const shipped = loadModelTable({ prices: [] })

const usd = (kind: string, names: CallNames | string, table = shipped): string | undefined => {
  const cost = priceCall(table, kind, typeof names === 'string' ? { upstream: names } : names, usage)
  return cost === undefined ? undefined : formatUsd(cost)
}

function priceFile(text: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'mem-test-')), 'prices.yaml')
  writeFileSync(file, text)
  return file
}

test('the shipped table is sorted, dated, and knows the models of every provider that has names of its own', () => {
  expect(shipped.version).toMatch(/^\d{4}-\d\d-\d\d$/)
  const names = shipped.rows().map(({ provider, model }) => `${provider} ${model}`)
  expect(new Set(names).size).toBe(names.length)
  expect(usd('openai', 'gpt-4o')).toBe('12.5')
  expect(usd('anthropic', 'claude-haiku-4-5-20251001')).toBe('6')
  for (const provider of ['openai', 'anthropic', 'gemini', 'bedrock', 'vertex', 'mistral', 'groq']) {
    expect([...shipped.names(provider)].length).toBeGreaterThan(5)
  }
  const families = shipped.rows().filter(({ model }) => model.endsWith('*'))
  expect(families.filter((row) => row.usd_per_million)).toEqual([])
  expect(rowOf(shipped, 'bedrock', { upstream: 'cohere.embed-english-v3' })?.embedding_batch).toBe(96)
})

test('the shipped table is read as any reader of YAML reads it', () => {
  const { version, models } = modelTableSchema.parse(parse(readFileSync('data/models.yaml', 'utf8')))
  expect(shipped.version).toBe(version)
  expect(shipped.rows()).toHaveLength(models.length)
  for (const row of models) expect(shipped.rows()).toContainEqual(row)
})

test('gateway#84 a new name has the abilities of its family and no price; so has a name nobody knows', () => {
  expect(rowOf(shipped, 'openai', { upstream: 'gpt-5.9' })).toMatchObject({ reasoning: 'effort', sampling: false })
  expect(usd('openai', 'gpt-5.9')).toBeUndefined()
  expect(usd('ollama', 'llama3')).toBeUndefined()
  expect(estimateCeiling(undefined, 10, 10)).toBeUndefined()
})

test('gateway#84 an override is known, an override of 0 is 0, and abilities stay those of the model', () => {
  const table = loadModelTable({
    prices: [
      { provider: 'openai', model: 'gpt-5.9', usd_per_million: { input: 1, output: '2' } },
      { provider: 'ollama', model: '*', usd_per_million: { input: 0, output: 0 } },
      { provider: 'openai', model: 'gpt-4o', usd_per_million: { input: 7, output: 7 } },
    ],
    priceFile: priceFile(
      'models:\n' +
        '  - { provider: openai, model: gpt-4o, usd_per_million: { input: 1, output: 1 } }\n' +
        '  - { provider: openai, model: gpt-4.1, usd_per_million: { input: 4, output: 4 }, max_output: 5 }\n',
    ),
  })
  expect(usd('openai', 'gpt-5.9', table)).toBe('3')
  expect(rowOf(table, 'openai', { upstream: 'gpt-5.9' })).toMatchObject({ reasoning: 'effort', sampling: false })
  expect(usd('ollama', 'anything', table)).toBe('0')
  expect(usd('openai', 'gpt-4o', table)).toBe('14')
  expect(rowOf(table, 'openai', { upstream: 'gpt-4o' })?.max_output).toBe(16_384)
  expect(usd('openai', 'gpt-4.1', table)).toBe('8')
  expect(rowOf(table, 'openai', { upstream: 'gpt-4.1' })?.max_output).toBe(5)
  expect(table.version).toMatch(new RegExp(`^${shipped.version}\\+[0-9a-f]{8}$`))
})

test('the model is looked up by the answer, the upstream name, the base model; an exact name before any pattern', () => {
  expect(usd('openai', { response: 'gpt-4o-mini', upstream: 'gpt-4o' })).toBe('0.75')
  expect(usd('openai', { response: 'gpt-4o-2099-01-01', upstream: 'gpt-4o' })).toBe('12.5')
  expect(usd('azure-openai', { upstream: 'prod', base: 'gpt-4o' })).toBe('12.5')
  expect(usd('azure-openai', { response: 'gpt-4o-mini-2024-07-18', upstream: 'prod' })).toBe('0.75')
  expect(usd('azure-openai', { upstream: 'prod' })).toBeUndefined()
})

test('gateway#85 a long prompt costs its tier, caches their own price', () => {
  const long = { ...NO_USAGE, input: 200_001, cacheRead: 200_000, output: 1000 }
  expect(priceCall(shipped, 'anthropic', { upstream: 'claude-sonnet-4-5' }, long)).toBe(
    6000n + 120_000_000n + 22_500_000n,
  )
})

test('what a call may cost before it is made: its own cap, else that of the model, else 4096', () => {
  const row = (model: string) => rowOf(shipped, 'openai', { upstream: model })
  expect(estimateCeiling(row('gpt-4o'), 1000, 10)).toBe(2_500_000n + 100_000n)
  expect(estimateCeiling(row('gpt-4o'), 0)).toBe(163_840_000n)
  expect(estimateCeiling(row('gpt-4o'), 1000, 10, 3)).toBe(2_500_000n + 300_000n)
  const capless = loadModelTable({
    prices: [{ provider: 'ollama', model: 'y', usd_per_million: { input: 1, output: 1 } }],
  })
  expect(estimateCeiling(rowOf(capless, 'ollama', { upstream: 'y' }), 0)).toBe(4_096_000n)
  expect(estimateCeiling(row('text-embedding-3-small'), 1000, 0)).toBe(20_000n)
})

test('a candidate carries the row of its upstream name, on Azure of the base model', () => {
  const { select } = routing({
    credentials: [credential(1, { kind: 'azure-openai', config: { deployment: 'prod', base_model: 'gpt-4o' } })],
  })
  expect(estimateCeiling(next(select('prod'))?.row, 1000, 10)).toBe(2_600_000n)
})

test('a fault in prices names the file or the key, and what is wrong', () => {
  const load = (text: string) => () => loadModelTable({ prices: [], priceFile: priceFile(text) })
  expect(load('models: [{ provider: openai }]')).toThrow(/prices\.yaml: models\.0\.model is required$/)
  expect(load('models: [')).toThrow(/prices\.yaml cannot be read as YAML/)
  expect(load('models: [{ provider: groq, model: b, usd_per_million: { input: -1 } }]')).toThrow(
    /usd_per_million\.input/,
  )
  expect(load('models: [{ provider: opneai, model: b }]')).toThrow(/models\.0\.provider must be one of openai,/)
  expect(() => loadModelTable({ prices: [], priceFile: '/nowhere.yaml' })).toThrow('/nowhere.yaml')
  expect(() => loadModelTable({ prices: [{ provider: 'groq', model: '*b' }] })).toThrow(/gateway\.prices: 0\.model/)
})
