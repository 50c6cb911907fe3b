import { expect, test } from 'vitest'
import { local } from '../../../src/memory/embedder/local.ts'
import { never, settings } from './support.ts'

/** Stands for the package: notes what it is asked and gives these values for each text. */
function standIn(values: number[]): { calls: unknown[]; importPackage: (name: string) => Promise<unknown> } {
  const calls: unknown[] = []
  const extract = (texts: string[], options: object): Promise<unknown> => {
    calls.push([texts, options])
    return Promise.resolve({ data: new Float32Array(texts.flatMap(() => values)), dims: [texts.length, values.length] })
  }
  const pipeline = (...asked: unknown[]): Promise<unknown> => {
    calls.push(asked)
    return Promise.resolve(extract)
  }
  return { calls, importPackage: (name) => Promise.resolve((calls.push(name), { pipeline })) }
}

test('loads the model once, from its directory, never from the network', async () => {
  const { calls, importPackage } = standIn([3, 4])
  const embedder = local('mini', '/srv/models/mini', settings({ queryPrefix: 'query: ' }), importPackage)
  expect(embedder).toMatchObject({ model: 'local:mini', dimension: undefined, quality: 'production', fusionWeight: 1 })
  expect(calls).toEqual([])
  const unit = new Float32Array([0.6, 0.8])
  expect(await embedder.embed(['a', 'b'], 'document', never)).toEqual([unit, unit])
  expect(await embedder.embed(['c'], 'query', never)).toEqual([unit])
  expect(embedder.dimension).toBe(2)
  const options = { pooling: 'mean', normalize: true }
  expect(calls).toEqual([
    '@huggingface/transformers',
    ['feature-extraction', '/srv/models/mini', { local_files_only: true }],
    [['a', 'b'], options],
    [['query: c'], options],
  ])
})

test('says what to install when the package is absent', async () => {
  const absent = (): Promise<unknown> => Promise.reject(Object.assign(new Error(''), { code: 'ERR_MODULE_NOT_FOUND' }))
  const embedder = local('mini', '/srv/models/mini', settings(), absent)
  await expect(embedder.embed(['a'], 'document', never)).rejects.toMatchObject({
    name: 'EmbedderError',
    retryable: false,
    message: expect.stringContaining('npm install @huggingface/transformers'),
  })
})

test('a model that cannot be loaded is tried again the next time', async () => {
  const { importPackage } = standIn([1])
  let tries = 0
  const flaky = (name: string): Promise<unknown> => (tries++ === 0 ? Promise.resolve({}) : importPackage(name))
  const embedder = local('mini', '/srv/models/mini', settings(), flaky)
  await expect(embedder.embed(['a'], 'document', never)).rejects.toMatchObject({ name: 'EmbedderError' })
  expect(await embedder.embed(['a'], 'document', never)).toHaveLength(1)
})

test('values that are not numbers are refused', async () => {
  const { importPackage } = standIn([Number.NaN])
  const embedder = local('mini', '/srv/models/mini', settings(), importPackage)
  await expect(embedder.embed(['a'], 'document', never)).rejects.toMatchObject({
    name: 'EmbedderError',
    retryable: false,
  })
})
