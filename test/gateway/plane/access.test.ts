import { expect, test } from 'vitest'
import {
  CHAT,
  credentialAt,
  MESSAGE,
  PREFIX,
  SESSION,
  startRig,
  startUpstream,
  TOKEN,
  type RigOptions,
} from './support.ts'

const rig = async (options: RigOptions = {}) => {
  const upstream = await startUpstream()
  return { upstream, ...(await startRig({ credentials: [credentialAt(1, upstream)], ...options })) }
}

const ROUTES = ['chat/completions', 'messages', 'messages/count_tokens', 'responses', 'embeddings']

test('gateway#1 no, bad and expired tokens get one identical 401 on every route, in the envelope of the dialect', async () => {
  const expired = await rig({ key: { expiresAt: 1 } })
  const { call, upstream } = await rig()
  const answers = []
  for (const path of [...ROUTES, 'models', 'models/m', 'nowhere']) {
    const body = path.startsWith('models') || path === 'nowhere' ? undefined : CHAT
    for (const token of [null, 'nonsense', `mvk_${'b'.repeat(43)}`, `mst_${'b'.repeat(43)}`]) {
      answers.push({ path, answer: await call(path, body, { token }) })
    }
    answers.push({ path, answer: await expired.call(path, body) })
  }
  for (const { path, answer } of answers) {
    const { status, headers, body } = answer
    const error = path.startsWith('messages') ? body.error : { ...body.error, param: undefined }
    expect({ status, error }).toMatchObject({
      status: 401,
      error: {
        type: 'authentication_error',
        code: 'invalid_api_key',
        message: 'a valid session token or virtual key is required',
      },
    })
    expect(headers).toMatchObject({ 'www-authenticate': 'Bearer', 'x-request-id': headers['request-id'] })
    expect(body.type).toBe(path.startsWith('messages') ? 'error' : undefined)
  }
  expect(upstream.seen).toEqual([])
})

test('gateway#2 a session comes as cookie, bearer, x-api-key and api-key; two that differ are refused', async () => {
  const { call } = await rig()
  const sent: Record<string, string>[] = [
    { cookie: `a=b; session=${SESSION}` },
    { authorization: `Bearer ${SESSION}` },
    { 'x-api-key': SESSION },
    { 'api-key': SESSION },
    { 'api-key': SESSION, 'x-api-key': SESSION, cookie: `session=${SESSION}` },
  ]
  for (const headers of sent) {
    expect((await call('chat/completions', CHAT, { token: null, headers })).status).toBe(200)
  }
  const two = await call('chat/completions', CHAT, { headers: { 'x-api-key': SESSION } })
  expect(two).toMatchObject({ status: 401, body: { error: { code: 'invalid_api_key' } } })
  const twice = (...tokens: string[]) =>
    call('chat/completions', CHAT, { token: null, headers: { authorization: tokens.map((each) => `Bearer ${each}`) } })
  expect((await twice(SESSION, SESSION)).status).toBe(200)
  expect((await twice(SESSION, TOKEN)).status).toBe(401)
})

test('gateway#3 with x-mem-api-key a foreign Authorization is no matter, and stays here', async () => {
  const { call, upstream } = await rig()
  const headers = { 'x-mem-api-key': TOKEN, authorization: 'Bearer sk-of-somebody', 'x-api-key': 'another' }
  expect((await call('chat/completions', CHAT, { token: null, headers })).status).toBe(200)
  const [seen] = upstream.seen
  expect(seen?.headers['authorization']).toBe('Bearer provider key 1')
  expect(JSON.stringify(seen)).not.toMatch(/sk-of-somebody|another|mvk_/)
})

test('gateway#4 a cookie POST from a foreign origin is refused, a bearer is not', async () => {
  const { call, port } = await rig({ settings: {} })
  const cookie = { cookie: `session=${SESSION}` }
  const from = async (headers: Record<string, string>, token: string | null = null) =>
    (await call('chat/completions', CHAT, { token, headers })).status
  const refused = await call('chat/completions', CHAT, {
    token: null,
    headers: { ...cookie, origin: 'https://evil.example' },
  })
  expect(refused).toMatchObject({ status: 403, body: { error: { code: 'origin_refused', type: 'permission_error' } } })
  expect(await from({ ...cookie, 'content-type': 'text/plain' })).toBe(403)
  expect(await from({ ...cookie, origin: `http://127.0.0.1:${port}` })).toBe(200)
  expect(await from(cookie)).toBe(200)
  expect(await from({ origin: 'https://evil.example' }, SESSION)).toBe(200)
})

test('gateway#10 unknown paths and wrong methods are told in the envelope of the caller', async () => {
  const { call } = await rig()
  const unknown = await call('audio/speech', CHAT)
  expect(unknown).toMatchObject({
    status: 404,
    body: { error: { type: 'invalid_request_error', code: 'unknown_url' } },
  })
  const batches = await call('messages/batches', MESSAGE)
  expect(batches).toMatchObject({
    status: 404,
    body: { type: 'error', error: { type: 'not_found_error', code: 'unknown_url' } },
  })
  const twice = await call('v1/messages', MESSAGE)
  expect(twice.body.error.message).toContain('the base URL of this client ends before /v1')
  expect(batches.body.request_id).toBe(batches.headers['request-id'])
  const wrong = await call('messages', undefined, { method: 'GET' })
  expect(wrong).toMatchObject({ status: 405, body: { type: 'error', error: { code: 'method_not_allowed' } } })
  expect(wrong.headers['allow']).toBe('POST')
  expect(await call('models', CHAT)).toMatchObject({ status: 405, headers: { allow: 'GET' } })
})

test('both bases work with a slash too many, and the request id is kept if it is one', async () => {
  const { call } = await rig()
  for (const path of ['/v1/chat/completions', '/v1//chat/completions', '//v1/chat/completions?x=1']) {
    expect((await call(PREFIX + path, CHAT)).status).toBe(200)
  }
  const kept = await call('chat/completions', CHAT, { headers: { 'x-request-id': 'mine 1' } })
  expect(kept.headers).toMatchObject({ 'x-request-id': 'mine 1', 'request-id': 'mine 1' })
  const made = await call('chat/completions', CHAT, { headers: { 'x-request-id': 'x'.repeat(129) } })
  expect(made.headers['x-request-id']).toMatch(/^req_/)
})

test('after a hundred bad tokens an address waits; a key that is known still works', async () => {
  const { call, advance } = await rig()
  const bad = () => call('models', undefined, { token: 'bad' })
  for (let i = 0; i < 100; i++) expect((await bad()).status).toBe(401)
  const refused = await bad()
  expect(refused).toMatchObject({ status: 429, body: { error: { code: 'rate_limit_exceeded' } } })
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(50)
  expect((await call('models')).status).toBe(200)
  advance(60_000)
  expect((await bad()).status).toBe(401)
})

test('gateway#1 a session that another process ended is known for a second at most, one that ended here no more', async () => {
  let isGood = true
  let asked = 0
  const find = async () => (asked++, isGood ? { user: { id: 7, organization_id: 1 } } : undefined)
  const sessions = { ended: 0, find }
  const { call, advance } = await rig({ parts: { sessions } })
  const status = async () => (await call('models', undefined, { token: SESSION })).status
  expect([await status(), await status(), asked]).toEqual([200, 200, 1])
  isGood = false
  advance(1000)
  expect([await status(), asked]).toEqual([401, 2])
  isGood = true
  expect(await status()).toBe(200)
  isGood = false
  expect(await status()).toBe(200)
  sessions.ended++
  expect(await status()).toBe(401)
})

test('models in both shapes', async () => {
  const { call } = await rig({ credentials: [credentialAt(1, { port: 1 }, { allowedModels: ['org/one', 'two'] })] })
  const list = await call('models')
  expect(list.body).toEqual({
    object: 'list',
    data: ['org/one', 'two'].map((id) => ({
      id,
      object: 'model',
      created: expect.any(Number),
      owned_by: 'openai-compatible',
    })),
  })
  expect((await call('models/org/one')).body).toMatchObject({ id: 'org/one', object: 'model' })
  expect((await call('models/org%2Fone')).body).toMatchObject({ id: 'org/one' })
  expect(await call('models/org/on')).toMatchObject({
    status: 404,
    body: { error: { code: 'model_not_found', message: expect.stringContaining('names near it: "org/one"') } },
  })
  const headers = { 'anthropic-version': '2023-06-01' }
  expect((await call('models', undefined, { headers })).body).toMatchObject({
    data: [{ type: 'model', id: 'org/one', display_name: 'org/one' }, { id: 'two' }],
    first_id: 'org/one',
    last_id: 'two',
    has_more: false,
  })
  const page = async (query: string) => {
    const { data, first_id, last_id, has_more } = (await call(`models?${query}`, undefined, { headers })).body
    return [data.map(({ id }: { id: string }) => id), first_id, last_id, has_more]
  }
  expect(await page('limit=1')).toEqual([['org/one'], 'org/one', 'org/one', true])
  expect(await page('limit=1&after_id=org%2Fone')).toEqual([['two'], 'two', 'two', false])
  expect(await page('limit=1&before_id=two2')).toEqual([['two'], 'two', 'two', true])
  expect(await page('after_id=two')).toEqual([[], null, null, false])
  expect(await call('models?limit=0', undefined, { headers })).toMatchObject({
    status: 400,
    body: { error: { code: 'invalid_value', message: 'limit must be 1 to 1000' } },
  })
  expect((await call('models?limit=0')).status).toBe(200)
  expect(await call('models/three', undefined, { headers })).toMatchObject({
    status: 404,
    body: { type: 'error', error: { type: 'not_found_error', code: 'model_not_found' } },
  })
})

test('gateway#92 a database that does not say whose sessions are is logged once, and anew when it had come back', async () => {
  let isAway = true
  const find = async () => {
    if (isAway) throw new Error('connection refused')
    return undefined
  }
  const { call, logged } = await rig({ parts: { sessions: { ended: 0, find } } })
  const ask = async (letter: string) => (await call('models', undefined, { token: `mst_${letter.repeat(43)}` })).status
  expect([await ask('a'), await ask('b'), await ask('c')]).toEqual([503, 503, 503])
  const line = { fields: { reason: 'connection refused' }, message: 'sessions cannot be looked up' }
  expect(logged).toEqual([line])
  isAway = false
  expect(await ask('a')).toBe(401)
  isAway = true
  expect(await ask('b')).toBe(503)
  expect(logged).toEqual([line, line])
})
