import { AwsV4Signer } from 'aws4fetch'
import { importPKCS8, SignJWT } from 'jose'
import { crc32 } from 'node:zlib'
import { afterEach, expect, test } from 'vitest'
import { startFakeModel, type FakeModel, type FakeOptions } from '../../support/fake-model/index.ts'
import { AWS_KEY_ID, AWS_REGION, AWS_SECRET } from '../../support/fake-model/providers/aws.ts'
import { AZURE_KEY } from '../../support/fake-model/providers/azure.ts'
import { BEDROCK_API_KEY } from '../../support/fake-model/providers/bedrock.ts'
import { GEMINI_KEY } from '../../support/fake-model/providers/gemini.ts'
import {
  CONTAINER_PATH,
  CONTAINER_TOKEN,
  INSTANCE_ROLE,
  ROLE_ARN,
  WEB_IDENTITY_TOKEN,
} from '../../support/fake-model/providers/cloud-roles.ts'
import { serviceAccount, VERTEX_LOCATION, VERTEX_PROJECT } from '../../support/fake-model/providers/vertex.ts'
import { adjustableClock } from '../../support/memory-api.ts'
import { WEATHER } from './support.ts'

const running: FakeModel[] = []
afterEach(async () => void (await Promise.all(running.splice(0).map((fake) => fake.close()))))

async function start(options: FakeOptions): Promise<FakeModel> {
  const fake = await startFakeModel(options)
  running.push(fake)
  return fake
}

interface Answer {
  status: number
  headers: Headers
  bytes: Buffer
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at what came, whatever it is
  body: any
}

async function post(url: string, body: unknown, headers: Record<string, string>, method = 'POST'): Promise<Answer> {
  const sent = typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(url, {
    method,
    headers,
    ...(method === 'GET' ? {} : { body: sent }),
    redirect: 'manual',
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  return {
    status: response.status,
    headers: response.headers,
    bytes,
    body: isJson ? JSON.parse(bytes.toString()) : bytes.toString(),
  }
}

const events = ({ body }: Answer): string[] =>
  String(body)
    .split('\n\n')
    .flatMap((event) => (event.startsWith('data: ') ? [event.slice(6)] : []))

const contents = [{ role: 'user', parts: [{ text: 'Hello there' }] }]

test('the fake gemini answers, streams and embeds, and refuses unknown names and keys', async () => {
  const fake = await start({ provider: 'gemini' })
  const call = (action: string, body: unknown, key = GEMINI_KEY): Promise<Answer> =>
    post(`${fake.url}/v1beta/models/${action}`, body, { 'x-goog-api-key': key })
  const whole = await call('gemini-2.5-flash:generateContent', { contents })
  expect(whole.body.candidates[0]).toMatchObject({
    content: { parts: [{ text: 'You said: Hello there' }] },
    finishReason: 'STOP',
  })
  const streamed = events(await call('gemini-2.5-flash:streamGenerateContent?alt=sse', { contents })).map((event) =>
    JSON.parse(event),
  )
  expect(streamed.map((chunk) => chunk.candidates[0].content.parts[0].text).join('')).toBe('You said: Hello there')
  expect(streamed.at(-1).usageMetadata).toEqual(whole.body.usageMetadata)
  const listed = await call('gemini-2.5-flash:streamGenerateContent', { contents })
  expect(listed.body).toEqual(streamed)
  const requests = ['a b', 'c'].map((text) => ({
    model: 'models/e',
    content: { parts: [{ text }] },
    outputDimensionality: 4,
  }))
  expect((await call('e:batchEmbedContents', { requests })).body.embeddings[1].values).toHaveLength(4)
  expect((await call('g:generateContent', { contents, frob: 1 })).body.error.message).toMatch(/Unknown name "frob"/)
  const denied = await call('g:generateContent', { contents }, 'wrong')
  expect(denied.body.error).toMatchObject({ code: 400, details: [{ reason: 'API_KEY_INVALID' }] })
  fake.setScript({ error: 'rate' })
  expect((await call('g:generateContent', { contents })).body.error).toMatchObject({
    code: 429,
    status: 'RESOURCE_EXHAUSTED',
  })
})

test('the fake gemini wants the signature of the first call of the running turn, or the placeholder', async () => {
  const fake = await start({ provider: 'gemini', script: { calls: [WEATHER.call('Rome'), WEATHER.call('Oslo')] } })
  const tools = [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: WEATHER.schema }] }]
  const call = (more: unknown[] = []): Promise<Answer> =>
    post(
      `${fake.url}/v1beta/models/gemini-3-pro:generateContent`,
      { contents: [...contents, ...more], tools },
      { 'x-goog-api-key': GEMINI_KEY },
    )
  const { content } = (await call()).body.candidates[0]
  const results = ['sunny', 'grey'].map((result) => ({ functionResponse: { name: 'weather', response: { result } } }))
  const second = (parts: unknown[], given: unknown[] = results): Promise<Answer> =>
    call([
      { role: 'model', parts },
      { role: 'user', parts: given },
    ])
  expect((await second(content.parts)).body.candidates[0].content.parts[0].text).toBe('The tools say: sunny; grey')
  const [{ functionCall }, other] = content.parts
  expect(other.thoughtSignature).toBeUndefined()
  expect((await second([{ functionCall }, other])).body.error.message).toMatch(/missing a `thought_signature`/)
  expect((await second([{ functionCall, thoughtSignature: 'made up' }, other])).status).toBe(400)
  expect((await second([{ functionCall, thoughtSignature: 'skip_thought_signature_validator' }, other])).status).toBe(
    200,
  )
  expect((await second(content.parts, results.slice(1))).body.error.message).toMatch(
    /number of function response parts/,
  )
})

test('the fake azure knows both addresses, filters and deployments', async () => {
  const fake = await start({ provider: 'azure-openai' })
  const messages = [{ role: 'user', content: 'Hello there' }]
  const call = (path: string, body: unknown, key = AZURE_KEY): Promise<Answer> =>
    post(`${fake.url}/openai/${path}`, body, { 'api-key': key })
  const versioned = 'deployments/gpt/chat/completions?api-version=2024-10-21'
  expect((await call(versioned, { messages })).body.choices[0].message.content).toBe('You said: Hello there')
  expect((await call('v1/chat/completions', { model: 'gpt', messages })).status).toBe(200)
  const [first = '', second = ''] = events(await call(versioned, { messages, stream: true }))
  expect(JSON.parse(first)).toMatchObject({ choices: [], prompt_filter_results: [{ prompt_index: 0 }] })
  expect(JSON.parse(second).choices[0].delta).toEqual({ role: 'assistant', content: '' })
  expect((await call('deployments/gpt/chat/completions', { messages })).body.error.code).toBe('404')
  expect((await call(versioned.replace('gpt', 'missing'), { messages })).body.error.code).toBe('DeploymentNotFound')
  expect((await call(versioned, { messages }, 'wrong')).body.error.code).toBe('401')
  fake.setScript({ error: 'filtered' })
  expect((await call(versioned, { messages })).body.error).toMatchObject({ code: 'content_filter', innererror: {} })
})

interface Message {
  headers: Record<string, string>
  payload: { delta?: { text?: string }; usage?: unknown; message?: string }
}

/** Reads an event stream by hand. */
function messagesOf(bytes: Buffer): Message[] {
  const messages: Message[] = []
  for (let at = 0; at < bytes.length;) {
    const length = bytes.readUInt32BE(at)
    const message = bytes.subarray(at, at + length)
    expect(message.readUInt32BE(8)).toBe(crc32(message.subarray(0, 8)))
    expect(message.readUInt32BE(length - 4)).toBe(crc32(message.subarray(0, length - 4)))
    const end = 12 + message.readUInt32BE(4)
    const headers: Record<string, string> = {}
    for (let h = 12; h < end;) {
      const name = message.toString('utf8', h + 1, h + 1 + message.readUInt8(h))
      h += 2 + name.length
      const size = message.readUInt16BE(h)
      headers[name] = message.toString('utf8', h + 2, h + 2 + size)
      h += 2 + size
    }
    messages.push({ headers, payload: JSON.parse(message.toString('utf8', end, length - 4)) })
    at += length
  }
  return messages
}

interface Signing {
  secret?: string
  id?: string
  token?: string
  service?: string
  at?: number
}

/** Signed by another library than the product's. */
async function signed(
  url: string,
  body: unknown,
  { secret = AWS_SECRET, id = AWS_KEY_ID, token, service = 'bedrock', at = Date.now() }: Signing = {},
): Promise<Answer> {
  const sent = typeof body === 'string' ? body : JSON.stringify(body)
  const signer = new AwsV4Signer({
    url,
    method: 'POST',
    body: sent,
    accessKeyId: id,
    secretAccessKey: secret,
    ...(token !== undefined && { sessionToken: token }),
    service,
    region: AWS_REGION,
    datetime: new Date(at).toISOString().replace(/[-:]|\.\d{3}/g, ''),
  })
  const { headers, url: to } = await signer.sign()
  return post(String(to), sent, Object.fromEntries(headers))
}

const turns = [{ role: 'user', content: [{ text: 'Hello there' }] }]

test('the fake bedrock checks signatures by itself and speaks converse and event streams', async () => {
  const fake = await start({ provider: 'bedrock' })
  const base = `${fake.url}/model/anthropic.claude-sonnet-4-5-v1%3A0`
  const whole = await signed(`${base}/converse`, { messages: turns })
  expect(whole.body).toMatchObject({
    stopReason: 'end_turn',
    output: { message: { content: [{ text: 'You said: Hello there' }] } },
  })
  const stream = messagesOf((await signed(`${base}/converse-stream`, { messages: turns })).bytes)
  expect(stream.map(({ payload }) => payload.delta?.text ?? '').join('')).toBe('You said: Hello there')
  expect(stream.at(-1)).toMatchObject({ headers: { ':event-type': 'metadata' }, payload: { usage: whole.body.usage } })

  const refused = await signed(`${base}/converse`, { messages: turns }, { secret: 'wrong' })
  expect(refused.status).toBe(403)
  expect(refused.headers.get('x-amzn-errortype')).toMatch(/^InvalidSignatureException/)
  const late = await signed(`${base}/converse`, { messages: turns }, { at: Date.now() - 600_000 })
  expect(late.body.message).toMatch(/^Signature expired: \d{8}T\d{6}Z is now earlier than/)
  expect((await post(`${base}/converse`, { messages: turns }, {})).status).toBe(403)
  expect(
    (await post(`${base}/converse`, { messages: turns }, { authorization: `Bearer ${BEDROCK_API_KEY}` })).status,
  ).toBe(200)
  expect((await signed(`${base}/converse`, { messages: turns, frob: 1 })).body.message).toMatch(
    /extraneous key \[frob\]/,
  )

  fake.setScript([
    { call: 1, error: 'rate' },
    { call: 2, errorAfter: 1, error: 'rate' },
    { call: 3, malformed: 'crc' },
  ])
  expect((await signed(`${base}/converse`, { messages: turns })).headers.get('x-amzn-errortype')).toMatch(
    /^ThrottlingException/,
  )
  const broken = messagesOf((await signed(`${base}/converse-stream`, { messages: turns })).bytes)
  expect(broken.at(-1)?.headers).toMatchObject({
    ':exception-type': 'throttlingException',
    ':message-type': 'exception',
  })
  const damaged = (await signed(`${base}/converse-stream`, { messages: turns })).bytes
  expect(() => messagesOf(damaged)).toThrow('expected')
})

test('the fake bedrock verifies thoughts and results, and embeds', async () => {
  const fake = await start({ provider: 'bedrock', script: { calls: [WEATHER.call('Rome')] } })
  const base = `${fake.url}/model/anthropic.claude-sonnet-4-5`
  const body = {
    toolConfig: { tools: [{ toolSpec: { name: 'weather', inputSchema: { json: WEATHER.schema } } }] },
    additionalModelRequestFields: { thinking: { type: 'adaptive' } },
  }
  const { content } = (await signed(`${base}/converse`, { ...body, messages: turns })).body.output.message
  const second = (given: unknown[]): Promise<Answer> => {
    const result = {
      toolResult: { toolUseId: content[1].toolUse.toolUseId, content: [{ text: 'sunny' }], status: 'success' },
    }
    const messages = [...turns, { role: 'assistant', content: given }, { role: 'user', content: [result] }]
    return signed(`${base}/converse`, { ...body, messages })
  }
  expect((await second(content)).status).toBe(200)
  expect((await second(content.slice(1))).body.message).toMatch(/Expected `thinking`/)
  const cohere = await signed(`${fake.url}/model/cohere.embed-v4%3A0/invoke`, {
    texts: ['a', 'b'],
    input_type: 'search_document',
  })
  expect(cohere.body.embeddings).toHaveLength(2)
  const titan = await signed(`${fake.url}/model/amazon.titan-embed-text-v2%3A0/invoke`, {
    inputText: 'a',
    dimensions: 4,
  })
  expect(titan.body).toMatchObject({ embedding: expect.any(Array), inputTextTokenCount: 1 })
})

async function assertion(claims: Record<string, string> = {}): Promise<string> {
  const { private_key: key, client_email: email } = serviceAccount()
  const now = Math.floor(Date.now() / 1000)
  return new SignJWT({ scope: 'https://www.googleapis.com/auth/cloud-platform', ...claims })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
    .setIssuer(String(claims['iss'] ?? email))
    .setAudience(claims['aud'] ?? 'https://oauth2.googleapis.com/token')
    .setIssuedAt(now)
    .setExpirationTime(now + 3600)
    .sign(await importPKCS8(String(key), 'RS256'))
}

test('the fake vertex exchanges assertions that verify, and serves Gemini and Claude', async () => {
  const clock = adjustableClock()
  const fake = await start({ provider: 'vertex', clock })
  const exchange = async (jwt: string): Promise<Answer> =>
    post(
      `${fake.url}/token`,
      new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: jwt }).toString(),
      { 'content-type': 'application/x-www-form-urlencoded' },
    )
  const { body } = await exchange(await assertion())
  expect(body).toMatchObject({ expires_in: 3599, token_type: 'Bearer' })
  expect((await exchange(await assertion({ aud: 'https://elsewhere.example' }))).body.error_description).toMatch(
    /audience/,
  )
  expect((await exchange(await assertion({ iss: 'x@y' }))).status).toBe(400)
  expect((await exchange(`${await assertion()}x`)).body).toMatchObject({ error: 'invalid_grant' })
  expect(fake.exchanges).toBe(4)

  const base = `${fake.url}/v1/projects/${VERTEX_PROJECT}/locations/${VERTEX_LOCATION}/publishers`
  const headers = { authorization: `Bearer ${body.access_token}` }
  expect((await post(`${base}/google/models/gemini-2.5-flash:generateContent`, { contents }, headers)).status).toBe(200)
  const claude = { anthropic_version: 'vertex-2023-10-16', max_tokens: 50, messages: [{ role: 'user', content: 'Hi' }] }
  const said = await post(`${base}/anthropic/models/claude-sonnet-4-5:rawPredict`, claude, headers)
  expect(said.body.content[0].text).toBe('You said: Hi')
  const named = await post(`${base}/anthropic/models/claude-sonnet-4-5:rawPredict`, { ...claude, model: 'x' }, headers)
  expect(named.body.error.message).toBe('model: Extra inputs are not permitted')
  const predicted = await post(
    `${base}/google/models/text-embedding-005:predict`,
    { instances: [{ content: 'a' }] },
    headers,
  )
  expect(predicted.body.predictions[0].embeddings.values).toHaveLength(16)
  clock.advance(3_600_000)
  expect((await post(`${base}/google/models/g:generateContent`, { contents }, headers)).status).toBe(401)
})

test('the fake cloud gives roles, whose keys bedrock takes until they end', async () => {
  const clock = adjustableClock()
  const [cloud, fake] = [await start({ provider: 'cloud-roles', clock }), await start({ provider: 'bedrock', clock })]
  const form = (fields: Record<string, string>): string =>
    new URLSearchParams({ Version: '2011-06-15', RoleArn: ROLE_ARN, RoleSessionName: 'mem', ...fields }).toString()
  const use = async ({
    AccessKeyId: id,
    SecretAccessKey: secret,
    Token: token,
  }: Record<string, string>): Promise<Answer> =>
    signed(
      `${fake.url}/model/m/converse`,
      { messages: turns },
      { id: id ?? '', secret: secret ?? '', token: token ?? '', at: clock.now() },
    )
  const fromXml = (xml: string): Record<string, string> =>
    Object.fromEntries(
      [...xml.matchAll(/<(\w+)>([^<]+)<\/\1>/g)].map(([, name = '', value = '']) => [
        name === 'SessionToken' ? 'Token' : name,
        value,
      ]),
    )

  const byIdentity = await post(
    cloud.url,
    form({ Action: 'AssumeRoleWithWebIdentity', WebIdentityToken: WEB_IDENTITY_TOKEN }),
    {},
  )
  expect((await use(fromXml(byIdentity.body))).status).toBe(200)
  expect((await post(cloud.url, form({ Action: 'AssumeRoleWithWebIdentity', WebIdentityToken: 'x' }), {})).status).toBe(
    400,
  )
  const container = await post(`${cloud.url}${CONTAINER_PATH}`, '', { authorization: CONTAINER_TOKEN }, 'GET')
  expect((await use(container.body)).status).toBe(200)
  const metadata = `${cloud.url}/latest`
  const { body: token } = await post(
    `${metadata}/api/token`,
    '',
    { 'x-aws-ec2-metadata-token-ttl-seconds': '60' },
    'PUT',
  )
  const roles = `${metadata}/meta-data/iam/security-credentials/`
  const given = { 'x-aws-ec2-metadata-token': token }
  expect((await post(roles, '', given, 'GET')).body).toBe(INSTANCE_ROLE)
  expect((await post(roles, '', {}, 'GET')).status).toBe(401)
  const { body: keys } = await post(`${roles}${INSTANCE_ROLE}`, '', given, 'GET')
  const { AccessKeyId: id, SecretAccessKey: secret, Token: session } = keys
  const assumed = await signed(cloud.url, form({ Action: 'AssumeRole' }), {
    id,
    secret,
    token: session,
    service: 'sts',
  })
  expect((await use(fromXml(assumed.body))).status).toBe(200)
  clock.advance(3_600_001)
  expect((await use(keys)).headers.get('x-amzn-errortype')).toMatch(/^ExpiredTokenException/)
})
