import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { version } from '../../../src/base/version.ts'
import { GatewayError } from '../../../src/gateway/errors.ts'
import { UpstreamAuthError, type UpstreamCall } from '../../../src/gateway/kinds/upstream.ts'
import { KINDS, SURFACES, type Kind } from '../../../src/gateway/model.ts'
import type { OpenCredential } from '../../../src/gateway/state/organization-state.ts'
import { call, credential, headersOf, upstreams } from './support.ts'

const make = upstreams()
const request = async (of: OpenCredential, fields: Partial<UpstreamCall> = {}) => make(of).request(call(fields))
const urlOf = async (of: OpenCredential, fields: Partial<UpstreamCall> = {}): Promise<string> => {
  const { origin, path } = await request(of, fields)
  return origin + path
}

const bedrockKeys = { config: { region: 'us-east-1' }, secrets: { api_key: 'bedrock-key' } }

describe('addresses of calls', () => {
  test.each<[Kind, string]>([
    ['openai', 'https://api.openai.com/v1'],
    ['mistral', 'https://api.mistral.ai/v1'],
    ['groq', 'https://api.groq.com/openai/v1'],
    ['ollama', 'http://127.0.0.1:11434/v1'],
  ])('%s', async (kind, base) => {
    expect(await urlOf(credential(kind))).toBe(`${base}/chat/completions`)
    expect(await urlOf(credential(kind), { surface: 'messages', stream: true })).toBe(`${base}/chat/completions`)
    expect(await urlOf(credential(kind), { surface: 'embeddings' })).toBe(`${base}/embeddings`)
    expect(await urlOf(credential(kind), { surface: 'responses' })).toBe(`${base}/responses`)
    expect(await request(credential(kind), { surface: 'models' })).toMatchObject({ method: 'GET' })
    expect(await urlOf(credential(kind), { surface: 'models' })).toBe(`${base}/models`)
    const own = credential(kind, { baseUrl: 'https://proxy.example:8443/llm/v1/' })
    expect(await urlOf(own)).toBe('https://proxy.example:8443/llm/v1/chat/completions')
  })

  test('gateway#73 Azure: by deployment and version, or without', async () => {
    const dated = credential('azure-openai', {
      config: { endpoint: 'https://x.openai.azure.com/', api_version: '2024-10-21' },
    })
    const deployments = 'https://x.openai.azure.com/openai/deployments'
    expect(await urlOf(dated, { model: 'gpt 4/o' })).toBe(
      `${deployments}/gpt%204%2Fo/chat/completions?api-version=2024-10-21`,
    )
    expect(await urlOf(dated, { surface: 'embeddings', model: 'e' })).toBe(
      `${deployments}/e/embeddings?api-version=2024-10-21`,
    )
    expect(await urlOf(dated, { surface: 'models' })).toBe(
      'https://x.openai.azure.com/openai/models?api-version=2024-10-21',
    )
    expect(headersOf(await request(dated))).toMatchObject({ 'api-key': 'key-of-the-test' })
    expect(headersOf(await request(dated))).not.toHaveProperty('authorization')

    const v1 = credential('azure-openai', { config: { endpoint: 'https://x.openai.azure.com', api_version: 'v1' } })
    expect(await urlOf(v1)).toBe('https://x.openai.azure.com/openai/v1/chat/completions')
    expect(await urlOf(v1, { surface: 'responses' })).toBe('https://x.openai.azure.com/openai/v1/responses')
    expect(make(dated).serves('responses', 'm')).toBe(false)
    expect(make(v1).serves('responses', 'm')).toBe(true)
  })

  test('anthropic', async () => {
    const one = credential('anthropic')
    expect(await urlOf(one, { surface: 'messages' })).toBe('https://api.anthropic.com/v1/messages')
    expect(await urlOf(one, { surface: 'count_tokens' })).toBe('https://api.anthropic.com/v1/messages/count_tokens')
    expect(headersOf(await request(one))).toMatchObject({
      'x-api-key': 'key-of-the-test',
      'anthropic-version': '2026-10-21',
    })
  })

  test('gemini', async () => {
    const one = credential('gemini')
    const models = 'https://generativelanguage.googleapis.com/v1beta/models'
    expect(await urlOf(one, { model: 'gemini-3-pro' })).toBe(`${models}/gemini-3-pro:generateContent`)
    expect(await urlOf(one, { model: 'g', stream: true })).toBe(`${models}/g:streamGenerateContent?alt=sse`)
    expect(await urlOf(one, { model: 'g', surface: 'embeddings' })).toBe(`${models}/g:batchEmbedContents`)
    expect(headersOf(await request(one))).toMatchObject({ 'x-goog-api-key': 'key-of-the-test' })
  })

  test('bedrock with an API key', async () => {
    const one = credential('bedrock', bedrockKeys)
    const base = 'https://bedrock-runtime.us-east-1.amazonaws.com/model'
    const arn = 'arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.x-v1:0'
    expect(await urlOf(one, { model: 'anthropic.claude-v2:1' })).toBe(`${base}/anthropic.claude-v2%3A1/converse`)
    expect(await urlOf(one, { model: arn, stream: true })).toBe(`${base}/${encodeURIComponent(arn)}/converse-stream`)
    expect(await urlOf(one, { model: 'amazon.titan', surface: 'embeddings' })).toBe(`${base}/amazon.titan/invoke`)
    expect(headersOf(await request(one))).toMatchObject({ authorization: 'Bearer bedrock-key' })
    expect(make(one).learnSkew).toBeUndefined()
    const sly = credential('bedrock', { ...bedrockKeys, config: { region: 'evil.example/x' } })
    await expect(request(sly)).rejects.toBeInstanceOf(UpstreamAuthError)
  })

  test('which surfaces a kind serves', () => {
    const served = (kind: Kind, model = 'm', config = {}) =>
      SURFACES.filter((surface) => make(credential(kind, { config })).serves(surface, model)).join(' ')
    expect(Object.fromEntries(KINDS.map((kind) => [kind, served(kind)]))).toEqual({
      openai: 'chat messages responses embeddings',
      anthropic: 'chat messages',
      gemini: 'chat messages embeddings',
      'azure-openai': 'chat messages embeddings',
      bedrock: 'chat messages embeddings',
      vertex: 'chat messages embeddings',
      mistral: 'chat messages embeddings',
      groq: 'chat messages responses',
      ollama: 'chat messages responses embeddings',
      'openai-compatible': 'chat messages embeddings',
    })
    expect(served('openai-compatible', 'm', { responses: true })).toBe('chat messages responses embeddings')
    expect(served('vertex', 'claude-opus-4')).toBe('chat messages')
  })
})

describe('headers of calls', () => {
  test("ours, the kind's own and custom ones, made once", async () => {
    const one = credential('openai', {
      config: { organization: 'org-1', project: 'proj-1' },
      customHeaders: { 'X-Team': 'blue', 'User-Agent': 'mine' },
    })
    const first = await request(one)
    expect(headersOf(first)).toEqual({
      'x-team': 'blue',
      'user-agent': `mem-gateway/${version}`,
      'content-type': 'application/json',
      'accept-encoding': 'identity',
      authorization: 'Bearer key-of-the-test',
      'openai-organization': 'org-1',
      'openai-project': 'proj-1',
    })
    expect((await request(one, { surface: 'embeddings' })).headers).toBe(first.headers)
    expect(make(one)).toBe(make(one))
  })

  test('gateway#52 betas and versions travel on a relay of their dialect', async () => {
    const forwarded = { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'b2', 'openai-beta': 'o1' }
    const one = credential('anthropic', { customHeaders: { 'anthropic-beta': 'b1' } })
    expect(headersOf(await request(one, { surface: 'messages', forwarded }))).toMatchObject({
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'b1,b2',
    })
    expect(headersOf(await request(one, { surface: 'chat', forwarded }))).toMatchObject({
      'anthropic-version': '2026-10-21',
      'anthropic-beta': 'b1',
    })
    const other = headersOf(await request(credential('openai'), { forwarded }))
    expect(other).toMatchObject({ 'openai-beta': 'o1' })
    expect(other).not.toHaveProperty('anthropic-beta')
    expect(headersOf(await request(one, { surface: 'messages' }))).not.toHaveProperty('openai-beta')
  })

  test.each([
    ['bearer', { authorization: 'Bearer key-of-the-test' }, 'x-api-key'],
    ['x-api-key', { 'x-api-key': 'key-of-the-test' }, 'authorization'],
    ['none', {}, 'authorization'],
  ])('openai-compatible with auth %s', async (auth, own, other) => {
    const headers = headersOf(
      await request(credential('openai-compatible', { baseUrl: 'https://a.b', config: { auth } })),
    )
    expect(headers).toMatchObject(own)
    expect(headers).not.toHaveProperty(other)
  })

  test('a key that no header can carry fails its own calls only', async () => {
    const broken = credential('openai', { secrets: { api_key: 'line\nbreak' } })
    await expect(request(broken)).rejects.toBeInstanceOf(UpstreamAuthError)
    await expect(request(broken)).rejects.not.toThrow(/break/)
  })
})

describe('edits of a relay', () => {
  test("gateway#51 each kind's own", () => {
    expect(make(credential('openai')).edits).toEqual({ drop: [], rename: {}, streamUsage: true, modelInBody: true })
    expect(make(credential('mistral')).edits).toMatchObject({
      rename: { max_completion_tokens: 'max_tokens', seed: 'random_seed', dimensions: 'output_dimension' },
      streamUsage: false,
    })
    expect(make(credential('groq')).edits).toMatchObject({
      drop: ['logprobs', 'top_logprobs', 'logit_bias'],
      streamUsage: false,
    })
    const config = { drop: ['store'], stream_usage: false }
    expect(make(credential('openai-compatible', { config })).edits).toMatchObject({
      drop: ['store'],
      streamUsage: false,
    })
    for (const kind of ['gemini', 'vertex', 'bedrock'] as const) {
      expect(make(credential(kind, bedrockKeys)).edits.modelInBody).toBe(false)
    }
  })
})

describe('model names in paths', () => {
  const gemini = make(credential('gemini'))
  const pathOf = (model: string): string => {
    const made = gemini.request(call({ model }))
    if (made instanceof Promise) throw new Error('nothing is to be signed')
    return made.path
  }

  const orError = (work: () => string): unknown => {
    try {
      return work()
    } catch (error) {
      return error
    }
  }

  test('any name comes back as it was, as one segment, or is refused', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string(), fc.webPath()), (model) => {
        const path = orError(() => pathOf(model))
        if (typeof path !== 'string') {
          return path instanceof GatewayError && path.code === 'invalid_value' && path.param === 'model'
        }
        const { pathname, search, hash } = new URL(path, 'https://h')
        expect(search + hash).toBe('')
        const [, , , segment = '', ...more] = pathname.split('/')
        expect(more).toEqual([])
        expect(decodeURIComponent(segment)).toBe(`${model}:generateContent`)
        expect(segment).toMatch(/^[\w.~%-]+:generateContent$/)
        return true
      }),
    )
  })

  test.each(['', '..', 'a/../b', 'a\\..\\b', './a', 'a\u0000', 'a\nb', 'a\u0085', '\ud800', 'é'.repeat(257)])(
    '%j is refused',
    (model) => {
      expect(() => pathOf(model)).toThrow(GatewayError)
    },
  )

  test.each(['a..b', '...', 'meta/llama', 'x'.repeat(512), 'a%2e%2e', 'modèle'])('%j is not', (model) => {
    expect(() => pathOf(model)).not.toThrow()
  })
})
