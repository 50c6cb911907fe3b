import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import type { UpstreamParts } from '../../../src/gateway/kinds/index.ts'
import { UpstreamAuthError } from '../../../src/gateway/kinds/upstream.ts'
import { adjustableClock } from '../../support/memory-api.ts'
import { answering, call, credential, headersOf, upstreams, type Listening } from './support.ts'

const open: { close(): Promise<void> }[] = []
const directory = mkdtempSync(join(tmpdir(), 'mem-roles-'))
const tokenFile = join(directory, 'token')
writeFileSync(tokenFile, 'web-identity-token\n')
afterEach(async () => {
  for (const each of open.splice(0)) await each.close()
})
afterAll(() => rmSync(directory, { recursive: true }))

const clock = adjustableClock()
const inAnHour = (): string => new Date(clock.now() + 3_600_000).toISOString()

/** STS, container credentials and instance metadata at one address. */
async function cloud(): Promise<Listening & { issued: number; status: number }> {
  const state = { issued: 0, status: 200 }
  const server = await answering(({ method, url, body }, response) => {
    const keys = (who: string) => `${who}-${++state.issued}`
    if (state.status !== 200) {
      const error =
        '<ErrorResponse><Error><Code>AccessDenied</Code><Message>not yours</Message></Error></ErrorResponse>'
      return void response.writeHead(state.status).end(error)
    }
    if (url === '/latest/api/token' && method === 'PUT') return void response.end('session-of-metadata')
    if (url === '/latest/meta-data/iam/security-credentials/') return void response.end('machine-role\n')
    if (method === 'GET') {
      const told = { AccessKeyId: keys(url), SecretAccessKey: 's', Token: 't', Expiration: inAnHour() }
      return void response.end(JSON.stringify(told))
    }
    const action = new URLSearchParams(body).get('Action')
    response.end(`<${action}Response><${action}Result><Credentials><AccessKeyId>${keys(String(action))}</AccessKeyId>
      <SecretAccessKey>s</SecretAccessKey><SessionToken>t+/=</SessionToken><Expiration>${inAnHour()}</Expiration>
      </Credentials></${action}Result></${action}Response>`)
  })
  open.push(server)
  return Object.assign(state, server)
}

const roleCredential = (config = {}) =>
  credential('bedrock', { config: { region: 'us-east-1', use_runtime_role: true, ...config }, secrets: {} })

function using(environment: Record<string, string>, parts: Partial<UpstreamParts> = {}, config = {}) {
  const upstream = upstreams({ clock, environment, runtimeRoles: ['*'], ...parts })(roleCredential(config))
  return async (): Promise<Record<string, string>> => headersOf(await upstream.request(call()))
}

const keyIn = (headers: Record<string, string>): string =>
  /Credential=(.*?)\/\d{8}\//.exec(headers['authorization'] ?? '')?.[1] ?? ''

describe('gateway#21 roles of the process', () => {
  test('web identity comes first, and needs no signature', async () => {
    const { url, received } = await cloud()
    const environment = {
      AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile,
      AWS_ROLE_ARN: 'arn:aws:iam::1:role/pod',
      AWS_ENDPOINT_URL_STS: url,
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/container`,
    }
    const headers = await using(environment)()
    expect(keyIn(headers)).toBe('AssumeRoleWithWebIdentity-1')
    expect(headers['x-amz-security-token']).toBe('t+/=')
    expect(Object.fromEntries(new URLSearchParams(received[0]?.body))).toEqual({
      Version: '2011-06-15',
      Action: 'AssumeRoleWithWebIdentity',
      RoleArn: 'arn:aws:iam::1:role/pod',
      RoleSessionName: 'mem-gateway',
      WebIdentityToken: 'web-identity-token',
    })
    expect(received[0]?.headers).not.toHaveProperty('authorization')
  })

  test('then the container endpoint, with its token', async () => {
    const { url, received } = await cloud()
    const environment = {
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/container`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: tokenFile,
      AWS_EC2_METADATA_SERVICE_ENDPOINT: url,
    }
    expect(keyIn(await using(environment)())).toBe('/container-1')
    expect(received).toMatchObject([{ headers: { authorization: 'web-identity-token' } }])
  })

  test('then instance metadata, version 2', async () => {
    const { url, received } = await cloud()
    const headers = await using({ AWS_EC2_METADATA_SERVICE_ENDPOINT: `${url}/`, AWS_WEB_IDENTITY_TOKEN_FILE: '' })()
    expect(keyIn(headers)).toBe('/latest/meta-data/iam/security-credentials/machine-role-1')
    expect(received).toMatchObject([
      { method: 'PUT', headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '21600' } },
      { method: 'GET', headers: { 'x-aws-ec2-metadata-token': 'session-of-metadata' } },
      { method: 'GET', headers: { 'x-aws-ec2-metadata-token': 'session-of-metadata' } },
    ])
  })

  test('role_arn is assumed with them, signed', async () => {
    const { url, received } = await cloud()
    const environment = { AWS_EC2_METADATA_SERVICE_ENDPOINT: url, AWS_ENDPOINT_URL_STS: url }
    const headers = await using(environment, {}, { role_arn: 'arn:aws:iam::2:role/bedrock' })()
    expect(keyIn(headers)).toBe('AssumeRole-2')
    const sts = received.at(-1)
    expect(Object.fromEntries(new URLSearchParams(sts?.body))).toMatchObject({
      Action: 'AssumeRole',
      RoleArn: 'arn:aws:iam::2:role/bedrock',
      RoleSessionName: 'mem-gateway-7',
    })
    expect(sts?.headers['authorization']).toMatch(/machine-role-1\/\d{8}\/us-east-1\/sts\/aws4_request/)
    expect(sts?.headers['x-amz-security-token']).toBe('t')
  })

  test('100 calls at once ask once; keys are renewed 5 min early by one call, the old ones used meanwhile', async () => {
    const state = await cloud()
    const request = using({ AWS_CONTAINER_CREDENTIALS_FULL_URI: `${state.url}/c` })
    const hundred = async () => new Set((await Promise.all(Array.from({ length: 100 }, request))).map(keyIn))
    expect(await hundred()).toEqual(new Set(['/c-1']))
    clock.advance(54 * 60_000)
    expect(await hundred()).toEqual(new Set(['/c-1']))
    expect(state.received).toHaveLength(1)
    clock.advance(60_001)
    expect(await hundred()).toEqual(new Set(['/c-1']))
    await expect.poll(async () => keyIn(await request())).toBe('/c-2')
    expect(state.received).toHaveLength(2)
  })

  test('a renewal that fails is tried again, not at each call; at the end it shows', async () => {
    const state = await cloud()
    const warnings: object[] = []
    const log = { info: () => undefined, error: () => undefined, warn: (fields: object) => void warnings.push(fields) }
    const request = using({ AWS_CONTAINER_CREDENTIALS_FULL_URI: `${state.url}/c` }, { log })
    await request()
    state.status = 403
    clock.advance(56 * 60_000)
    for (let i = 0; i < 20; i++) await request()
    await expect.poll(() => warnings.length).toBe(1)
    for (let i = 0; i < 20; i++) expect(keyIn(await request())).toBe('/c-1')
    expect(state.received).toHaveLength(2)
    clock.advance(5 * 60_000)
    await expect(request()).rejects.toBeInstanceOf(UpstreamAuthError)
    state.status = 200
    expect(keyIn(await request())).toBe('/c-2')
  })

  test("a refusal is the credential's; trouble that may pass is not", async () => {
    const state = await cloud()
    const environment = { AWS_WEB_IDENTITY_TOKEN_FILE: tokenFile, AWS_ROLE_ARN: 'arn', AWS_ENDPOINT_URL_STS: state.url }
    state.status = 403
    await expect(using(environment)()).rejects.toThrow('STS answered 403: AccessDenied, not yours')
    await expect(using(environment)()).rejects.toBeInstanceOf(UpstreamAuthError)
    state.status = 503
    await expect(using(environment)()).rejects.not.toBeInstanceOf(UpstreamAuthError)
    const missing = { ...environment, AWS_WEB_IDENTITY_TOKEN_FILE: join(directory, 'none') }
    await expect(using(missing)()).rejects.toBeInstanceOf(UpstreamAuthError)
    await expect(using({ AWS_EC2_METADATA_DISABLED: 'true' })()).rejects.toBeInstanceOf(UpstreamAuthError)
  })

  test('only organizations of gateway.runtime_roles, and no private credentials', async () => {
    const { url } = await cloud()
    const environment = { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/c`, GCE_METADATA_HOST: url.slice(7) }
    for (const runtimeRoles of [[], [8]]) {
      await expect(using(environment, { runtimeRoles })()).rejects.toBeInstanceOf(UpstreamAuthError)
    }
    await expect(using(environment, { runtimeRoles: [7] })()).resolves.toBeDefined()
    const make = upstreams({ clock, environment, runtimeRoles: ['*'] })
    expect(() => make({ ...roleCredential(), userId: 3 }).request(call())).toThrow(UpstreamAuthError)
  })
})
