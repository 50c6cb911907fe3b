import { createServer } from 'node:net'
import { once } from 'node:events'
import { afterEach, describe, expect, test } from 'vitest'
import { createCredentialTest, type TestOptions, type TestResult } from '../../../src/gateway/kinds/test.ts'
import { AddressRefusedError } from '../../../src/gateway/kinds/upstream.ts'
import { KINDS, type Kind } from '../../../src/gateway/model.ts'
import type { OpenCredential } from '../../../src/gateway/state/organization-state.ts'
import { startFakeModel, type FakeModel } from '../../support/fake-model/index.ts'
import { adjustableClock } from '../../support/memory-api.ts'
import { answering, credential, network, upstreams } from './support.ts'

const open: { close(): Promise<void> }[] = []
afterEach(async () => {
  for (const each of open.splice(0)) await each.close()
})

async function provider(kind: Kind, clock?: { now(): number }): Promise<FakeModel> {
  const fake = await startFakeModel({ provider: kind, ...(clock && { clock }) })
  open.push(fake)
  return fake
}

const texts = (fields: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(Object(fields)).filter((pair): pair is [string, string] => typeof pair[1] === 'string'),
  )

/** The credential for a fake, opened. */
function opened(fake: FakeModel, kind: Kind, fields: Partial<OpenCredential> = {}): OpenCredential {
  const { base_url: baseUrl, api_key: key, config = {} } = fake.credential
  const { secret_access_key: secret, service_account: account } = texts(config)
  return credential(kind, {
    baseUrl: typeof baseUrl === 'string' ? baseUrl : undefined,
    secrets: {
      ...(typeof key === 'string' && { api_key: key }),
      ...(secret !== undefined && { secret_access_key: secret }),
      ...(account !== undefined && { service_account: account }),
    },
    ...fields,
    config: { ...Object(config), ...fields.config },
  })
}

const tester = (fake?: FakeModel, patienceMs = 5000) => {
  const makeUpstream = upstreams(fake ? { tokenAddress: `${fake.url}/token` } : {})
  return createCredentialTest({ makeUpstream, clock: adjustableClock(), patienceMs })
}

const tried = (of: OpenCredential, options: TestOptions = {}, fake?: FakeModel): Promise<TestResult> =>
  tester(fake)(of, options)

const MODELS: Partial<Record<Kind, string>> = {
  anthropic: 'claude-sonnet-5',
  gemini: 'gemini-3-pro',
  bedrock: 'anthropic.claude-sonnet-5-v1:0',
  vertex: 'gemini-3-pro',
}

describe('gateway#16 the test of a credential', () => {
  test.each(KINDS)('%s: a good one, by auth and chat', async (kind) => {
    const fake = await provider(kind)
    const one = opened(fake, kind, { defaultModel: MODELS[kind] ?? 'gpt-5.2' })
    const auth = await tried(one, {}, fake)
    expect(auth).toMatchObject({ ok: true, mode: kind === 'bedrock' ? 'chat' : 'auth' })
    const listsNone = kind === 'bedrock' || kind === 'vertex'
    expect((auth.models ?? []).length === 0).toBe(listsNone)
    const chat = await tried(one, { mode: 'chat' }, fake)
    expect(chat).toMatchObject({ ok: true, mode: 'chat', status: 200, latency_ms: expect.any(Number) })
  })

  test('vertex: Claude in its own dialect', async () => {
    const fake = await provider('vertex')
    const result = await tried(opened(fake, 'vertex'), { mode: 'chat', model: 'claude-sonnet-5' }, fake)
    expect(result).toMatchObject({ ok: true, status: 200 })
  })

  test.each<[Kind, string]>([
    ['openai', 'text-embedding-3-small'],
    ['gemini', 'gemini-embedding-001'],
    ['azure-openai', 'text-embedding-3-small'],
    ['bedrock', 'amazon.titan-embed-text-v2:0'],
    ['bedrock', 'cohere.embed-v4'],
    ['vertex', 'text-embedding-005'],
    ['mistral', 'mistral-embed'],
    ['ollama', 'nomic-embed-text'],
    ['openai-compatible', 'bge-m3'],
  ])('%s: embeddings by %s', async (kind, model) => {
    const fake = await provider(kind)
    const result = await tried(opened(fake, kind), { mode: 'embeddings', model }, fake)
    expect(result).toMatchObject({ ok: true, mode: 'embeddings', status: 200, model })
  })

  test.each(KINDS.filter((kind) => kind !== 'vertex' && kind !== 'ollama'))('%s: a wrong key', async (kind) => {
    const fake = await provider(kind)
    const secrets: Record<string, string> =
      kind === 'bedrock' ? { secret_access_key: 'wrong-secret-0123' } : { api_key: 'wrong-key-0123' }
    const result = await tried(opened(fake, kind, { secrets, defaultModel: MODELS[kind] ?? 'gpt-5.2' }))
    expect(result).toMatchObject({ ok: false, error: { code: 'upstream_credentials_rejected' } })
    expect(JSON.stringify(result)).not.toMatch(/wrong-(key|secret)/)
  })

  test('vertex: an account that Google does not know', async () => {
    const fake = await provider('vertex')
    const account = JSON.parse(texts(fake.credential['config'])['service_account'] ?? '')
    const secrets = { service_account: JSON.stringify({ ...account, client_email: 'other@x.example' }) }
    expect(await tried(opened(fake, 'vertex', { secrets }), {}, fake)).toMatchObject({
      ok: false,
      error: { code: 'upstream_credentials_rejected', message: expect.stringContaining('invalid_grant') },
    })
  })

  test.each<Kind>(['azure-openai', 'bedrock', 'gemini', 'openai'])('%s: a wrong deployment or model', async (kind) => {
    const fake = await provider(kind)
    const result = await tried(opened(fake, kind), { mode: 'chat', model: 'missing-model' }, fake)
    expect(result).toMatchObject({ ok: false, model: 'missing-model', error: { code: 'model_not_found' } })
  })

  test('a mapping and a deployment name what is called', async () => {
    const fake = await provider('azure-openai')
    const one = opened(fake, 'azure-openai', {
      defaultModel: 'gpt-5.2',
      modelMapping: new Map([['fast', 'mini-deployment']]),
      config: { deployment: 'my-deployment' },
    })
    expect(await tried(one, { mode: 'chat' })).toMatchObject({ model: 'my-deployment' })
    expect(await tried(one, { mode: 'chat', model: 'fast' })).toMatchObject({ model: 'mini-deployment' })
    expect(await tried(one, { mode: 'chat', model: 'other' })).toMatchObject({ model: 'other' })
    expect(await tried(credential('openai'), { mode: 'chat' })).toMatchObject({
      ok: false,
      error: { code: 'missing_required_parameter' },
    })
  })

  test.each(['anthropic', 'groq', 'vertex'] as const)(
    '%s is not asked for embeddings it does not serve',
    async (kind) => {
      const fake = await provider(kind)
      const one = opened(fake, kind, { defaultModel: 'claude-sonnet-5' })
      expect(await tried(one, { mode: 'embeddings' }, fake)).toEqual({
        ok: false,
        mode: 'embeddings',
        model: 'claude-sonnet-5',
        latency_ms: expect.any(Number),
        error: { code: 'unsupported_parameter', message: `${kind} does not serve claude-sonnet-5 for embeddings` },
      })
      expect(fake.received).toEqual([])
    },
  )

  test('nobody there, an address that is refused, a redirect, no JSON, silence', async () => {
    const server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    server.close()
    const at = (baseUrl: string): OpenCredential => credential('openai', { baseUrl })
    expect(await tried(at(`http://127.0.0.1:${port}`))).toMatchObject({ ok: false, error: { code: 'unreachable' } })
    await expect(tried(at('https://10.0.0.1/v1'))).rejects.toBeInstanceOf(AddressRefusedError)

    const answers = await answering(({ url }, response) => {
      if (url.startsWith('/far')) response.writeHead(302, { location: 'http://169.254.169.254/' }).end()
      else if (url.startsWith('/page')) response.end('<html>')
    })
    open.push(answers)
    expect((await tried(at(answers.url.replace('http:', 'https:')))).error).toEqual({
      code: 'unreachable',
      message: expect.stringMatching(/^the provider cannot be reached: TLS fails, [a-z ]+$/),
    })
    expect(await tried(at(`${answers.url}/far`))).toMatchObject({
      ok: false,
      status: 302,
      error: { code: 'upstream_error' },
    })
    expect(await tried(at(`${answers.url}/page`))).toMatchObject({
      ok: false,
      error: { code: 'upstream_invalid_response' },
    })
    const silent = await tester(undefined, 200)(at(`${answers.url}/silent`))
    expect(silent).toMatchObject({ ok: false, error: { code: 'upstream_timeout' } })
  })

  test('gateway#100 a provider that echoes a secret does not make us tell it', async () => {
    const key = 'not-a-known-form-of-key'
    const echo = await answering(({ headers }, response) => {
      const message = `bad key ${headers['authorization']}, header ${String(headers['x-team'])}`
      response.writeHead(401).end(JSON.stringify({ error: { message } }))
    })
    open.push(echo)
    const one = credential('openai', {
      baseUrl: echo.url,
      secrets: { api_key: key },
      customHeaders: { 'x-team': 'blue-secret' },
    })
    const result = await tried(one)
    expect(result.error?.message).toMatch(/bad key/)
    expect(JSON.stringify(result)).not.toContain(key)
    expect(JSON.stringify(result)).not.toContain('blue-secret')
  })

  test('gateway#100 names of models that hold a secret, and long ones', async () => {
    const data = [{ id: 'gpt-with-key-of-the-team' }, { id: '🦊'.repeat(300) }]
    const echo = await answering((_request, response) => void response.end(JSON.stringify({ data })))
    open.push(echo)
    const secrets = { api_key: 'key-of-the-team' }
    const { models } = await tried(credential('openai', { baseUrl: echo.url, secrets }))
    expect(models).toEqual([expect.stringMatching(/^gpt-with-(?!key)/), '🦊'.repeat(256)])
  })

  test('gateway#70 signatures that the provider checks; a clock that is off is corrected once', async () => {
    const ahead = adjustableClock()
    ahead.advance(20 * 60_000)
    const fake = await provider('bedrock', ahead)
    const arn = 'arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-5-v1:0'
    for (const model of ['anthropic.claude-sonnet-5-v1:0', arn]) {
      expect(await tried(opened(fake, 'bedrock'), { model })).toMatchObject({ ok: true, model })
    }
    expect(fake.received.map(({ status }) => status)).toEqual([403, 200, 403, 200])
  })

  test('gateway#21 keys of roles, as STS and Bedrock take them', async () => {
    const clock = adjustableClock()
    const [cloud, fake] = [await startFakeModel({ provider: 'cloud-roles', clock }), await provider('bedrock', clock)]
    open.push(cloud)
    const makeUpstream = upstreams({
      clock,
      network: network(),
      runtimeRoles: ['*'],
      environment: { AWS_EC2_METADATA_SERVICE_ENDPOINT: cloud.url, AWS_ENDPOINT_URL_STS: cloud.url },
    })
    const { config } = cloud.credential
    const trial = createCredentialTest({ makeUpstream, clock })
    const one = credential('bedrock', { baseUrl: fake.url, config: Object(config), secrets: {} })
    expect(await trial(one, { model: 'anthropic.claude-sonnet-5-v1:0' })).toMatchObject({ ok: true })
    expect(cloud.exchanges).toBe(2)
  })
})
