import { expect, test } from 'vitest'
import { modelPrice } from '../../src/app/model-price.ts'
import { configError, makeWorkspace } from '../config/workspace.ts'

const OPENAI = 'https://api.openai.com/v1'
const TOKENS = { inputTokens: 1_000_000, outputTokens: 100_000 }

test('prices are those of the table, by the address and the name of the model', () => {
  const config = makeWorkspace().load()
  const openai = modelPrice(OPENAI, config)
  expect(openai('gpt-4o-mini', TOKENS)).toBe(150_000 + 60_000)
  expect(openai('gpt-4o-mini', { ...TOKENS, cachedTokens: 500_000 })).toBe(75_000 + 37_500 + 60_000)
  expect(openai('gpt-4o-mini', { inputTokens: 1, outputTokens: 0 })).toBe(1)
  expect(openai('claude-haiku-4-5', TOKENS)).toBeUndefined()
  expect(modelPrice('https://api.anthropic.com/v1', config)('claude-haiku-4-5', TOKENS)).toBe(1_500_000)
  expect(modelPrice('http://127.0.0.1:11434/v1', config)('llama3.2', TOKENS)).toBeUndefined()
})

test('the configuration of the gateway tells prices for the kernel too', () => {
  const { load, write } = makeWorkspace()
  const file = write(
    'prices.yaml',
    'models: [{ provider: openai, model: gpt-4o-mini, usd_per_million: { input: 2, output: 3 } }]',
  )
  write(
    'mem.yaml',
    `gateway:
  price_file: ${file}
  prices: [{ provider: openai, model: llama3.2, usd_per_million: { input: 0, output: 0 } }]
`,
  )
  const local = modelPrice('http://127.0.0.1:11434/v1', load())
  expect(local('llama3.2', TOKENS)).toBe(0)
  expect(local('gpt-4o-mini', TOKENS)).toBe(2_300_000)
  const broken = makeWorkspace({ 'mem.yaml': 'gateway: { price_file: none.yaml }' }).load()
  expect(configError(() => modelPrice(OPENAI, broken)).message).toContain('none.yaml')
})
