import { createServer } from 'node:net'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { alias } from '../routing/support.ts'
import { classes, pair } from './pair.ts'
import {
  ANSWER,
  CHAT,
  credentialAt,
  FRAMES,
  json,
  refusal,
  sse,
  startRig,
  startUpstream,
  STREAM,
  type FakeUpstream,
  type Script,
} from './support.ts'

const destroys: Script = (response) => void response.destroy()

test.each([
  ['503', refusal(503), 'transient', 503],
  ['a reset', destroys, 'connect', undefined],
  ['an empty 200', json(200, ''), 'transient', 200],
  ['a page', json(200, '<html>'), 'transient', 200],
  ['429', refusal(429), 'rate', 429],
  ['401', refusal(401), 'auth', 401],
  ['a redirect', json(302, '', { location: 'http://127.0.0.1:1/' }), 'missing', 302],
])('gateway#31 after %s the next one answers', async (_name, script, failure, status) => {
  const { call, record, upstreams } = await pair(script)
  const answer = await call('chat/completions', CHAT)
  expect(answer).toMatchObject({
    status: 200,
    headers: { 'x-mem-attempts': '2', 'x-mem-credential': 'credential 2', 'x-mem-provider': 'openai-compatible' },
  })
  const kept = await record()
  expect(classes(kept)).toEqual([failure, 'ok'])
  expect(kept.attempts[0]?.status).toBe(status)
  expect(upstreams.map(({ seen }) => seen.length)).toEqual([1, 1])
})

test('gateway#31 a refused connection and a name without address move on', async () => {
  const closed = createServer()
  await once(closed.listen(0, '127.0.0.1'), 'listening')
  const address = closed.address()
  const port = typeof address === 'object' && address ? address.port : 0
  closed.close()
  const upstream = await startUpstream()
  const { call, record } = await startRig({
    credentials: [
      credentialAt(1, { port }),
      credentialAt(2, upstream, { priority: 1, baseUrl: 'https://nowhere.invalid/v1' }),
      credentialAt(3, upstream, { priority: 2 }),
    ],
  })
  expect(await call('chat/completions', CHAT)).toMatchObject({ status: 200, headers: { 'x-mem-attempts': '3' } })
  expect(classes(await record())).toEqual(['connect', 'connect', 'ok'])
})

test('gateway#31 a provider that is not reached is told with what kept it, and no address', async () => {
  const { call, finished } = await startRig({
    credentials: [credentialAt(1, { port: 1 })],
    settings: { maxAttempts: 1 },
  })
  expect((await call('chat/completions', CHAT)).status).toBe(502)
  expect(finished[0]?.attempts).toMatchObject([
    { class: 'connect', unreached: 'the provider cannot be reached (ECONNREFUSED)' },
  ])
  const down = await startUpstream(refusal(503, 'down'))
  const other = await startRig({ credentials: [credentialAt(1, down)], settings: { maxAttempts: 1 } })
  expect((await other.call('chat/completions', CHAT)).status).toBe(502)
  expect(other.finished[0]?.attempts).toMatchObject([{ class: 'transient', unreached: undefined }])
})

test('gateway#34 a missing deployment moves on; 400, 413 and 422 come back with the message of the provider, after one attempt', async () => {
  const missing = await pair(refusal(404, 'no such deployment', { code: 'DeploymentNotFound' }))
  expect((await missing.call('chat/completions', CHAT)).status).toBe(200)
  for (const status of [400, 413, 422]) {
    const { call, upstreams, record } = await pair(refusal(status, 'temperature is odd', { param: 'temperature' }))
    const answer = await call('chat/completions', CHAT)
    expect(answer).toMatchObject({
      status,
      headers: { 'x-mem-attempts': '1', 'x-should-retry': 'false' },
      body: { error: { message: 'temperature is odd', type: 'some_error', param: 'temperature' } },
    })
    expect(upstreams[1].seen).toEqual([])
    expect(await record()).toMatchObject({ outcome: 'error', status, cost_state: 'no_usage', cost_usd: null })
  }
})

test('gateway#65 who cannot be told the request stands in for nobody', async () => {
  const upstream = await startUpstream(refusal(503, 'down'))
  const other = await startUpstream()
  const claude = { kind: 'anthropic' as const, baseUrl: `http://127.0.0.1:${other.port}`, defaultModel: 'm' }
  const first = credentialAt(1, upstream, { defaultModel: 'm' })
  const { call } = await startRig({ credentials: [first, credentialAt(2, other, { priority: 1, ...claude })] })
  const request = { ...CHAT, n: 2 }
  expect(await call('chat/completions', request)).toMatchObject({
    status: 502,
    headers: { 'x-mem-attempts': '3', 'x-mem-credential': 'credential 1' },
    body: { error: { message: 'down' } },
  })
  expect(other.seen).toEqual([])
  const alone = await startRig({ credentials: [credentialAt(2, other, claude)] })
  expect(await alone.call('chat/completions', request)).toMatchObject({ status: 400, body: { error: { param: 'n' } } })
})

test('gateway#65 whoever can be told the request answers it, whoever comes first', async () => {
  const [claude, openai] = [await startUpstream(), await startUpstream()]
  const first = { kind: 'anthropic' as const, baseUrl: `http://127.0.0.1:${claude.port}`, defaultModel: 'm' }
  const credentials = [credentialAt(1, claude, first), credentialAt(2, openai, { priority: 1, defaultModel: 'm' })]
  const { call } = await startRig({ credentials })
  expect(await call('chat/completions', { ...CHAT, n: 2 })).toMatchObject({
    status: 200,
    headers: { 'x-mem-attempts': '1', 'x-mem-credential': 'credential 2' },
  })
  expect(claude.seen).toEqual([])
})

test('gateway#35 an error of context moves on only where the alias says so', async () => {
  const tooLong = refusal(400, 'too long', { code: 'context_length_exceeded' })
  const plain = await pair(tooLong)
  expect(await plain.call('chat/completions', CHAT)).toMatchObject({ status: 400, headers: { 'x-mem-attempts': '1' } })
  const members = [1, 2].map((credential_id) => ({ credential_id, model: 'm' }))
  const aliases = [alias(1, 'long', { members, strategy: 'ordered', fallback_on: ['context'] })]
  const named = await pair(tooLong, json(), { aliases })
  const answer = await named.call('chat/completions', { ...CHAT, model: 'long' })
  expect(answer).toMatchObject({ status: 200, headers: { 'x-mem-attempts': '2' } })
  expect(await named.record()).toMatchObject({ alias_id: 1, model_requested: 'long', model_used: 'm' })
})

test('gateway#36 an error as first event falls back; behind content it is told inside the stream', async () => {
  const request = { ...CHAT, stream: true }
  const early = await pair(sse([FRAMES.start, FRAMES.error]), sse())
  const answer = await early.call('chat/completions', request)
  expect(answer).toMatchObject({ status: 200, headers: { 'x-mem-attempts': '2', 'x-mem-credential': 'credential 2' } })
  expect(answer.text).toBe(STREAM.filter((frame) => frame !== FRAMES.usage).join(''))
  const late = await pair(sse([FRAMES.start, FRAMES.text('Hel'), FRAMES.error]), sse())
  const broken = await late.call('chat/completions', request)
  expect(broken.headers['x-mem-attempts']).toBe('1')
  expect(broken.text).toContain('"content":"Hel"')
  const last = broken.text.trimEnd().split('\n\n').at(-1) ?? ''
  expect(JSON.parse(last.replace('data: ', ''))).toMatchObject({ error: { message: 'the engine fell over' } })
  expect(broken.text).not.toContain('[DONE]')
  expect(await late.record()).toMatchObject({ outcome: 'error', status: 200, cost_state: 'unknown_price' })
})

test('gateway#37 a silent upstream is left at the limit for the first byte', async () => {
  const { call, upstreams, advance, record } = await pair(() => undefined, sse())
  const answered = call('chat/completions', { ...CHAT, stream: true })
  const seen = await upstreams[0].next()
  advance(60_001)
  expect(await answered).toMatchObject({ status: 200, headers: { 'x-mem-attempts': '2' } })
  await seen.closed
  expect(classes(await record())).toEqual(['transient', 'ok'])
})

test('gateway#37 pings are no first byte', async () => {
  const { call, upstreams, advance } = await pair(sse([': ping\n\n', ': ping\n\n'], false), sse())
  const answered = call('chat/completions', { ...CHAT, stream: true })
  await upstreams[0].next()
  advance(60_001)
  expect(await answered).toMatchObject({ headers: { 'x-mem-attempts': '2' } })
})

test('gateway#37 the idle limit cuts a stream, the total limit a JSON answer', async () => {
  const idle = await pair(sse([FRAMES.start, FRAMES.text('Hel')], false))
  const response = await idle.open('chat/completions', { ...CHAT, stream: true })
  const text: string[] = []
  for await (const chunk of response.setEncoding('utf8')) {
    if (text.length === 0) idle.advance(60_001)
    text.push(String(chunk))
  }
  expect(text.join('')).toContain('"code":"upstream_timeout"')
  const total = await pair(() => undefined)
  const answered = total.call('chat/completions', CHAT)
  const seen = await total.upstreams[0].next()
  total.advance(600_001)
  expect(await answered).toMatchObject({ status: 504, body: { error: { code: 'upstream_timeout' } } })
  await seen.closed
  expect(await total.record()).toMatchObject({ outcome: 'error', error_code: 'upstream_timeout' })
})

test('gateway#38 attempts over members and fallback names are limited, and back-off doubles', async () => {
  const upstreams: FakeUpstream[] = []
  for (let i = 0; i < 4; i++) upstreams.push(await startUpstream(refusal(503)))
  const credentials = upstreams.map((upstream, i) => credentialAt(i + 1, upstream, { defaultModel: `m${i}` }))
  const members = [
    { credential_id: 1, model: 'm0' },
    { credential_id: 2, model: 'm1' },
  ]
  const aliases = [alias(1, 'all', { members, strategy: 'ordered', fallback_models: ['m2', 'm3'] })]
  const few = await startRig({ credentials, aliases })
  const answer = await few.call('chat/completions', { ...CHAT, model: 'all' })
  expect(answer).toMatchObject({
    status: 502,
    headers: { 'x-mem-attempts': '3', 'x-mem-credential': 'credential 3' },
    body: { error: { code: 'upstream_error', type: 'server_error' } },
  })
  const one = await startRig({ credentials: credentials.slice(0, 1), settings: { maxAttempts: 4 } })
  await one.call('chat/completions', { ...CHAT, model: 'm0' })
  expect(one.waits).toEqual([187.5, 375, 750])
  expect((await one.record()).attempts).toHaveLength(4)
})

test('gateway#38 a provider that fails gets at most a fifth more calls than there are requests', async () => {
  const upstream = await startUpstream(refusal(409))
  const { call } = await startRig({ credentials: [credentialAt(1, upstream)], settings: { maxAttempts: 2 } })
  const statuses = new Set<number>()
  for (let i = 0; i < 100; i++) statuses.add((await call('chat/completions', CHAT)).status)
  expect(upstream.seen.length).toBeLessThanOrEqual(120)
  expect(statuses).not.toContain(200)
})

test('gateway#38 when further attempts are used up, the first failure is told at once', async () => {
  const { call, waits, upstreams } = await pair(refusal(409, 'the first'), refusal(409, 'the second'), {
    settings: { maxAttempts: 2 },
  })
  // Another model each time, for each has a breaker of its own.
  for (let i = 0; i < 10; i++) await call('chat/completions', { ...CHAT, model: `m${i}` })
  waits.length = 0
  upstreams[1].seen.length = 0
  expect(await call('chat/completions', CHAT)).toMatchObject({
    status: 502,
    headers: { 'x-mem-attempts': '1' },
    body: { error: { message: 'the first' } },
  })
  expect([waits, upstreams[1].seen]).toEqual([[], []])
})

test('a provider that asks for a short wait is waited for; for a long one the client is told', async () => {
  const short = await pair(refusal(429, 'slow down', {}, { 'retry-after': '3' }), refusal(401))
  short.upstreams[0].script = (response, request) => {
    const script = short.upstreams[0].seen.length === 1 ? refusal(429, 'slow down', {}, { 'retry-after': '3' }) : json()
    return script(response, request)
  }
  expect(await short.call('chat/completions', CHAT)).toMatchObject({ status: 200, headers: { 'x-mem-attempts': '3' } })
  expect(short.waits).toEqual([expect.closeTo(3000, -2)])
  const long = await pair(
    refusal(429, 'slow down', {}, { 'retry-after': '30' }),
    refusal(429, 'me too', {}, { 'retry-after': '20' }),
  )
  const answer = await long.call('chat/completions', CHAT)
  expect(answer).toMatchObject({ status: 429, body: { error: { code: 'upstream_rate_limited' } } })
  expect(Number(answer.headers['retry-after'])).toBe(20)
  expect(long.waits).toEqual([])
})

test('gateway#32 whoever asked last, the client is told the shortest wait of all', async () => {
  const slow = (after: Record<string, string>): Script => refusal(429, 'slow down', {}, after)
  const settings = { maxAttempts: 2 }
  const named = await pair(slow({ 'retry-after': '20' }), slow({ 'retry-after': '30' }), { settings })
  expect(await named.call('chat/completions', CHAT)).toMatchObject({
    status: 429,
    headers: { 'retry-after': '20', 'x-mem-attempts': '2' },
  })
  const silent = await pair(slow({}), slow({}), { settings })
  expect(await silent.call('chat/completions', CHAT)).toMatchObject({ status: 429, headers: { 'retry-after': '5' } })
})

test('gateway#44 the time limit of the client bounds the call', async () => {
  const { call, upstreams, advance } = await pair(() => undefined)
  const answered = call('chat/completions', CHAT, { headers: { 'x-stainless-timeout': '20' } })
  await upstreams[0].next()
  advance(20_001)
  expect(await answered).toMatchObject({
    status: 504,
    headers: { 'x-should-retry': 'false' },
    body: { error: { type: 'server_error', code: 'upstream_timeout' } },
  })
})

test('gateway#45 after our own attempts clients are told not to try again', async () => {
  const { call } = await pair(refusal(503), refusal(503))
  expect(await call('chat/completions', CHAT)).toMatchObject({ status: 502, headers: { 'x-should-retry': 'false' } })
  const idle = await startRig()
  const unknown = await idle.call('chat/completions', CHAT)
  expect(unknown.status).toBe(404)
  expect(unknown.headers).not.toHaveProperty('x-should-retry')
})

test('gateway#33 a provider that refuses its key is not told as the client being refused', async () => {
  const { call } = await pair(refusal(401, 'bad key'), refusal(403, 'bad key'))
  expect(await call('chat/completions', CHAT)).toMatchObject({
    status: 502,
    body: { error: { code: 'upstream_credentials_rejected' } },
  })
})

test('gateway#28 a pin and x-mem-fallback: off leave one candidate', async () => {
  const { call, upstreams } = await pair(json(), refusal(404))
  const pinned = await call('chat/completions', CHAT, { headers: { 'x-mem-credential': 'credential 2' } })
  expect(pinned).toMatchObject({ status: 404, headers: { 'x-mem-attempts': '1' } })
  upstreams[0].script = refusal(404)
  const off = await call('chat/completions', CHAT, { headers: { 'x-mem-fallback': 'off' } })
  expect(off).toMatchObject({ status: 404, headers: { 'x-mem-attempts': '1', 'x-mem-credential': 'credential 1' } })
  const foreign = await call('chat/completions', CHAT, { headers: { 'x-mem-credential': 'nobody' } })
  expect(foreign).toMatchObject({ status: 403, body: { error: { code: 'credential_not_allowed' } } })
})

test('an answer beyond the limit is cut', async () => {
  const { call, upstreams } = await pair(json(200, ANSWER.padEnd(3000)), json(), {
    settings: { maxResponseBytes: 2000 },
  })
  expect(await call('chat/completions', CHAT)).toMatchObject({
    status: 502,
    body: { error: { code: 'upstream_error' } },
  })
  expect(upstreams[1].seen).toEqual([])
})

test('what the exchange cannot say is a 400 before any attempt, and gives the slot back', async () => {
  const upstream = await startUpstream()
  const credential = credentialAt(1, upstream, {
    kind: 'anthropic',
    config: { anthropic_version: '2023-06-01', default_max_tokens: 4096 },
    baseUrl: `http://127.0.0.1:${upstream.port}`,
    defaultModel: 'm',
    limits: { max_concurrency: 1 },
  })
  const { call } = await startRig({ credentials: [credential] })
  for (let i = 0; i < 3; i++) {
    expect(await call('chat/completions', { ...CHAT, n: 2 })).toMatchObject({
      status: 400,
      body: { error: { param: 'n' } },
    })
  }
  expect(upstream.seen).toEqual([])
})

test('embeddings that a provider takes in parts are answered in order, or not at all', async () => {
  const upstream = await startUpstream()
  const credential = credentialAt(1, upstream, {
    kind: 'gemini',
    config: { api_version: 'v1beta' },
    baseUrl: `http://127.0.0.1:${upstream.port}`,
    defaultModel: 'm',
  })
  const { call, record } = await startRig({ credentials: [credential] })
  const texts = ({ body }: { body: string }): string[] => body.match(/(?<="text":")\d+/g) ?? []
  upstream.script = (response, request) => {
    const embeddings = texts(request).map((text) => ({ values: [Number(text)] }))
    return json(200, JSON.stringify({ embeddings }))(response, request)
  }
  const input = Array.from({ length: 650 }, (_, i) => String(i))
  const answer = await call('embeddings', { model: 'm', input })
  expect(answer.body.data.map(({ embedding }: { embedding: number[] }) => embedding[0])).toEqual(input.map(Number))
  expect(upstream.seen).toHaveLength(7)
  expect(await record()).toMatchObject({ outcome: 'ok', surface: 'embeddings', stream: false })
  const whole = upstream.script
  upstream.script = (response, request) =>
    (texts(request).includes('300') ? refusal(400, 'odd') : whole)(response, request)
  expect(await call('embeddings', { model: 'm', input })).toMatchObject({
    status: 400,
    headers: { 'x-mem-attempts': '1' },
  })
})
