import { generateKeyPairSync } from 'node:crypto'
import { decodeProtectedHeader, jwtVerify } from 'jose'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { UpstreamAuthError, type Upstream } from '../../../src/gateway/kinds/upstream.ts'
import { adjustableClock } from '../../support/memory-api.ts'
import { answering, call, credential, headersOf, upstreams, type Listening } from './support.ts'

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const account = (fields = {}): string =>
  JSON.stringify({
    type: 'service_account',
    client_email: 'robot@project.iam.gserviceaccount.com',
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    private_key_id: 'kid-1',
    token_uri: 'https://oauth2.googleapis.com/token',
    ...fields,
  })

let clock: ReturnType<typeof adjustableClock>
let google: Listening
let status: number
beforeEach(async () => {
  clock = adjustableClock()
  status = 200
  google = await answering((_, response) => {
    if (status !== 200) {
      const error = { error: 'invalid_grant', error_description: 'Invalid JWT Signature.' }
      return void response.writeHead(status).end(JSON.stringify(error))
    }
    response.end(
      JSON.stringify({ access_token: `token-${google.received.length}`, expires_in: 3599, token_type: 'Bearer' }),
    )
  })
})
afterEach(() => google.close())

const vertexCredential = (fields = {}, secrets: Record<string, string> = { service_account: account() }) =>
  credential('vertex', { config: { project: 'my-project', location: 'europe-west4', ...fields }, secrets })

const vertex = (fields = {}, secrets?: Record<string, string>): Upstream =>
  upstreams({
    clock,
    tokenAddress: google.url,
    runtimeRoles: [7],
    environment: { GCE_METADATA_HOST: google.url.slice('http://'.length) },
  })(vertexCredential(fields, secrets))

const bearer = async (upstream: Upstream): Promise<string | undefined> =>
  headersOf(await upstream.request(call({ model: 'gemini-3-pro' })))['authorization']

describe('vertex', () => {
  test('gateway#72 the assertion: RS256, issuer, scope, audience, one hour', async () => {
    expect(await bearer(vertex())).toBe('Bearer token-1')
    const [exchange] = google.received
    expect(exchange).toMatchObject({ method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' } })
    const form = new URLSearchParams(exchange?.body)
    expect(form.get('grant_type')).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer')
    const assertion = form.get('assertion') ?? ''
    expect(decodeProtectedHeader(assertion)).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'kid-1' })
    const { payload } = await jwtVerify(assertion, publicKey, { audience: 'https://oauth2.googleapis.com/token' })
    expect(payload).toMatchObject({
      iss: 'robot@project.iam.gserviceaccount.com',
      scope: 'https://www.googleapis.com/auth/cloud-platform',
    })
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(3600)
  })

  test('gateway#72 one exchange for 100 parallel calls, another one 5 min before the end, credentials of one account share', async () => {
    const make = upstreams({ clock, tokenAddress: google.url })
    const two = [make(vertexCredential()), make(vertexCredential({ location: 'global' }))] as const
    const hundred = async () =>
      new Set(await Promise.all(Array.from({ length: 100 }, (_, i) => bearer(two[i % 2 === 0 ? 0 : 1]))))
    expect(await hundred()).toEqual(new Set(['Bearer token-1']))
    expect(two[0].request(call({ model: 'gemini-3-pro' }))).not.toBeInstanceOf(Promise)
    clock.advance((3599 - 301) * 1000)
    expect(await hundred()).toEqual(new Set(['Bearer token-1']))
    expect(google.received).toHaveLength(1)
    clock.advance(2000)
    expect(await hundred()).toEqual(new Set(['Bearer token-1']))
    await expect.poll(() => bearer(two[0])).toBe('Bearer token-2')
    expect(google.received).toHaveLength(2)
  })

  test("gateway#72 a refusal is the credential's", async () => {
    status = 400
    await expect(bearer(vertex())).rejects.toThrow(
      'the token exchange answered 400: invalid_grant, Invalid JWT Signature.',
    )
    await expect(bearer(vertex())).rejects.toBeInstanceOf(UpstreamAuthError)
    status = 503
    await expect(bearer(vertex())).rejects.not.toBeInstanceOf(UpstreamAuthError)
  })

  test('gateway#72 another token_uri, a broken key, no key: refused without a call', async () => {
    const broken = ['{', '{}', account({ token_uri: google.url }), account({ private_key: 'none' })]
    for (const service_account of broken) {
      await expect(bearer(vertex({}, { service_account }))).rejects.toBeInstanceOf(UpstreamAuthError)
    }
    await expect(async () => bearer(vertex({}, {}))).rejects.toBeInstanceOf(UpstreamAuthError)
    expect(google.received).toHaveLength(0)
  })

  test('gateway#21 the role of this machine, by its metadata server', async () => {
    expect(await bearer(vertex({ use_runtime_role: true }, {}))).toBe('Bearer token-1')
    expect(google.received).toMatchObject([
      {
        method: 'GET',
        url: '/computeMetadata/v1/instance/service-accounts/default/token',
        headers: { 'metadata-flavor': 'Google' },
      },
    ])
  })

  test('gateway#21 the token of this machine goes to Google, or where the operator allows', async () => {
    const make = upstreams({ clock, runtimeRoles: ['*'], environment: { GCE_METADATA_HOST: google.url.slice(7) } })
    const tokenAt = (baseUrl: string) => async () =>
      make({ ...vertexCredential({ use_runtime_role: true }, {}), baseUrl }).request(call())
    await expect(tokenAt('https://sly.example')()).rejects.toBeInstanceOf(UpstreamAuthError)
    await expect(tokenAt('https://xgoogleapis.com')()).rejects.toBeInstanceOf(UpstreamAuthError)
    await expect(tokenAt('https://us-east1-aiplatform.googleapis.com')()).resolves.toBeDefined()
    await expect(tokenAt('http://127.0.0.1:9')()).resolves.toBeDefined()
  })

  test('the paths of Gemini and Claude', async () => {
    const one = vertex()
    const of = async (upstream: Upstream, fields: Parameters<typeof call>[0]) => {
      const { origin, path } = await upstream.request(call(fields))
      return origin + path
    }
    const base =
      'https://europe-west4-aiplatform.googleapis.com/v1/projects/my-project/locations/europe-west4/publishers'
    expect(await of(one, { model: 'gemini-3-pro' })).toBe(`${base}/google/models/gemini-3-pro:generateContent`)
    expect(await of(one, { model: 'g', stream: true })).toBe(`${base}/google/models/g:streamGenerateContent?alt=sse`)
    expect(await of(one, { model: 'e', surface: 'embeddings' })).toBe(`${base}/google/models/e:predict`)
    const claude = { model: 'claude-opus-4@20250514', surface: 'messages' } as const
    expect(await of(one, claude)).toBe(`${base}/anthropic/models/claude-opus-4%4020250514:rawPredict`)
    expect(await of(one, { ...claude, stream: true })).toMatch(/:streamRawPredict$/)
    expect(await of(one, { ...claude, surface: 'count_tokens' })).toBe(
      `${base}/anthropic/models/count-tokens:rawPredict`,
    )
    const global = vertex({ location: 'global' })
    expect(await of(global, { model: 'g' })).toMatch(
      'https://aiplatform.googleapis.com/v1/projects/my-project/locations/global/',
    )
    expect([one.dialectOf('claude-x'), one.dialectOf('gemini-x')]).toEqual(['anthropic', 'gemini'])
    expect(() => vertex({ location: 'evil.example/' }).request(call())).toThrow(UpstreamAuthError)
  })
})
