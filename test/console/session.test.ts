import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { adjustableClock, startMemoryApi, type MemoryApi } from '../support/memory-api.ts'
import { writePair } from '../../src/config/certificates.ts'
import { Sessions } from '../../src/console/session.ts'
import { PAIRS } from '../config/pairs.ts'
import { createClient, signIn } from './console-client.ts'

const KEY = 'key-for-tests'
const DAY_MS = 86_400_000

describe('a server with a key', () => {
  const clock = adjustableClock()
  let api: MemoryApi
  beforeAll(async () => {
    api = await startMemoryApi({ dialect: 'sqlite', env: { MEM_API_KEY: KEY }, clock })
  })
  afterAll(() => api.stop())

  test('memory#151 without a cookie pages go to the sign-in, programs get 401', async () => {
    const client = createClient(api.url)
    for (const path of [
      '/ui/',
      '/ui/workspaces',
      '/ui/audit',
      '/ui/settings',
      '/ui/workspaces/ws_x/graph',
      '/ui/nope',
    ]) {
      const { status, headers } = await client.get(path)
      expect([path, status, headers.get('location')]).toEqual([path, 303, '/ui/login'])
    }
    const piece = await client.get('/ui/login', { 'hx-request': 'true' })
    expect(piece.headers.get('hx-redirect')).toBe('/ui/login')
    for (const path of ['/ui/api/graph/data', '/ui/events/activity', '/ui/audit/export', '/ui/api/bulk/dump']) {
      expect([path, (await client.get(path)).status]).toEqual([path, 401])
    }
    const posted = await fetch(`${api.url}/ui/api/workspaces/create`, {
      method: 'POST',
      body: new URLSearchParams({ name: 'x' }),
    })
    expect(posted.status).toBe(401)
    expect((await client.get('/ui/static/base.css')).status).toBe(200)
  })

  test('memory#151 a wrong key is a 401 page, the right one a cookie with all its marks', async () => {
    const client = createClient(api.url)
    const wrong = await client.post('/ui/login', { api_key: 'another key' })
    expect(wrong.status).toBe(401)
    expect(wrong.headers.get('content-type')).toContain('text/html')
    expect(wrong.text).toContain('not the key')
    expect(client.cookies.has('mem_session')).toBe(false)

    const right = await client.post('/ui/login', { api_key: KEY })
    expect([right.status, right.headers.get('location')]).toEqual([303, '/ui/'])
    const cookie = right.headers.getSetCookie().find((line) => line.startsWith('mem_session=')) ?? ''
    expect(cookie).toContain('Path=/ui')
    expect(cookie).toContain('HttpOnly')
    expect(cookie).toContain('SameSite=Lax')
    expect(cookie).toContain('Max-Age=86400')
    expect(cookie).not.toContain('Secure')
    expect((await client.get('/ui/')).status).toBe(200)
  })

  test('memory#151 a forged cookie, one past its end, one of another key, and a bare bearer key are refused', async () => {
    const client = await signIn(api.url, KEY)
    const [payload = '', signature = ''] = (client.cookies.get('mem_session') ?? '').split('.')
    const later = Buffer.from(JSON.stringify({ exp: 9_999_999_999, nonce: 'x' })).toString('base64url')
    const own = createHmac('sha256', KEY).update(later).digest('base64url')
    const other = new Sessions('another key', clock).open('another key')
    const forged = [`${later}.${signature}`, `${later}.${own}`, payload, `${payload}.`, '.', 'x.y.z', other ?? '']
    for (const value of forged) {
      client.cookies.set('mem_session', value)
      expect([value, (await client.get('/ui/')).status]).toEqual([value, 303])
    }
    const bearer = await createClient(api.url).get('/ui/', { authorization: `Bearer ${KEY}` })
    expect(bearer.status).toBe(303)

    client.cookies.set('mem_session', `${payload}.${signature}`)
    expect((await client.get('/ui/')).status).toBe(200)
    clock.advance(DAY_MS + 1000)
    expect((await client.get('/ui/')).status).toBe(303)
  })

  test('signing out clears the cookie', async () => {
    const client = await signIn(api.url, KEY)
    const { status, headers } = await client.post('/ui/logout', {})
    expect([status, headers.get('location')]).toEqual([303, '/ui/login'])
    expect(client.cookies.has('mem_session')).toBe(false)
  })

  test('memory#152 a POST without the token, or with that of another session, is 403 and has no effect', async () => {
    const client = await signIn(api.url, KEY)
    const other = await signIn(api.url, KEY)
    for (const token of [undefined, '', 'x', await other.token()]) {
      const body = new URLSearchParams({ name: 'never', ...(token !== undefined && { csrf_token: token }) })
      const cookie = `mem_session=${client.cookies.get('mem_session')}`
      const { status } = await fetch(`${api.url}/ui/api/workspaces/create`, {
        method: 'POST',
        body,
        headers: { cookie },
      })
      expect([token, status]).toEqual([token, 403])
    }
    expect((await client.get('/ui/workspaces')).text).not.toContain('never')
    const refused = await client.post('/ui/api/workspaces/create', { name: 'late', csrf_token: await other.token() })
    const renewed = refused.headers.get('X-CSRF-Token') ?? ''
    expect((await client.post('/ui/api/workspaces/create', { name: 'late', csrf_token: renewed })).status).toBe(303)
    const token = await client.token()
    const sent = await client.post(
      '/ui/api/workspaces/create',
      { name: 'once', csrf_token: undefined },
      { 'X-CSRF-Token': token },
    )
    expect(sent.status).toBe(303)
  })

  test('memory#152 a foreign Origin is 403 everywhere, the sign-in included', async () => {
    const client = await signIn(api.url, KEY)
    for (const origin of ['https://evil.example', 'null', `${api.url}.evil.example`]) {
      expect((await client.post('/ui/api/workspaces/create', { name: 'never' }, { origin })).status).toBe(403)
      expect((await client.post('/ui/login', { api_key: KEY }, { origin })).status).toBe(403)
      expect((await client.get('/ui/', { origin })).status).toBe(403)
    }
    expect((await client.post('/ui/api/workspaces/create', { name: 'own' }, { origin: api.url })).status).toBe(303)
    expect((await client.get('/ui/workspaces')).text).not.toContain('never')
  })
})

test('memory#151 under TLS the cookie is Secure', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-console-'))
  const { certFile, keyFile } = writePair(directory, PAIRS.a)
  const tls = { enabled: true, cert_file: certFile, key_file: keyFile }
  const api = await startMemoryApi({
    dialect: 'sqlite',
    env: { MEM_API_KEY: KEY },
    file: JSON.stringify({ server: { tls } }),
  })
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const sent = https.request(`${api.url}/ui/login`, { method: 'POST', headers, rejectUnauthorized: false })
  sent.end(new URLSearchParams({ api_key: KEY }).toString())
  const [answer] = await once(sent, 'response')
  answer.resume()
  expect(answer.statusCode).toBe(303)
  expect(answer.headers['set-cookie'][0]).toContain('Secure')
  await api.stop()
  rmSync(directory, { recursive: true })
})

describe('a server without a key', () => {
  let api: MemoryApi
  beforeAll(async () => {
    api = await startMemoryApi({ dialect: 'sqlite' })
  })
  afterAll(() => api.stop())

  test('memory#151 it is open; signing in leads on', async () => {
    const client = createClient(api.url)
    expect((await client.get('/ui/')).status).toBe(200)
    expect((await client.get('/ui/login')).headers.get('location')).toBe('/ui/')
  })

  test('memory#152 the token is a cookie of its own, to be sent twice', async () => {
    const client = createClient(api.url)
    const page = await client.get('/ui/')
    expect(
      page.headers.getSetCookie().some((line) => /^mem_csrf=.+; Path=\/ui; HttpOnly; SameSite=Lax/.test(line)),
    ).toBe(true)
    const bare = await fetch(`${api.url}/ui/api/workspaces/create`, {
      method: 'POST',
      body: new URLSearchParams({ name: 'x' }),
    })
    expect(bare.status).toBe(403)
    expect((await client.post('/ui/api/workspaces/create', { name: 'x' })).status).toBe(303)
  })

  test('a name that does not mean this machine is refused: another site may have pointed it here', async () => {
    const { port } = new URL(api.url)
    const client = createClient(`http://localhost:${port}`)
    expect((await client.get('/ui/')).status).toBe(200)
    const sent = http.request({ port, host: '127.0.0.1', path: '/ui/', headers: { host: 'evil.example' } }).end()
    const [answer] = await once(sent, 'response')
    answer.resume()
    expect(answer.statusCode).toBe(401)
  })
})
