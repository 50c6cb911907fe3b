import type { IncomingHttpHeaders } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'
import { expectEnvelope, send } from '../support/raw-request.ts'

describe('browsers', () => {
  let open: MemoryApi
  let listed: MemoryApi
  beforeAll(async () => {
    open = await startMemoryApi({ dialect: 'sqlite' })
    const env = { MEM_API_KEY: 'k', MEM_ALLOWED_ORIGINS: 'https://app.example, http://Other.example:8080' }
    listed = await startMemoryApi({ dialect: 'sqlite', env })
  })
  afterAll(async () => {
    await Promise.all([open.stop(), listed.stop()])
  })
  const corsOf = (headers: IncomingHttpHeaders): string[] =>
    Object.keys(headers).filter((name) => name.startsWith('access-control') || name === 'vary')

  test('pages may send and read the headers of streamable HTTP on /mcp, and nowhere else', async () => {
    const headers = { origin: 'https://app.example', 'Access-Control-Request-Method': 'POST' }
    const asked = async (path: string): Promise<string[]> => {
      const preflight = await send(listed.url + path, { method: 'OPTIONS', headers })
      return [preflight.headers['access-control-allow-headers'], preflight.headers['access-control-expose-headers']]
        .map(String)
        .map((list) => list.toLowerCase())
    }
    const [plain = '', exposed = ''] = await asked('/v1/workspaces')
    const own = ['mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'last-event-id'].join(', ')
    for (const path of ['/mcp', '/mcp?a=1'])
      expect(await asked(path)).toEqual([`${plain}, ${own}`, `${exposed}, mcp-session-id`])
    for (const path of ['/mcp/', '/mcpx', '/v1/mcp']) expect(await asked(path)).toEqual([plain, exposed])
  })

  test('memory#121 no allow-list: no CORS headers; listed: echoed, Vary; preflight 204 without key', async () => {
    const origin = 'https://app.example'
    for (const path of ['/healthz', '/v1/workspaces', '/nope']) {
      expect(corsOf((await send(open.url + path, { headers: { origin } })).headers)).toEqual([])
    }
    const options = await send(`${open.url}/v1/workspaces`, { method: 'OPTIONS' })
    expectEnvelope(options, 405, 'method_not_allowed')

    const expected = {
      vary: 'Origin',
      'access-control-allow-origin': origin,
      'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE, OPTIONS',
      'access-control-expose-headers': 'X-Request-ID, ETag',
      'access-control-max-age': '86400',
    }
    for (const path of ['/v1/workspaces', '/nope', '/healthz']) {
      const preflight = await send(listed.url + path, {
        method: 'OPTIONS',
        headers: { origin, 'Access-Control-Request-Method': 'POST' },
      })
      expect(preflight).toMatchObject({ status: 204, text: '', headers: expected })
      const allowed = String(preflight.headers['access-control-allow-headers']).split(', ')
      const agent = 'Mem-Agent-Id Mem-Identity-Provider Mem-Identity-Proof X-Mem-Workspace'
      const other = 'Authorization If-Match Idempotency-Key X-Request-ID Content-Type'
      expect(allowed.toSorted()).toEqual(`${agent} ${other}`.split(' ').toSorted())
      expect(await send(listed.url + path, { headers: { origin } })).toMatchObject({ status: 401, headers: expected })
    }
    const headers = { authorization: 'Bearer k' }
    const answer = await send(`${listed.url}/v1/workspaces`, {
      headers: { ...headers, origin: 'HTTP://other.EXAMPLE:8080' },
    })
    expect(answer).toMatchObject({
      status: 200,
      headers: { 'access-control-allow-origin': 'HTTP://other.EXAMPLE:8080' },
    })
    for (const foreign of ['https://evil.example', 'https://app.example.evil', 'null', '']) {
      const reply = await send(`${listed.url}/v1/workspaces`, { headers: { ...headers, origin: foreign } })
      expect([reply.status, corsOf(reply.headers), reply.headers.vary]).toEqual([200, ['vary'], 'Origin'])
      expect((await send(`${listed.url}/x`, { method: 'OPTIONS', headers: { origin: foreign } })).status).toBe(204)
    }
    const any = await startMemoryApi({ dialect: 'sqlite', env: { MEM_ALLOWED_ORIGINS: '*' } })
    const starred = await send(`${any.url}/v1/workspaces`, {
      method: 'POST',
      headers: { origin },
      body: '{"name":"x"}',
    })
    expect(starred).toMatchObject({ status: 201, headers: { 'access-control-allow-origin': origin } })
    await any.stop()
  })

  test('memory#122 keyless loopback: foreign Host or cross-site POST 401', async () => {
    const { host, port } = new URL(open.url)
    const url = `${open.url}/v1/workspaces`
    const body = '{"name":"x"}'
    for (const own of [
      host,
      `localhost:${port}`,
      `LOCALHOST:${port}`,
      `[::1]:${port}`,
      '127.0.0.1',
      '127.8.8.8:1',
      'localhost',
    ]) {
      expect((await send(url, { headers: { Host: own } })).status).toBe(200)
      const posted = await send(url, { method: 'POST', headers: { Host: own, Origin: `http://${own}` }, body })
      expect(posted.status).toBe(201)
    }
    for (const foreign of [
      'evil.example',
      `evil.example:${port}`,
      `127.0.0.1.evil.example:${port}`,
      'localhost.evil',
      '10.0.0.1',
      '0.0.0.0',
      '127.0.0.1@evil',
    ]) {
      for (const path of ['/v1/workspaces', '/healthz', '/nope']) {
        expectEnvelope(await send(open.url + path, { headers: { Host: foreign } }), 401, 'unauthorized')
      }
    }
    for (const origin of [
      'https://evil.example',
      'null',
      `http://localhost.evil:${port}`,
      `http://127.0.0.1:${Number(port) - 1}`,
    ]) {
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
        expectEnvelope(await send(url, { method, headers: { Host: host, Origin: origin }, body }), 401, 'unauthorized')
      }
      expect((await send(url, { headers: { Host: host, Origin: origin } })).status).toBe(200)
      const upgrade = { Host: host, Origin: origin, Connection: 'Upgrade', Upgrade: 'websocket' }
      expectEnvelope(await send(`${open.url}/mcp`, { headers: upgrade }), 401, 'unauthorized')
    }
    expect((await send(url, { method: 'POST', headers: { Host: host }, body })).status).toBe(201)
    const trusting = await startMemoryApi({ dialect: 'sqlite', env: { MEM_ALLOWED_ORIGINS: 'https://app.example' } })
    const listedHeaders = { Host: new URL(trusting.url).host, Origin: 'https://APP.example' }
    expect((await send(`${trusting.url}/v1/workspaces`, { method: 'POST', headers: listedHeaders, body })).status).toBe(
      201,
    )
    await trusting.stop()
    const free = await startMemoryApi({ dialect: 'sqlite', flags: { 'allow-no-auth': true } })
    const foreign = { Host: 'evil.example', Origin: 'https://evil.example' }
    expect((await send(`${free.url}/v1/workspaces`, { method: 'POST', headers: foreign, body })).status).toBe(201)
    await free.stop()
  })
})
