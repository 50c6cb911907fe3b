import { describe, expect, test } from 'vitest'
import { createEmbedder } from '../../../src/memory/embedder/registry.ts'
import { EmbedderError, type Embedder } from '../../../src/memory/embedder/types.ts'
import { never, provider, settings, type Answer } from './support.ts'

const KEY = 'sk-secret-0123456789'
const data = (...vectors: number[][]): Answer => ({
  body: { data: vectors.map((embedding, index) => ({ index, embedding })) },
})

const openaiAt = (url: string, changes: Parameters<typeof settings>[0] = {}): Embedder =>
  createEmbedder('openai:some-model', settings({ providers: { openai: { apiKey: KEY, baseUrl: url } }, ...changes }))

/** The error of one embedding. */
async function failure(embedder: Embedder, signal = never): Promise<EmbedderError> {
  const error: unknown = await embedder.embed(['text'], 'document', signal).catch((thrown: unknown) => thrown)
  if (!(error instanceof EmbedderError)) throw new Error('not an EmbedderError', { cause: error })
  return error
}

describe('what is asked', () => {
  test('openai', async () => {
    const { url, received } = await provider(data([3, 4], [0, 2]))
    const embedder = openaiAt(`${url}/v1/`)
    expect(embedder).toMatchObject({
      model: 'openai:some-model',
      dimension: undefined,
      quality: 'production',
      fusionWeight: 1,
    })
    const vectors = await embedder.embed(['a', 'b'], 'document', never)
    expect(vectors).toEqual([new Float32Array([0.6, 0.8]), new Float32Array([0, 1])])
    expect(embedder.dimension).toBe(2)
    expect(received).toEqual([
      expect.objectContaining({
        method: 'POST',
        path: '/v1/embeddings',
        body: { model: 'some-model', input: ['a', 'b'] },
        headers: expect.objectContaining({ authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }),
      }),
    ])
  })

  test('openai without a key: only at a custom base URL', async () => {
    const { url, received } = await provider(data([1]))
    const custom = createEmbedder('openai:', settings({ providers: { openai: { baseUrl: url } } }))
    await custom.embed(['a'], 'query', never)
    expect(received[0]?.headers).not.toHaveProperty('authorization')
    const error = await failure(createEmbedder('openai:', settings()))
    expect(error).toMatchObject({ retryable: false, message: 'openai needs an API key: set OPENAI_API_KEY' })
  })

  test.each(['document', 'query'] as const)('voyage, for a %s', async (purpose) => {
    const { url, received } = await provider(data([1, 0, 0]))
    const model = 'voyage:voyage-3'
    const embedder = createEmbedder(
      model,
      settings({ model, baseUrl: url, providers: { voyage: { apiKey: 'pa-key' } } }),
    )
    await embedder.embed(['a'], purpose, never)
    expect(received).toEqual([
      expect.objectContaining({
        path: '/embeddings',
        body: { model: 'voyage-3', input: ['a'], input_type: purpose },
        headers: expect.objectContaining({ authorization: 'Bearer pa-key' }),
      }),
    ])
  })

  test.each([
    ['document', 'RETRIEVAL_DOCUMENT'],
    ['query', 'RETRIEVAL_QUERY'],
  ] as const)('gemini, for a %s', async (purpose, taskType) => {
    const { url, received } = await provider({ body: { embeddings: [{ values: [0, 5] }, { values: [5, 0] }] } })
    const model = 'gemini:text-embedding-004'
    const embedder = createEmbedder(model, settings({ model: 'gemini:', baseUrl: url, apiKey: 'g-key' }))
    const vectors = await embedder.embed(['a', 'b'], purpose, never)
    expect(vectors).toEqual([new Float32Array([0, 1]), new Float32Array([1, 0])])
    const request = (text: string): object => ({
      model: 'models/text-embedding-004',
      content: { parts: [{ text }] },
      taskType,
    })
    expect(received).toEqual([
      expect.objectContaining({
        path: '/models/text-embedding-004:batchEmbedContents',
        body: { requests: [request('a'), request('b')] },
        headers: expect.objectContaining({ 'x-goog-api-key': 'g-key' }),
      }),
    ])
  })

  test('prefixes by purpose; long texts cut between code points', async () => {
    const { url, received } = await provider(data([1]))
    const embedder = openaiAt(url, { queryPrefix: 'query: ', documentPrefix: 'passage: ' })
    await embedder.embed(['q'], 'query', never)
    await embedder.embed([`a${'😀'.repeat(10_000)}`], 'document', never)
    const cut = `passage: a${'😀'.repeat((4 * 8191 - 10 - 2) / 4)}`
    expect(received.map(({ body }) => body)).toEqual([
      { model: 'some-model', input: ['query: q'] },
      { model: 'some-model', input: [cut] },
    ])
    expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(4 * 8191)
  })

  test('nothing for no texts; no more at once than the provider takes', async () => {
    const { url, received } = await provider()
    expect(await openaiAt(url).embed([], 'document', never)).toEqual([])
    expect(received).toEqual([])
    expect(createEmbedder('voyage:', settings({ batchSize: 500 })).batchSize).toBe(128)
    expect(createEmbedder('gemini:', settings({ batchSize: 20 })).batchSize).toBe(20)
  })

  test('key and base URL of the server model go to no other model', async () => {
    const { url, received } = await provider(data([1]))
    const server = settings({ model: 'openai:a', baseUrl: url, apiKey: KEY })
    await createEmbedder('openai:a', server).embed(['x'], 'document', never)
    expect(received).toHaveLength(1)
    for (const model of ['openai:b', 'voyage:', 'gemini:']) {
      expect((await failure(createEmbedder(model, server))).message).toContain('needs an API key')
    }
    expect(received).toHaveLength(1)
  })
})

describe('what is answered', () => {
  test('vectors are put in the order of their index', async () => {
    const { url } = await provider({
      body: {
        data: [
          { index: 1, embedding: [0, 1] },
          { index: 0, embedding: [1, 0] },
        ],
      },
    })
    const vectors = await openaiAt(url).embed(['a', 'b'], 'document', never)
    expect(vectors).toEqual([new Float32Array([1, 0]), new Float32Array([0, 1])])
  })

  test('the dimension: known for two models, else and behind other base URLs that of the first answer', async () => {
    expect(createEmbedder('openai:text-embedding-3-small', settings()).dimension).toBe(1536)
    expect(createEmbedder('openai:text-embedding-3-large', settings()).dimension).toBe(3072)
    const { url } = await provider(data([1, 0]), data([1, 0, 0]))
    const embedder = createEmbedder('openai:', settings({ providers: { openai: { baseUrl: url } } }))
    await embedder.embed(['a'], 'document', never)
    expect(embedder.dimension).toBe(2)
    expect(await failure(embedder)).toMatchObject({
      retryable: false,
      message: 'openai gave vectors of 3 and 2 values',
    })
  })

  test('a zero vector stays zero', async () => {
    const { url } = await provider(data([0, 0]))
    expect(await openaiAt(url).embed(['a'], 'document', never)).toEqual([new Float32Array(2)])
  })

  test.each<[string, unknown]>([
    ['not JSON', '<html>'],
    ['no data', {}],
    ['too few', { data: [] }],
    ['too many', { data: [0, 1].map((index) => ({ index, embedding: [1] })) }],
    ['an index twice', { data: [0, 0].map((index) => ({ index, embedding: [1] })) }],
    ['an index out of place', { data: [{ index: 1, embedding: [1] }] }],
    ['not numbers', { data: [{ index: 0, embedding: ['1'] }] }],
    ['null for a number', { data: [{ index: 0, embedding: [1, null] }] }],
    ['not finite', '{"data":[{"index":0,"embedding":[1e999]}]}'],
    ['no values', { data: [{ index: 0, embedding: [] }] }],
  ])('wrong shape is an error that asking again does not help: %s', async (_, body) => {
    const { url } = await provider({ body })
    expect(await failure(openaiAt(url))).toMatchObject({ retryable: false, message: expect.stringMatching(/^openai /) })
  })

  test.each([
    [400, false],
    [401, false],
    [403, false],
    [404, false],
    [408, true],
    [429, true],
    [500, true],
    [503, true],
  ])('status %i: retryable %s', async (status, retryable) => {
    const { url } = await provider({ status, body: { error: { message: 'so it is' } } })
    const error = await failure(openaiAt(url))
    expect(error).toMatchObject({ retryable, message: `openai answered ${status}: {"error":{"message":"so it is"}}` })
  })

  test('a redirect is not followed', async () => {
    const other = await provider(data([1]))
    const { url } = await provider({ status: 307, headers: { location: other.url }, body: '' })
    expect(await failure(openaiAt(url))).toMatchObject({ retryable: false })
    expect(other.received).toEqual([])
  })

  test('no key in an error, nor more than 200 characters of the answer', async () => {
    const message = `Incorrect API key provided: ${KEY}, sk-ab****yz.\n AIzaSyExample ${'long '.repeat(5000)}`
    const { url } = await provider({ status: 401, body: message })
    const { message: text } = await failure(openaiAt(url))
    expect(text).toMatch(/^openai answered 401: Incorrect API key provided: \*\*\*, \*\*\* \*\*\* long long/)
    expect(text.length).toBeLessThan(230)
  })
})

describe('what goes wrong on the way', () => {
  test('no listener, a connection cut', async () => {
    const { url } = await provider((out) => out.destroy())
    expect(await failure(openaiAt(url))).toMatchObject({
      retryable: true,
      message: expect.stringContaining('cannot be reached'),
    })
    expect(await failure(openaiAt('http://127.0.0.1:1'))).toMatchObject({ retryable: true })
  })

  test('an answer cut off in its body', async () => {
    const { url } = await provider((out) => {
      out.writeHead(200, { 'content-length': '100' })
      out.write('{"data"', () => out.destroy())
    })
    expect(await failure(openaiAt(url))).toMatchObject({ retryable: true })
  })

  test('a key that cannot be a header', async () => {
    const error = await failure(
      openaiAt('http://127.0.0.1:1', {
        providers: { openai: { apiKey: 'line\nbreak', baseUrl: 'http://127.0.0.1:1' } },
      }),
    )
    expect(error.message).not.toContain('break')
  })

  test('no answer in time', async () => {
    const { url } = await provider(() => undefined)
    expect(await failure(openaiAt(url, { timeoutMs: 30 }))).toMatchObject({
      retryable: true,
      message: 'openai gave no answer within 30 ms',
    })
  })

  test('an abort rejects with the reason of the signal', async () => {
    const control = new AbortController()
    const reason = new Error('enough')
    const { url } = await provider(() => control.abort(reason))
    await expect(openaiAt(url).embed(['a'], 'document', control.signal)).rejects.toBe(reason)
    await expect(openaiAt(url).embed(['a'], 'document', control.signal)).rejects.toBe(reason)
  })
})
