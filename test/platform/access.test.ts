import { expect, test } from 'vitest'
import { createApp } from '../../src/app.ts'
import { send } from '../support/raw-request.ts'
import {
  addOrganization,
  describeInPlaces,
  describePlatform,
  expectError,
  expectOk,
  initialize,
  PASSWORD,
  startPlatform,
  type PlatformApi,
  type Reply,
} from './support.ts'

const TOKEN = /^mst_[\w-]{43}$/
const COOKIE = /^session=(mst_[\w-]{43}); Path=\/rest\/v1; HttpOnly; SameSite=Lax; Max-Age=2592000$/

describePlatform('sessions', (api) => {
  const login = (email: string, password: string): Promise<Reply> =>
    api().call('POST', '/login', { email, password }, { token: null })
  const me = (headers: Record<string, string>): Promise<Reply> =>
    api().call('GET', '/me', undefined, { token: null, headers })

  test('git-host#2 login: token and cookie; wrong is 401, whatever is wrong', async () => {
    const reply = await login('ADA@example.org', PASSWORD)
    const { token, expires_at, user } = expectOk(reply)
    expect(token).toMatch(TOKEN)
    expect(expires_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    expect(user).toEqual({ id: 1, organization_id: 1, email: 'ada@example.org', role: 'admin', active: true })
    expect(reply.headers.getSetCookie()).toEqual([expect.stringMatching(COOKIE)])
    expect(reply.headers.getSetCookie()[0]).toContain(token)
    expect(reply.headers.get('cache-control')).toBe('no-store')
    const wrong = await login('ada@example.org', `${PASSWORD}!`)
    const unknown = await login('nobody@example.org', PASSWORD)
    expectError(wrong, 401, 'unauthorized')
    expect(unknown).toMatchObject({ status: 401, body: wrong.body })
    expect(wrong.headers.getSetCookie()).toEqual([])
    for (const body of [
      {},
      { email: 'a@b.c' },
      { email: 1, password: PASSWORD },
      { email: 'a@b.c', password: 'x', more: 1 },
    ]) {
      expectError(await api().call('POST', '/login', body, { token: null }), 400, 'invalid_request')
    }
  })

  test('git-host#2 the eleventh login after ten failures is 429, per e-mail and per address', async () => {
    for (let i = 0; i < 10; i++) expectError(await login('ada@example.org', 'wrong'), 401, 'unauthorized')
    const refused = await login('ada@example.org', PASSWORD)
    expectError(refused, 429, 'rate_limited')
    const wait = Number(refused.headers.get('retry-after'))
    expect(wait).toBeGreaterThan(800)
    expect(wait).toBeLessThanOrEqual(900)
    expectError(await login('other@example.org', PASSWORD), 429, 'rate_limited')
    expectOk(await api().call('GET', '/me'))
    api().advance(wait * 1000)
    expectOk(await login('ada@example.org', PASSWORD))
  })

  test('git-host#2 a clock that is set back lets people in again', async () => {
    api().advance(2 * 3_600_000)
    for (let i = 0; i < 10; i++) expectError(await login('ada@example.org', 'wrong'), 401, 'unauthorized')
    expectError(await login('ada@example.org', PASSWORD), 429, 'rate_limited')
    api().advance(-5 * 60_000)
    expectError(await login('ada@example.org', PASSWORD), 429, 'rate_limited')
    api().advance(-11 * 60_000)
    expectOk(await login('ada@example.org', PASSWORD))
    api().advance(3_600_000)
  })

  test('git-host#2 many at once get no more than ten tries', async () => {
    const replies = await Promise.all(Array.from({ length: 14 }, (_, i) => login(`many${i}@example.org`, 'wrong')))
    const statuses = replies.map(({ status }) => status).sort((a, b) => a - b)
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429, 429, 429])
  })

  test('logins that succeed are no failures', async () => {
    for (let i = 0; i < 11; i++) expectOk(await login('ada@example.org', PASSWORD))
    const replies = await Promise.all(Array.from({ length: 25 }, () => login('ada@example.org', PASSWORD)))
    for (const reply of replies) expectOk(reply)
  })

  test('git-host#3 cookie and bearer work; two different are 401', async () => {
    const { token } = expectOk(await login('ada@example.org', PASSWORD))
    const { user, organization } = expectOk(await me({ Authorization: `Bearer ${token}` }))
    expect(user).toMatchObject({ email: 'ada@example.org' })
    expect(organization).toEqual({ id: 1, name: 'Acme' })
    expectOk(await me({ Cookie: `theme=dark; session=${token}` }))
    expectOk(await me({ Cookie: `session=${token}`, Authorization: `bearer ${token}` }))
    const bad: Record<string, string>[] = [
      {},
      { Authorization: token },
      { Authorization: `Basic ${token}` },
      { Authorization: 'Bearer mst_x' },
      { Authorization: `Bearer ${token.slice(0, -1)}` },
      { Cookie: 'session=' },
      { Cookie: `mem_session=${token}` },
      { Cookie: `session=${token}`, Authorization: `Bearer ${api().admin}` },
      { Cookie: `session=${token}; session=other` },
    ]
    for (const headers of bad) expectError(await me(headers), 401, 'unauthorized')
  })

  test('git-host#3 logout, deactivation and expiry end a session', async () => {
    const bo = await api().user('bo@example.org')
    const asBo = { token: bo.token }
    const other = await api().login('bo@example.org')
    const left = await api().call('POST', '/logout', undefined, asBo)
    expectOk(left, 204)
    expect(left.headers.getSetCookie()).toEqual(['session=; Path=/rest/v1; HttpOnly; SameSite=Lax; Max-Age=0'])
    expectError(await api().call('GET', '/me', undefined, asBo), 401, 'unauthorized')
    expectError(await api().call('POST', '/logout', undefined, asBo), 401, 'unauthorized')
    expectOk(await api().call('GET', '/me', undefined, { token: other }))

    expectOk(await api().call('PATCH', `/users/${bo.id}`, { active: false }))
    expectError(await api().call('GET', '/me', undefined, { token: other }), 401, 'unauthorized')
    expectError(await login('bo@example.org', PASSWORD), 401, 'unauthorized')
    expectOk(await api().call('PATCH', `/users/${bo.id}`, { active: true }))
    expectError(await api().call('GET', '/me', undefined, { token: other }), 401, 'unauthorized')

    const cy = await api().user('cy@example.org')
    api().advance(720 * 3_600_000 - 60_000)
    expectOk(await api().call('GET', '/me', undefined, { token: cy.token }))
    api().advance(60_000)
    expectError(await api().call('GET', '/me', undefined, { token: cy.token }), 401, 'unauthorized')
    api().advance(-720 * 3_600_000)
  })

  test('a new password ends the other sessions', async () => {
    const { id, token } = await api().user('dee@example.org')
    const password = 'another long password'
    expectOk(await api().call('PATCH', `/users/${id}`, { password }))
    expectError(await api().call('GET', '/me', undefined, { token }), 401, 'unauthorized')
    expectError(await login('dee@example.org', PASSWORD), 401, 'unauthorized')
    expectOk(await login('dee@example.org', password))
    const again = await api().login('ada@example.org')
    expectOk(await api().call('PATCH', '/users/1', { password: PASSWORD }))
    expectOk(await api().call('GET', '/me'))
    expectError(await api().call('GET', '/me', undefined, { token: again }), 401, 'unauthorized')
  })

  test('git-host#4 with a cookie, a foreign origin or a form is 403; bearer works', async () => {
    const cookie = { Cookie: `session=${api().admin}` }
    const post = (headers: Record<string, string>, token: string | null = null, raw = '{}'): Promise<Reply> =>
      api().call('PATCH', '/users/1', undefined, { token, headers, raw })
    const foreign = { Origin: 'https://evil.example' }
    const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
    expectError(await post({ ...cookie, ...foreign }), 403, 'forbidden')
    expectError(await post({ ...cookie, Origin: 'null' }), 403, 'forbidden')
    expectError(await post({ ...cookie, ...form }), 403, 'forbidden')
    expectError(await post({ ...cookie, 'Content-Type': 'text/plain' }), 403, 'forbidden')
    expectError(
      await api().call('POST', '/logout', undefined, { token: null, headers: { ...cookie, ...foreign } }),
      403,
      'forbidden',
    )
    expectError(
      await api().call('POST', '/login', { email: 'a@b.c', password: 'x' }, { token: null, headers: foreign }),
      403,
      'forbidden',
    )
    expectOk(await post(cookie))
    expectOk(await post({ ...cookie, Origin: api().url, 'Content-Type': 'application/json; charset=utf-8' }))
    expectOk(await post({ ...foreign, ...form }, api().admin))
    expectOk(await me({ ...cookie, ...foreign }))
  })

  test('git-host#6 every error has the envelope; unknown path too, behind the session', async () => {
    const call = (method: string, path: string, options = {}): Promise<Reply> =>
      api().call(method, path, undefined, options)
    expectError(await call('GET', '/nope', { token: null }), 401, 'unauthorized')
    for (const path of ['/nope', '//rest/v1', '//rest/v1/', '//rest/v1/llm', '/users/1/more', '/%ff']) {
      expectError(await call('GET', path), 404, 'not_found', { resource: 'path' })
    }
    const other = await call('DELETE', '/me')
    expectError(other, 405, 'method_not_allowed')
    expect(other.headers.get('allow')).toBe('GET, HEAD')
    expectError(await call('GET', '/login'), 405, 'method_not_allowed')
    expect((await api().call('POST', '/users', undefined, { raw: '{' })).body.error.code).toBe('invalid_request')
    for (const raw of ['', '[]', 'null', '{"email":"a\\u0000"}', Buffer.from([0x7b, 0xff])]) {
      expectError(await api().call('POST', '/users', undefined, { raw }), 400, 'invalid_request')
    }
    expectError(
      await api().call('POST', '/users', undefined, { raw: '{"email":"a\\u0000"}' }),
      400,
      'invalid_request',
      {
        field: 'email',
      },
    )
    const large = (bytes: number) => JSON.stringify({ email: 'x'.repeat(bytes) })
    expectError(await api().call('POST', '/users', undefined, { raw: large(1024 * 1024) }), 413, 'payload_too_large')
    expectError(
      await api().call('POST', '/users', undefined, { raw: large(9 * 1024 * 1024) }),
      413,
      'payload_too_large',
    )
    expectError(await api().call('POST', '/users', undefined, { raw: large(1024 * 1024 - 20) }), 400, 'invalid_request')
    expectError(await call('GET', '/users?limit=1&limit=2'), 400, 'invalid_request', { field: 'limit' })
    expectOk(await call('GET', '//healthz'))
    expect((await send(`${api().url}/metrics`)).text).toContain('route="/rest/v1/platform/me"')
    expect((await call('GET', '//nope')).body).toMatchObject({ error_code: 'not_found' })
  })

  test('no answer and no row holds a token or a password', async () => {
    const { token } = expectOk(await login('ada@example.org', PASSWORD))
    const database = api().place.open()
    const rows = await database.all('SELECT * FROM platform_sessions, platform_users')
    await database.close()
    expect(JSON.stringify(rows)).not.toContain(token.slice(4))
    expect(JSON.stringify(rows)).not.toContain(PASSWORD)
    expect(JSON.stringify((await api().call('GET', '/users')).body)).not.toMatch(/scrypt|password|hash/)
  })
})

describeInPlaces('before there is an organization', (place) => {
  test('git-host#1 503 not_initialized on every route, and the memory service goes on', async () => {
    const app = await createApp(place().config())
    const url = await app.listen()
    const get = (path: string): Promise<Response> => fetch(url + path)
    for (const path of [
      '/platform/me',
      '/platform/login',
      '/nope',
      '/llm-gateway/settings',
      '/llm-gateway/v1/models',
    ]) {
      const response = await get(`/rest/v1${path}`)
      expect(response.status).toBe(503)
      expect(await response.json()).toMatchObject({ error: { code: 'not_initialized' } })
    }
    expect((await get('/readyz')).status).toBe(200)
    expect((await get('/metrics')).status).toBe(200)
    await initialize(place())
    expect((await get('/rest/v1/platform/me')).status).toBe(401)
    await app.close()
  })
})

describeInPlaces('beside the memory service', (place) => {
  let api: PlatformApi

  test('git-host#5 the API key is 401 on /rest/v1, a session token 401 on /v1', async () => {
    await initialize(place())
    api = await startPlatform(place(), { MEM_API_KEY: 'k-test' })
    expectError(await api.call('GET', '/me', undefined, { token: 'k-test' }), 401, 'unauthorized')
    expect((await api.call('GET', '//v1/workspaces')).status).toBe(401)
    expect((await api.call('GET', '//v1/workspaces', undefined, { token: 'k-test' })).status).toBe(200)
    expectOk(await api.call('GET', '/me'))
    await api.stop()
  })

  test('--services narrows: each alone, and the other is not there', async () => {
    const memory = await createApp(place().config(), { services: ['memory'] })
    const memoryUrl = await memory.listen()
    expect((await fetch(`${memoryUrl}/v1/workspaces`)).status).toBe(200)
    expect((await fetch(`${memoryUrl}/rest/v1/platform/me`)).status).toBe(404)
    await memory.close()
    const platform = await createApp(place().config({ MEM_ADDR: '127.0.0.1:0' }), { services: ['platform'] })
    const url = await platform.listen()
    expect((await fetch(`${url}/rest/v1/platform/me`)).status).toBe(401)
    const unknown = await fetch(`${url}/v1/workspaces`)
    expect([unknown.status, await unknown.json()]).toMatchObject([404, { error: { code: 'not_found' } }])
    await platform.close()
  })

  test('the cookie is Secure where the public address is https', async () => {
    const { host } = new URL(api.url)
    const behind = await startPlatform(place(), { BASE_URL: `https://${host}` })
    const name = new URL(behind.url).host
    const login = { email: 'ada@example.org', password: PASSWORD }
    const cookieOf = async (Host: string): Promise<string> => {
      const body = JSON.stringify(login)
      const { headers } = await send(`${behind.url}/rest/v1/platform/login`, {
        method: 'POST',
        headers: { Host },
        body,
      })
      return String(headers['set-cookie'])
    }
    expect(await cookieOf(host)).toMatch(/; Secure$/)
    expect(await cookieOf(name)).not.toContain('Secure')
    const headers = { Cookie: `session=${behind.admin}`, Origin: `https://${host}` }
    expectOk(await behind.call('PATCH', '/users/1', {}, { token: null, headers }))
    await behind.stop()
  })

  test('organizations do not see each other', async () => {
    await addOrganization(place(), 'sirius')
    api = await startPlatform(place())
    const token = await api.login('sirius@example.net')
    const users = expectOk(await api.call('GET', '/users', undefined, { token })).users
    expect(users.map(({ email }: { email: string }) => email)).toEqual(['sirius@example.net'])
    expectError(await api.call('PATCH', '/users/1', { active: false }, { token }), 404, 'not_found', {
      resource: 'user',
      id: 1,
    })
    await api.stop()
  })
})
