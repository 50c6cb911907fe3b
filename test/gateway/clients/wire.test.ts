import { afterEach, expect, test } from 'vitest'
import type { Upstream, UpstreamCall } from '../../../src/gateway/kinds/upstream.ts'
import type { Kind } from '../../../src/gateway/model.ts'
import { wholeAnswer, type WholeAnswer } from '../../../src/gateway/outbound/whole-answer.ts'
import type { OpenCredential } from '../../../src/gateway/state/organization-state.ts'
import { startFakeModel, type FakeModel, type FakeOptions } from '../../support/fake-model/index.ts'
import { AWS_REGION } from '../../support/fake-model/providers/aws.ts'
import { BEDROCK_API_KEY } from '../../support/fake-model/providers/bedrock.ts'
import { CONTAINER_PATH, CONTAINER_TOKEN, ROLE_ARN } from '../../support/fake-model/providers/cloud-roles.ts'
import { adjustableClock } from '../../support/memory-api.ts'
import { call, credential, upstreams } from '../kinds/support.ts'

const running: FakeModel[] = []
afterEach(async () => void (await Promise.all(running.splice(0).map((fake) => fake.close()))))

async function start(options: FakeOptions): Promise<FakeModel> {
  const fake = await startFakeModel(options)
  running.push(fake)
  return fake
}

/** The credential for a fake as a process holds it: secrets apart. */
function opened({ credential: fields }: FakeModel, kind: Kind, more: Partial<OpenCredential> = {}): OpenCredential {
  const { base_url: baseUrl, api_key: apiKey } = fields
  const { secret_access_key: secret, service_account: account, ...config } = Object(fields['config'])
  const secrets = Object.entries({ api_key: apiKey, secret_access_key: secret, service_account: account })
  return credential(kind, {
    ...(typeof baseUrl === 'string' && { baseUrl }),
    secrets: Object.fromEntries(secrets.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : []))),
    ...more,
    config: { ...config, ...more.config },
  })
}

async function post(upstream: Upstream, of: Partial<UpstreamCall>, body: unknown): Promise<WholeAnswer> {
  const bytes = Buffer.from(JSON.stringify(body))
  const request = await upstream.request(call({ ...of, body: bytes }))
  const options = { body: bytes, signal: AbortSignal.timeout(5000), maxBytes: 1_000_000 }
  return wholeAnswer(upstream.dispatcher, request, options)
}

async function answer(upstream: Upstream, of: Partial<UpstreamCall>, body: unknown): Promise<string> {
  const response = await post(upstream, of, body)
  return `${response.status} ${response.body.toString()}`
}

const messages = [{ role: 'user', content: 'Hello there' }]
const chat = { messages, model: 'm' }
const gemini = { contents: [{ role: 'user', parts: [{ text: 'Hello there' }] }] }
const converse = { messages: [{ role: 'user', content: [{ text: 'Hello there' }] }] }
const BODIES: [Kind, string, object][] = [
  ['openai', 'm', chat],
  ['anthropic', 'm', { ...chat, max_tokens: 50 }],
  ['gemini', 'gemini-2.5-flash', gemini],
  ['azure-openai', 'my deployment', { messages }],
  ['bedrock', 'arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.anthropic.claude-x-v1:0', converse],
  ['vertex', 'gemini-2.5-flash', gemini],
  ['vertex', 'claude-sonnet-4-5@20250929', { anthropic_version: 'vertex-2023-10-16', max_tokens: 50, messages }],
  ['mistral', 'm', chat],
  ['groq', 'm', chat],
  ['ollama', 'm', chat],
  ['openai-compatible', 'm', chat],
]

test.each(BODIES)(
  'gateway#16 what %s gets of %s passes its checks, whole and as a stream',
  async (kind, model, body) => {
    const fake = await start({ provider: kind })
    const upstream = upstreams({ tokenAddress: `${fake.url}/token` })(opened(fake, kind))
    expect(await answer(upstream, { model }, body)).toMatch(/^200 [^]*You said: Hello there/)
    const nativeStream = ['gemini', 'converse'].includes(upstream.dialectOf(model)) ? {} : { stream: true }
    expect(await answer(upstream, { model, stream: true }, { ...body, ...nativeStream })).toMatch(
      /^200 [^]*You[^]*said[^]*there/,
    )
  },
)

test('gateway#73 Azure with v1 names the deployment in the body', async () => {
  const fake = await start({ provider: 'azure-openai' })
  const upstream = upstreams()(opened(fake, 'azure-openai', { config: { api_version: 'v1' } }))
  expect(await answer(upstream, { model: 'gpt' }, { messages, model: 'gpt' })).toMatch(/^200/)
  expect(fake.received[0]?.url).toBe('/openai/v1/chat/completions')
})

test('gateway#70 a skewed clock is learnt from one refusal; API keys need no signature', async () => {
  const clock = adjustableClock()
  clock.advance(3_600_000)
  const fake = await start({ provider: 'bedrock', clock })
  const upstream = upstreams()(opened(fake, 'bedrock'))
  const signed = await upstream.request(call({ model: 'm' }))
  const refused = await post(upstream, { model: 'm' }, converse)
  expect(refused.status).toBe(403)
  expect(upstream.learnSkew?.(signed, refused)).toBe(true)
  expect(await answer(upstream, { model: 'm' }, converse)).toMatch(/^200/)
  const byKey = upstreams()(
    credential('bedrock', { baseUrl: fake.url, secrets: { api_key: BEDROCK_API_KEY }, config: { region: AWS_REGION } }),
  )
  expect(await answer(byKey, { model: 'm' }, converse)).toMatch(/^200/)
})

test('gateway#72 one exchange for a hundred calls at once, another before the token ends', async () => {
  const clock = adjustableClock()
  const fake = await start({ provider: 'vertex', clock })
  const upstream = upstreams({ clock, tokenAddress: `${fake.url}/token` })(opened(fake, 'vertex'))
  const ask = (): Promise<string> => answer(upstream, { model: 'gemini-2.5-flash' }, gemini)
  const answers = await Promise.all(Array.from({ length: 100 }, ask))
  expect(answers.every((each) => each.startsWith('200'))).toBe(true)
  expect(fake.exchanges).toBe(1)
  clock.advance(56 * 60_000)
  await ask()
  await expect.poll(() => fake.exchanges).toBe(2)
  clock.advance(60 * 60_000)
  expect(await ask()).toMatch(/^200/)
})

test.each([
  [
    'the container endpoint',
    (url: string) => ({
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}${CONTAINER_PATH}`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN: CONTAINER_TOKEN,
    }),
  ],
  ['instance metadata', (url: string) => ({ AWS_EC2_METADATA_SERVICE_ENDPOINT: url })],
])('gateway#21 a role by %s, then another by STS', async (_name, environment) => {
  const [cloud, fake] = [await start({ provider: 'cloud-roles' }), await start({ provider: 'bedrock' })]
  const make = upstreams({
    runtimeRoles: ['*'],
    environment: { AWS_ENDPOINT_URL_STS: cloud.url, ...environment(cloud.url) },
  })
  const config = { region: AWS_REGION, use_runtime_role: true }
  for (const more of [{}, { role_arn: ROLE_ARN }]) {
    const upstream = make(credential('bedrock', { baseUrl: fake.url, secrets: {}, config: { ...config, ...more } }))
    expect(await answer(upstream, { model: 'm' }, converse)).toMatch(/^200/)
  }
  expect(cloud.exchanges).toBe(2)
})

test('gateway#21 the role of a machine at Google', async () => {
  const [cloud, fake] = [await start({ provider: 'cloud-roles' }), await start({ provider: 'vertex' })]
  const make = upstreams({ runtimeRoles: ['*'], environment: { GCE_METADATA_HOST: `127.0.0.1:${cloud.port}` } })
  const { service_account: _account, ...config } = Object(fake.credential['config'])
  const upstream = make(
    credential('vertex', { baseUrl: fake.url, secrets: {}, config: { ...config, use_runtime_role: true } }),
  )
  expect(await answer(upstream, { model: 'gemini-2.5-flash' }, gemini)).toMatch(/^200/)
})
