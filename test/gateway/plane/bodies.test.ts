import { gzipSync } from 'node:zlib'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { judgeBody } from '../../../src/gateway/plane/judge.ts'
import { scanBody } from '../../../src/gateway/plane/scan.ts'
import { readMembers } from '../../../src/gateway/relay/body.ts'
import { serviceAccount } from '../../support/fake-model/providers/vertex.ts'
import {
  ANSWER,
  CHAT,
  credentialAt,
  json,
  MESSAGE,
  refusal,
  startRig,
  startUpstream,
  type Answer,
  type RigOptions,
} from './support.ts'

async function rig(options: RigOptions = {}) {
  const upstream = await startUpstream()
  return { upstream, ...(await startRig({ credentials: [credentialAt(1, upstream)], ...options })) }
}

const codeOf = (text: string, surface: 'chat' | 'messages' | 'responses' | 'embeddings' = 'chat'): string => {
  try {
    judgeBody(surface, Buffer.from(text), false)
    return 'fine'
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || !('param' in error)) throw error
    return `${String(error.code)} ${String(error.param)}`
  }
}

test('gateway#48 model or stream given twice, in any escaping, is refused and goes nowhere', async () => {
  const { call, upstream } = await rig()
  const rest = '"messages":[{"role":"user","content":"hi"}]'
  for (const twice of [
    '"model":"m","model":"m"',
    '"model":"m","mod\\u0065l":"x"',
    '"model":"m","stream":false,"stream":true',
    '"model":"m","stream":false,"\\u0073tream":true',
  ]) {
    const answer = await call('chat/completions', undefined, { method: 'POST', raw: `{${twice},${rest}}` })
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'invalid_value' } } })
    expect(['model', 'stream']).toContain(answer.body.error.param)
  }
  expect(upstream.seen).toEqual([])
})

test('gateway#48 what is judged has one name: programs in Go read it in any case', async () => {
  const { call, upstream } = await rig({ key: { maxOutputTokens: 10 } })
  const rest = '"messages":[{"role":"user","content":"hi"}]'
  for (const [name, value] of [
    ['Model', '"other"'],
    ['MOD\\u0045L', '"other"'],
    ['\u017ftream', 'true'],
    ['Max_Tokens', '1000'],
  ] as const) {
    const raw = `{"model":"m","${name}":${value},${rest}}`
    const answer = await call('chat/completions', undefined, { method: 'POST', raw })
    expect(answer).toMatchObject({ status: 400, body: { error: { code: 'invalid_value' } } })
    expect(['model', 'stream', 'max_tokens']).toContain(answer.body.error.param)
  }
  expect(upstream.seen).toEqual([])
})

test('gateway#49 the bytes of JSON go to the client unchanged, spacing and unknown fields too', async () => {
  const { call, upstream } = await rig()
  const odd = ANSWER.replace('{"id"', '{ "unknown" : [1.0e2],\n "id"')
  upstream.script = json(200, odd, { 'content-type': 'application/json; charset=utf-8', 'x-request-id': 'req_7' })
  const answer = await call('chat/completions', CHAT)
  expect(answer.text).toBe(odd)
  expect(answer.headers).toMatchObject({
    'content-type': 'application/json; charset=utf-8',
    'x-upstream-request-id': 'req_7',
    'content-length': String(odd.length),
  })
})

test('the fields of each surface', () => {
  const messages = '"messages":[{"role":"user","content":"hi"}]'
  expect(codeOf(`{"model":"m",${messages}}`)).toBe('fine')
  expect(codeOf(`{${messages}}`)).toBe('missing_required_parameter model')
  expect(codeOf(`{"model":7,${messages}}`)).toBe('invalid_value model')
  expect(codeOf(`{"model":"",${messages}}`)).toBe('invalid_value model')
  expect(codeOf(`{"model":"a/../b",${messages}}`)).toBe('invalid_value model')
  expect(codeOf(`{"model":"a\\nb",${messages}}`)).toBe('invalid_value model')
  expect(codeOf(`{"model":"\\ud800",${messages}}`)).toBe('invalid_value model')
  expect(codeOf(`{"model":"${'é'.repeat(257)}",${messages}}`)).toBe('invalid_value model')
  expect(codeOf(`{"model":"m","stream":1,${messages}}`)).toBe('invalid_value stream')
  expect(codeOf('{"model":"m"}')).toBe('missing_required_parameter messages')
  expect(codeOf('{"model":"m","messages":[]}')).toBe('invalid_value messages')
  expect(codeOf('{"model":"m","messages":{}}')).toBe('invalid_value messages')
  expect(codeOf('{"model":"m","messages":["hi"]}')).toBe('invalid_value messages[0]')
  expect(codeOf('{"model":"m","messages":[{"content":"hi"}]}')).toBe('invalid_value messages[0].role')
  expect(codeOf('{"model":"m","messages":[{"role":"user"}]}')).toBe('missing_required_parameter messages[0].content')
  expect(codeOf('{"model":"m","messages":[{"role":"assistant","tool_calls":[]}]}')).toBe('fine')
  expect(codeOf(`{"model":"m",${messages}}`, 'messages')).toBe('missing_required_parameter max_tokens')
  expect(codeOf('{"model":"m"}', 'embeddings')).toBe('missing_required_parameter input')
  expect(codeOf('{"model":"m","input":7}', 'embeddings')).toBe('invalid_value input')
  expect(codeOf('{"model":"m","input":"x","encoding_format":"hex"}', 'embeddings')).toBe(
    'invalid_value encoding_format',
  )
  expect(codeOf('{"model":"m","input":"x","dimensions":0}', 'embeddings')).toBe('invalid_value dimensions')
})

test('gateway#53 a response that needs what another call left is refused; null and false are as good as absent', () => {
  const response = (fields: object): string =>
    codeOf(JSON.stringify({ model: 'm', input: 'hi', ...fields }), 'responses')
  for (const fields of [
    { previous_response_id: 'resp_1' },
    { conversation: 'c' },
    { conversation: { id: 'c' } },
    { background: true },
  ]) {
    expect(response(fields)).toBe(`unsupported_parameter ${Object.keys(fields)[0]}`)
  }
  expect(response({ previous_response_id: null, background: false, conversation: null })).toBe('fine')
})

test('a compressed body is told that it is', async () => {
  const { call, upstream } = await rig()
  const zipped = { method: 'POST', raw: gzipSync(JSON.stringify(CHAT)), headers: { 'content-encoding': 'gzip' } }
  for (const path of ['chat/completions', 'messages', 'messages/count_tokens']) {
    const { status, body } = await call(path, undefined, zipped)
    expect([status, body.error.code, body.error.message]).toEqual([
      400,
      'invalid_json',
      'a body with Content-Encoding gzip cannot be read: send it uncompressed',
    ])
  }
  expect(upstream.seen).toEqual([])
})

test('gateway#95 a body above the limit is refused unread, one that is too deep is refused', async () => {
  const { call, open, records, upstream } = await rig()
  const headers = { 'content-length': String(32 * 1024 * 1024 + 1) }
  const declared = await open('chat/completions', undefined, { method: 'POST', headers, raw: '{' })
  expect(declared.statusCode).toBe(413)
  const small = await rig({ organization: { max_request_bytes: 100 } })
  for (const sent of [{}, { 'transfer-encoding': 'chunked' }]) {
    const long = await small.call('messages', undefined, { method: 'POST', raw: ' '.repeat(101), headers: sent })
    expect(long).toMatchObject({ status: 413, body: { type: 'error', error: { type: 'request_too_large' } } })
  }
  const deep = (depth: number): string =>
    `{"model":"m","messages":[{"role":"user","content":"hi"}],"x":${'['.repeat(depth)}${']'.repeat(depth)}}`
  const tooDeep = await call('chat/completions', undefined, { method: 'POST', raw: deep(128) })
  expect(tooDeep).toMatchObject({ status: 400, body: { error: { code: 'invalid_json' } } })
  expect((await call('chat/completions', undefined, { method: 'POST', raw: deep(127) })).status).toBe(200)
  expect(upstream.seen).toHaveLength(1)
  expect(records[0]).toMatchObject({ status: 413, outcome: 'rejected', error_code: 'request_too_large' })
})

test('members are found as a parser finds them', () => {
  const value = fc.jsonValue({ maxDepth: 4 })
  fc.assert(
    fc.property(fc.dictionary(fc.string(), value), fc.constantFrom(undefined, 1, '\t'), (object, space) => {
      fc.pre(!('messages' in object))
      const body = Buffer.from(JSON.stringify(object, undefined, space))
      const { members } = scanBody(body)
      expect(members).toEqual(readMembers(body, new Set()))
      for (const [name, { start, end }] of members) {
        expect(JSON.parse(body.toString('utf8', start, end))).toEqual(JSON.parse(JSON.stringify(object[name])))
      }
    }),
    { seed: 48 },
  )
})

test('what a parser refuses outside of values is refused, and cuts of a body always', () => {
  const whole = JSON.stringify({ ...MESSAGE, tools: [{ name: 'a\\"b', schema: { '"}': ['\\', null, -1.5e3, true] } }] })
  for (let end = 0; end < whole.length; end++) expect(codeOf(whole.slice(0, end), 'messages')).not.toBe('fine')
  expect(codeOf(whole, 'messages')).toBe('fine')
  expect(codeOf(`${whole}x`, 'messages')).toBe('invalid_json undefined')
})

/** Every refusal is in the envelope, and none is a fault of ours. */
function expectRefused({ status, body, headers }: Answer, isAnthropic: boolean): void {
  expect(status).toBeGreaterThanOrEqual(400)
  expect(status).toBeLessThan(500)
  const { message, type } = body.error
  expect({ envelope: body.type, message: typeof message, type: typeof type }).toEqual({
    envelope: isAnthropic ? 'error' : undefined,
    message: 'string',
    type: 'string',
  })
  expect(headers['x-request-id']).toBeDefined()
}

test('gateway#104 whatever body comes, the answer is a 4xx in the envelope, or that of the provider', async () => {
  const { call, logged } = await rig()
  const messages = fc.oneof(
    fc.jsonValue(),
    fc.array(fc.record({ role: fc.jsonValue(), content: fc.jsonValue() }, { requiredKeys: [] })),
  )
  const body = fc.oneof(
    fc.string(),
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    fc.json(),
    fc
      .record(
        {
          model: fc.oneof(fc.constant('m'), fc.jsonValue()),
          messages,
          stream: fc.jsonValue(),
          max_tokens: fc.jsonValue(),
          input: fc.jsonValue(),
        },
        { requiredKeys: [] },
      )
      .map((fields) => JSON.stringify(fields)),
  )
  const path = fc.constantFrom('chat/completions', 'messages', 'messages/count_tokens', 'responses', 'embeddings')
  await fc.assert(
    fc.asyncProperty(path, body, async (asked, raw) => {
      const answer = await call(asked, undefined, { method: 'POST', raw })
      if (answer.status === 200) return
      // The provider of the test answers chat alone: what it says to other surfaces is none.
      const isNone = answer.status === 502 && answer.body.error.code === 'upstream_invalid_response'
      if (!isNone) expectRefused(answer, asked.startsWith('messages'))
    }),
    { seed: 104, numRuns: 300 },
  )
  expect(logged).toEqual([])
}, 120_000)

test('gateway#104 whatever headers and paths come, the answer is a 4xx in the envelope, or a 200', async () => {
  const { call, logged } = await rig()
  const text = fc.string({
    unit: fc
      .integer({ min: 0x20, max: 0xff })
      .filter((code) => code !== 0x7f)
      .map((code) => String.fromCharCode(code)),
    maxLength: 40,
  })
  const name = fc.constantFrom(
    'x-request-id',
    'x-mem-credential',
    'x-mem-fallback',
    'x-mem-strict',
    'x-mem-cache',
    'x-mem-cache-ttl',
    'x-stainless-timeout',
    'x-stainless-retry-count',
    'anthropic-version',
    'anthropic-beta',
    'openai-beta',
    'cookie',
    'x-api-key',
    'api-key',
    'traceparent',
    'user-agent',
    'content-type',
  )
  const headers = fc.dictionary(name, text, { maxKeys: 5 })
  const path = fc.oneof(
    fc.constant('chat/completions'),
    fc.string({ unit: fc.constantFrom('a', '/', '%', '.', '?', '2', 'F', 'models', 'messages'), maxLength: 8 }),
  )
  await fc.assert(
    fc.asyncProperty(path, headers, async (asked, sent) => {
      const answer = await call(asked, CHAT, { headers: sent })
      if (answer.status !== 200) expectRefused(answer, answer.body?.type === 'error')
    }),
    { seed: 104, numRuns: 300 },
  )
  expect(logged).toEqual([])
}, 120_000)

test('count_tokens goes to Anthropic, and is estimated elsewhere', async () => {
  const upstream = await startUpstream(json(200, '{"input_tokens":42}'))
  const anthropic = credentialAt(1, upstream, {
    kind: 'anthropic',
    config: { anthropic_version: '2023-06-01', default_max_tokens: 4096 },
    baseUrl: `http://127.0.0.1:${upstream.port}`,
    modelMapping: new Map([['m', 'claude-x']]),
  })
  const own = await startRig({ credentials: [anthropic] })
  const { max_tokens: _, ...count } = MESSAGE
  const counted = await own.call('messages/count_tokens', count)
  expect(counted.body).toEqual({ input_tokens: 42 })
  expect(counted.headers).not.toHaveProperty('x-mem-estimated')
  const [seen] = upstream.seen
  expect(seen?.url).toBe('/v1/messages/count_tokens')
  expect(JSON.parse(seen?.body ?? '')).toEqual({ ...count, model: 'claude-x' })
  upstream.script = refusal(400, 'odd')
  expect(await own.call('messages/count_tokens', count)).toMatchObject({
    status: 400,
    body: { error: { message: 'odd' } },
  })
  upstream.script = refusal(503)
  expect((await own.call('messages/count_tokens', count)).headers['x-mem-estimated']).toBe('true')
  const { call } = await rig()
  const estimated = await call('messages/count_tokens', count)
  expect(estimated).toMatchObject({ headers: { 'x-mem-estimated': 'true' }, body: { input_tokens: 2 } })
  expect(own.records).toEqual([])
})

test('count_tokens asks no credential that rests', async () => {
  const upstream = await startUpstream(refusal(401, 'wrong key'))
  const anthropic = credentialAt(1, upstream, {
    kind: 'anthropic',
    config: { anthropic_version: '2023-06-01', default_max_tokens: 4096 },
    baseUrl: `http://127.0.0.1:${upstream.port}`,
    modelMapping: new Map([['m', 'claude-x']]),
  })
  const { call } = await startRig({ credentials: [anthropic] })
  await call('messages', MESSAGE)
  const { max_tokens: _, ...count } = MESSAGE
  expect(await call('messages/count_tokens', count)).toMatchObject({
    status: 200,
    headers: { 'x-mem-estimated': 'true' },
  })
  expect(upstream.seen).toHaveLength(1)
})

test('count_tokens goes to Claude on Vertex too', async () => {
  const upstream = await startUpstream((response, request) =>
    json(200, request.url === '/token' ? '{"access_token":"t","expires_in":3600}' : '{"input_tokens":42}')(
      response,
      request,
    ),
  )
  const url = `http://127.0.0.1:${upstream.port}`
  const vertex = credentialAt(1, upstream, {
    kind: 'vertex',
    config: { project: 'p', location: 'europe-west4', anthropic_version: 'vertex-2023-10-16' },
    secrets: { service_account: JSON.stringify(serviceAccount()) },
    baseUrl: url,
    modelMapping: new Map([['m', 'claude-x']]),
  })
  const { call } = await startRig({ credentials: [vertex], tokenAddress: `${url}/token` })
  const { max_tokens: _, ...count } = MESSAGE
  expect((await call('messages/count_tokens', count)).body).toEqual({ input_tokens: 42 })
  const seen = upstream.seen.at(-1)
  expect(seen?.url).toMatch(/\/publishers\/anthropic\/models\/count-tokens:rawPredict$/)
  expect(JSON.parse(seen?.body ?? '')).toEqual({ ...count, model: 'claude-x', anthropic_version: 'vertex-2023-10-16' })
})

test('more calls than may be under way are refused', async () => {
  const { call, upstream } = await rig({ settings: { maxActiveRequests: 1 } })
  upstream.script = () => undefined
  const first = call('chat/completions', CHAT)
  first.catch(() => undefined)
  await upstream.next()
  expect(await call('chat/completions', CHAT)).toMatchObject({
    status: 503,
    headers: { 'retry-after': '1' },
    body: { error: { code: 'overloaded' } },
  })
})

test('content is handed on only where an organization keeps it', async () => {
  const kept = await rig({ organization: { content_logging: true } })
  await kept.call('chat/completions', CHAT)
  expect(kept.contents[0]).toEqual({ request: Buffer.from(JSON.stringify(CHAT)), response: Buffer.from(ANSWER) })
  const image = 'A'.repeat(600_000)
  const url = `data:image/png;base64,${image}`
  const content = [
    { type: 'text', text: 'What is it?' },
    { type: 'image_url', image_url: { url } },
  ]
  await kept.call('chat/completions', { model: 'm', messages: [{ role: 'user', content }] })
  const text = kept.contents[1]?.request.toString() ?? ''
  expect(JSON.parse(text).messages[0].content).toEqual([
    { type: 'text', text: 'What is it?' },
    { type: 'image_url', image_url: { url: expect.stringMatching(/^image\/png, 450000 bytes, sha256 [0-9a-f]{64}$/) } },
  ])
  const plain = await rig()
  await plain.call('chat/completions', CHAT)
  expect(plain.contents).toEqual([undefined])
})

test('a known price is told in the answer and the record', async () => {
  const prices = [{ provider: 'openai-compatible', model: 'm', usd_per_million: { input: '1', output: '2' } }]
  const { call, record } = await rig({ prices })
  const answer = await call('chat/completions', CHAT)
  expect(answer.headers['x-mem-cost']).toBe('0.00003')
  expect(await record()).toMatchObject({ cost_usd: '0.00003', cost_state: 'exact', input_tokens: 20, output_tokens: 5 })
})
