import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadModelTable } from '../../../src/gateway/cost/load.ts'

const row = (provider: string, model: string, input = 1) => ({ provider, model, usd_per_million: { input, output: 1 } })

function priceFile(models: readonly object[]): string {
  const file = join(mkdtempSync(join(tmpdir(), 'mem-test-')), 'prices.yaml')
  writeFileSync(file, JSON.stringify({ models }))
  return file
}

test('two rows of one name in one place are a fault that names the second', () => {
  const twice = [row('openai', 'mine'), row('groq', 'mine'), row('openai', 'mine', 2)]
  expect(() => loadModelTable({ prices: twice })).toThrow(/^gateway\.prices: 2 names openai mine again, as 0 does$/)
  expect(() => loadModelTable({ prices: [], priceFile: priceFile(twice) })).toThrow(
    /prices\.yaml: models\.2 names openai mine again, as 0 does$/,
  )
})

test('a row of the configuration stands over one of the file, and a pattern beside a name', () => {
  const prices = [row('openai', 'mine', 3), row('openai', 'mine*', 4)]
  const table = loadModelTable({ prices, priceFile: priceFile([row('openai', 'mine', 2)]) })
  const inputOf = (model: string) => table.find('openai', model)?.usd_per_million?.input
  expect([inputOf('mine'), inputOf('mine-too')]).toEqual([3_000_000_000n, 4_000_000_000n])
})
