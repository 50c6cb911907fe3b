import { mkdtempSync, rmSync } from 'node:fs'
import { once } from 'node:events'
import { request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createIdSource } from '../../src/base/ids.ts'
import { systemClock } from '../../src/base/clock.ts'
import { sha256 } from '../../src/base/hash.ts'
import { createLogger } from '../../src/base/log.ts'
import { packageRoot } from '../../src/base/package-root.ts'
import { version } from '../../src/base/version.ts'
import { migrate } from '../../src/database/migrate.ts'
import { openDatabase } from '../../src/database/open.ts'
import { createListener } from '../../src/http/listener.ts'
import { createEmbedder } from '../../src/memory/embedder/registry.ts'
import { mountMemory } from '../../src/memory/routes/index.ts'
import { LocalSearch } from '../../src/memory/search/local.ts'
import { MemoryService } from '../../src/memory/service.ts'
import { createCellSource } from '../../src/memory/store/cell-source.ts'
import { startEmbeddingProvider } from '../support/embedding-provider.ts'
import { describeOnBoth, startMemoryApi, type MemoryApi } from '../support/memory-api.ts'
import { createPostgresDatabase, hasPostgres } from '../support/postgres.ts'
import { startServer, type RunningServer } from '../support/server.ts'

const ABSENT = '00000000000000000000000000'
const MIB = 1024 * 1024

interface RawReply {
  /** Method and URL, to tell a failure by. */
  asked: string
  status: number
  headers: IncomingHttpHeaders
  text: string
}

/** A request as no HTTP client would send it: any method, any Host, chunked where there is no length. */
async function send(
  url: string,
  { method = 'GET', headers = {}, body }: { method?: string; headers?: OutgoingHttpHeaders; body?: Uint8Array | string } = {},
): Promise<RawReply> {
  const isChunked = Object.hasOwn(headers, 'Transfer-Encoding')
  const length = body === undefined || isChunked ? {} : { 'Content-Length': Buffer.byteLength(body) }
  const request = httpRequest(url, { method, headers: { ...length, ...headers }, agent: false })
  const answered = once(request, 'response')
  request.end(body)
  const [response] = await answered
  return { asked: `${method} ${url}`, status: response.statusCode, headers: response.headers, text: await text(response) }
}

/** An error as memory.md 2.4 has it. */
function expectEnvelope(
  { status: given, text: body, asked }: { status: number; text: string; asked?: string },
  status: number,
  code: string,
): Record<string, unknown> {
  expect({ asked, status: given, body }).toEqual({ asked, status, body })
  const envelope: { details: Record<string, unknown> } = JSON.parse(body)
  expect(envelope).toEqual({ error_code: code, message: expect.stringMatching(/./), details: expect.any(Object) })
  expect(Array.isArray(envelope.details)).toBe(false)
  return envelope.details
}

describe('a server with a key', () => {
  const KEY = 'correct-horse-battery'
  let server: RunningServer
  beforeAll(async () => {
    server = await startServer({ env: { MEM_API_KEY: KEY } })
  })
  afterAll(() => server.stop())
  const bearer = { authorization: `Bearer ${KEY}` }

  test('memory#116 missing, wrong, short, long, Basic token: 401, no echo; /healthz too', async () => {
    const wrong = ['Bearer wrong-horse', `Bearer ${KEY.slice(0, -1)}`, `Bearer ${KEY}x`, `Bearer ${'z'.repeat(8000)}`, 'Bearer', 'Bearer ']
    const others = [`Basic ${Buffer.from(`a:${KEY}`).toString('base64')}`, `Basic ${KEY}`, KEY, `Bearer ${KEY} ${KEY}`, `Token ${KEY}`]
    const paths = ['/healthz', '/readyz', '/mcp', '/v1/workspaces', '/v1/nope', '/', '/favicon.ico', '/v1/workspaces/%zz', '/uix']
    for (const path of paths) {
      const missing = await send(server.url + path)
      expect(expectEnvelope(missing, 401, 'unauthorized')).toEqual({})
      for (const authorization of [...wrong, ...others]) {
        const reply = await send(server.url + path, { headers: { authorization } })
        expect(expectEnvelope(reply, 401, 'unauthorized')).toEqual({})
        expect(JSON.stringify(reply)).not.toContain(KEY)
        expect(JSON.stringify(reply)).not.toMatch(/horse|zzzz/)
        expect(JSON.parse(reply.text).message).not.toBe(JSON.parse(missing.text).message)
      }
    }
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']) {
      expectEnvelope(await send(`${server.url}/v1/workspaces`, { method, body: '{"name":"x"}' }), 401, 'unauthorized')
    }
    for (const authorization of [bearer.authorization, `bearer ${KEY}`, `BEARER  ${KEY}`]) {
      const health = await send(`${server.url}/healthz`, { headers: { authorization } })
      expect([health.status, JSON.parse(health.text)]).toEqual([200, { ok: true, status: 'live', version }])
    }
    expect(JSON.parse((await send(`${server.url}/v1/workspaces`, { headers: bearer })).text)).toEqual({ workspaces: [] })
    expect(server.output()).not.toMatch(/horse|zzzz/)
    expect(server.output()).toContain(sha256(KEY).slice(0, 8))
  })

  test('memory#120 request id echoed or generated, also on 401 and 404; in the log', async () => {
    const good = ['a', 'trace-1/2 {x}', '~'.repeat(128), '"quoted"']
    const bad = ['', 'x'.repeat(129), 'tab\there', 'é']
    const places: [path: string, headers: object, status: number][] = [
      ['/healthz', bearer, 200],
      ['/v1/workspaces', {}, 401],
      ['/v1/nope', bearer, 404],
      ['/healthz', { ...bearer, 'x-method': 'DELETE' }, 405],
      ['/v1/workspaces/ws_x', bearer, 404],
    ]
    for (const [path, headers, status] of places) {
      const method = status === 405 ? 'DELETE' : 'GET'
      for (const id of good) {
        const reply = await send(server.url + path, { method, headers: { ...headers, 'X-Request-ID': `${id}` } })
        expect([reply.status, reply.headers['x-request-id']]).toEqual([status, id])
      }
      for (const id of [undefined, ...bad]) {
        const sent = { ...headers, ...(id !== undefined && { 'X-Request-ID': Buffer.from(id).toString('latin1') }) }
        const reply = await send(server.url + path, { method, headers: sent })
        expect(reply.headers['x-request-id']).toMatch(/^req_[0-9A-HJKMNP-TV-Z]{26}$/)
      }
    }
    const marked = async (id: string, path: string, headers: object): Promise<void> => {
      await send(server.url + path, { headers: { ...headers, 'X-Request-ID': id } })
      const line = async (): Promise<unknown> => server.output().split('\n').find((each) => each.includes(`"${id}"`))
      await expect.poll(line).toBeDefined()
      expect(JSON.parse(String(await line()))).toMatchObject({
        method: 'GET',
        path: path.split('?')[0],
        status: expect.any(Number),
        duration_ms: expect.any(Number),
        request_id: id,
      })
    }
    await marked('logged-200', '/v1/workspaces?limit=1', bearer)
    await marked('logged-401', '/v1/workspaces', {})
    await marked('logged-404', '/nope', bearer)
    expect(server.output().split('"logged-401"')).toHaveLength(2)
  })
})

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
      const allowed = String(preflight.headers['access-control-allow-headers']).split(', ').sort()
      expect(allowed).toEqual(
        [
          ...['Authorization', 'Mem-Agent-Id', 'Mem-Identity-Provider', 'Mem-Identity-Proof', 'X-Mem-Workspace'],
          ...['If-Match', 'Idempotency-Key', 'X-Request-ID', 'Content-Type'],
        ].sort(),
      )
      expect(await send(listed.url + path, { headers: { origin } })).toMatchObject({ status: 401, headers: expected })
    }
    const headers = { authorization: 'Bearer k' }
    const answer = await send(`${listed.url}/v1/workspaces`, { headers: { ...headers, origin: 'HTTP://other.EXAMPLE:8080' } })
    expect(answer).toMatchObject({ status: 200, headers: { 'access-control-allow-origin': 'HTTP://other.EXAMPLE:8080' } })
    for (const foreign of ['https://evil.example', 'https://app.example.evil', 'null', '']) {
      const reply = await send(`${listed.url}/v1/workspaces`, { headers: { ...headers, origin: foreign } })
      expect([reply.status, corsOf(reply.headers), reply.headers.vary]).toEqual([200, ['vary'], 'Origin'])
      expect((await send(`${listed.url}/x`, { method: 'OPTIONS', headers: { origin: foreign } })).status).toBe(204)
    }
    const any = await startMemoryApi({ dialect: 'sqlite', env: { MEM_ALLOWED_ORIGINS: '*' } })
    const starred = await send(`${any.url}/v1/workspaces`, { method: 'POST', headers: { origin }, body: '{"name":"x"}' })
    expect(starred).toMatchObject({ status: 201, headers: { 'access-control-allow-origin': origin } })
    await any.stop()
  })

  test('memory#122 keyless loopback: foreign Host or cross-site POST 401', async () => {
    const { host, port } = new URL(open.url)
    const url = `${open.url}/v1/workspaces`
    const body = '{"name":"x"}'
    for (const own of [host, `localhost:${port}`, `LOCALHOST:${port}`, `[::1]:${port}`, '127.0.0.1', '127.8.8.8:1', 'localhost']) {
      expect((await send(url, { headers: { Host: own } })).status).toBe(200)
      const posted = await send(url, { method: 'POST', headers: { Host: own, Origin: `http://${own}` }, body })
      expect(posted.status).toBe(201)
    }
    for (const foreign of ['evil.example', `evil.example:${port}`, `127.0.0.1.evil.example:${port}`, 'localhost.evil', '10.0.0.1', '0.0.0.0', '127.0.0.1@evil']) {
      for (const path of ['/v1/workspaces', '/healthz', '/nope']) {
        expectEnvelope(await send(open.url + path, { headers: { Host: foreign } }), 401, 'unauthorized')
      }
    }
    for (const origin of ['https://evil.example', 'null', `http://localhost.evil:${port}`, `http://127.0.0.1:${Number(port) - 1}`]) {
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
    expect((await send(`${trusting.url}/v1/workspaces`, { method: 'POST', headers: listedHeaders, body })).status).toBe(201)
    await trusting.stop()
    const free = await startMemoryApi({ dialect: 'sqlite', flags: { 'allow-no-auth': true } })
    const foreign = { Host: 'evil.example', Origin: 'https://evil.example' }
    expect((await send(`${free.url}/v1/workspaces`, { method: 'POST', headers: foreign, body })).status).toBe(201)
    await free.stop()
  })
})

describeOnBoth('http', (api) => {
  const post = (path: string, body: Uint8Array | string, headers: OutgoingHttpHeaders = {}): Promise<RawReply> =>
    send(`${api().url}/v1${path}`, { method: 'POST', headers: { 'Mem-Agent-Id': 'agent_test', ...headers }, body })

  test('memory#117 unknown path: 404 envelope; wrong method: 405 method_not_allowed, Allow', async () => {
    const ws = await api().workspace()
    const id = await api().imprint(ws, 'x')
    const W = `/v1/workspaces/${ws}`
    const M = `${W}/memories/${id}`
    const unknown = ['/', '/v1', '/v1/', '/v2/workspaces', '/V1/workspaces', '/v1/workspaces/', `${W}/`, `${W}/nope`, `${M}/nope`, `${M}/edges/x`]
    const odd = ['//', '/v1//workspaces', '/%', '/v1/workspaces/%zz/nope', '/..%2f', `${W}/graph`, `${W}/recall/pins/a/b`, '/mcp']
    for (const path of [...unknown, ...odd]) {
      for (const method of ['GET', 'POST', 'DELETE']) {
        const headers = { 'Mem-Agent-Id': 'agent_test' }
        const details = expectEnvelope(await send(api().url + path, { method, headers }), 404, 'not_found')
        expect(details).toEqual({ resource: expect.any(String), id: expect.any(String) })
      }
    }
    for (const path of [`${W}/edges:batch`, `${M}:nope`, `${M}:append:append`]) {
      expectEnvelope(await send(api().url + path, { method: 'POST', headers: { 'Mem-Agent-Id': 'agent_x' } }), 404, 'not_found')
    }
    const paths: Record<string, string> = {
      '/healthz': 'GET, HEAD',
      '/readyz': 'GET, HEAD',
      '/v1/workspaces': 'GET, HEAD, POST',
      [W]: 'DELETE, GET, HEAD, PUT',
      [`${W}/collections`]: 'GET, HEAD, POST',
      [`${W}/collections/coll_x`]: 'DELETE, GET, HEAD',
      [`${W}/memories`]: 'GET, HEAD, POST',
      [M]: 'DELETE, GET, HEAD, PATCH, PUT',
      [`${M}:append`]: 'POST',
      [`${M}%3Aappend`]: 'POST',
      [`${M}@wmk_x`]: 'GET, HEAD',
      [`${M}/watermarks`]: 'GET, HEAD',
      [`${M}/tags/k`]: 'DELETE, POST, PUT',
      [`${M}/edges`]: 'GET, HEAD, POST',
      [`${W}/edges/:batch`]: 'POST',
      [`${W}/edges/edg_x`]: 'DELETE',
      [`${W}/graph/neighbors`]: 'POST',
      [`${W}/graph/traverse`]: 'POST',
      [`${W}/graph/stats`]: 'GET, HEAD',
      [`${W}/recall`]: 'POST',
      [`${W}/recall/pins`]: 'GET, HEAD, POST',
      [`${W}/recall/pins/pin_x`]: 'DELETE',
      [`${W}/agents`]: 'GET, HEAD, POST',
      [`${W}/agents/agent_x`]: 'DELETE, GET, HEAD',
      [`${W}/ledger`]: 'GET, HEAD',
    }
    for (const [path, allow] of Object.entries(paths)) {
      const allowed = allow.split(', ')
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND']) {
        if (allowed.includes(method)) continue
        const reply = await send(api().url + path, { method })
        expect({ path, method, status: reply.status }).toEqual({ path, method, status: 405 })
        expect({ path, allow: String(reply.headers.allow).split(', ').sort() }).toEqual({ path, allow: allowed })
        if (method !== 'HEAD') expectEnvelope(reply, 405, 'method_not_allowed')
      }
    }
    // The route is checked before the agent, the workspace and the body.
    expectEnvelope(await send(`${api().url}/v1/workspaces/ws_x/memories`, { method: 'PATCH', body: '{' }), 405, 'method_not_allowed')
  })

  test('HEAD equals GET without body', async () => {
    const ws = await api().workspace()
    const id = await api().imprint(ws, 'x')
    for (const path of ['/healthz', '/v1/workspaces', `/v1/workspaces/${ws}`, `/v1/workspaces/${ws}/memories/${id}`, '/v1/nope']) {
      const [got, head] = [await send(api().url + path), await send(api().url + path, { method: 'HEAD' })]
      expect([head.status, head.text]).toEqual([got.status, ''])
      for (const name of ['content-type', 'content-length', 'etag']) expect(head.headers[name]).toBe(got.headers[name])
    }
  })

  test('memory#118 every error has code, message, object details', async () => {
    const ws = await api().workspace()
    const W = `/workspaces/${ws}`
    const id = await api().imprint(ws, 'a a')
    const other = await api().imprint(ws, 'b')
    const head = (await api().call('GET', `${W}/memories/${id}`)).body.head_watermark
    await api().call('POST', `${W}/collections`, { name: 'taken' })
    await api().call('POST', `${W}/memories/${id}/edges`, { target_memory_id: other, edge_type: 'mentions' })
    const patch = (patch: object[], mark = head) => ['PATCH', `${W}/memories/${id}`, { patch, expected_watermark: mark }] as const
    const cases: [request: readonly [string, string, unknown?, object?], status: number, code: string, details: object][] = [
      [['POST', '/workspaces', {}], 400, 'invalid_input', { field: 'name' }],
      [['POST', '/workspaces', { name: 'x', regoin: 'y' }], 400, 'invalid_input', { field: 'regoin' }],
      [['POST', '/workspaces', { name: 'x', chunker_id: 'y' }], 400, 'invalid_input', { field: 'chunker_id' }],
      [['POST', `${W}/memories`, { content: 'x', tags: { k: 1 } }], 400, 'invalid_input', { field: 'tags.k' }],
      [['GET', `${W}/memories?limit=many`], 400, 'invalid_input', { field: 'limit' }],
      [['GET', `${W}/memories?cursor=zzz`], 400, 'invalid_input', { field: 'cursor' }],
      [['GET', `${W}/memories?include_content=maybe`], 400, 'invalid_input', { field: 'include_content' }],
      [patch([{ old_string: 'zz', new_string: '' }]), 400, 'patch_anchor_not_found', { index: 0, reason: 'absent', matches: 0 }],
      [patch([{ old_string: 'a', new_string: '' }]), 400, 'patch_anchor_not_found', { index: 0, reason: 'ambiguous', matches: 2 }],
      [patch([{ old_string: '', new_string: '' }]), 400, 'patch_anchor_not_found', { index: 0, reason: 'empty', matches: 0 }],
      [
        ['POST', `${W}/graph/traverse`, { seed_memory_id: id, depth: 9 }],
        400,
        'graph_traverse_depth_exceeded',
        { depth: 9, max_depth: api().dialect === 'sqlite' ? 3 : 5 },
      ],
      [['POST', `${W}/memories`, { content: 'x' }, { agent: null }], 400, 'missing_agent_id', {}],
      [['POST', `${W}/memories`, { content: 'x' }, { agent: 'agent_system' }], 401, 'agent_verification_failed', { provider: 'opaque' }],
      [
        ['POST', `${W}/memories`, { content: 'x' }, { headers: { 'Mem-Identity-Proof': '!!!' } }],
        401,
        'agent_verification_failed',
        { provider: 'opaque' },
      ],
      [['GET', '/workspaces/ws_nope'], 404, 'not_found', { resource: 'workspace', id: 'ws_nope' }],
      [['GET', `${W}/memories/mem_nope`], 404, 'not_found', { resource: 'memory', id: 'mem_nope' }],
      [['GET', `${W}/collections/x`], 404, 'not_found', { resource: 'collection', id: 'x' }],
      [['GET', `${W}/agents/x`], 404, 'not_found', { resource: 'agent', id: 'x' }],
      [['POST', `${W}/collections`, { name: 'taken' }], 409, 'already_exists', { id: expect.stringMatching(/^coll_/) }],
      [
        ['POST', `${W}/memories/${id}/edges`, { target_memory_id: other, edge_type: 'mentions' }],
        409,
        'already_exists',
        { id: expect.stringMatching(/^edg_/) },
      ],
      [['DELETE', W], 409, 'not_empty', { count: 2 }],
      [patch([], 'wmk_old'), 412, 'cas_conflict', { expected_watermark: 'wmk_old', head_watermark: head }],
    ]
    for (const [[method, path, body, options], status, code, details] of cases) {
      const reply = await api().call(method, path, body, options)
      expect({ method, path, ...reply }).toMatchObject({ status, body: { error_code: code, details } })
      expect(reply.body).toEqual({ error_code: code, message: expect.stringMatching(/./), details })
      expect(reply.headers.get('content-type')).toMatch(/^application\/json/)
      const field = 'field' in details ? String(details.field) : ''
      expect(reply.body.message).toContain(field)
    }
  })

  test('memory#118 no client input causes a 5xx', async () => {
    const ws = await api().workspace()
    const id = await api().imprint(ws, 'x', { tags: { k: 'v' } })
    const other = await api().imprint(ws, 'y')
    const W = `/workspaces/${ws}`
    const M = `${W}/memories/${id}`
    const segments = ['%00', 'a%00b', '%ED%A0%80', '%ff', '%', '%2F', '..', '-', '*', "'", '%22', '%25', 'x'.repeat(3000), '%F0%9F%98%80', '[]', '%20', '@', '__proto__']
    for (const segment of segments) {
      const paths: [method: string, path: string, body?: object][] = [
        ['GET', `/workspaces/${segment}`],
        ['PUT', `/workspaces/${segment}`, { name: 'x' }],
        ['GET', `${W}/memories/${segment}`],
        ['PUT', `${W}/memories/${segment}`, { content: 'x', expected_watermark: 'w' }],
        ['DELETE', `${W}/memories/${segment}`],
        ['POST', `${W}/memories/${segment}:append`, { content: 'x' }],
        ['GET', `${W}/memories/${segment}@${segment}`],
        ['GET', `${M}@${segment}`],
        ['GET', `${W}/memories/${segment}/watermarks`],
        ['GET', `${W}/memories/${segment}/edges`],
        ['GET', `${W}/collections/${segment}`],
        ['DELETE', `${W}/collections/${segment}`],
        ['GET', `${W}/agents/${segment}`],
        ['DELETE', `${W}/agents/${segment}`],
        ['DELETE', `${W}/edges/${segment}`],
        ['DELETE', `${W}/recall/pins/${segment}`],
      ]
      for (const [method, path, body] of paths) {
        const sent = body === undefined ? {} : { body: JSON.stringify(body) }
        const reply = await send(`${api().url}/v1${path}`, { method, headers: { 'Mem-Agent-Id': 'agent_test' }, ...sent })
        expect({ method, path, status: reply.status, text: reply.text }).toMatchObject({ status: 404 })
        expectEnvelope(reply, 404, 'not_found')
      }
      for (const method of ['PUT', 'DELETE']) {
        const sent = method === 'PUT' ? { body: '{"value":"x"}' } : {}
        const reply = await send(`${api().url}/v1${M}/tags/${segment}`, { method, headers: { 'Mem-Agent-Id': 'agent_test' }, ...sent })
        expect([204, 400, 404]).toContain(reply.status)
      }
    }

    const values = ['', '%00', 'a%00', '%', '%ff', '-1', '0', '1.5', '1e9', '9'.repeat(30), 'NaN', 'null', '[]', "'", '2026-13-01', '0000-01-01', '9999-12-31T23:59:59.999Z', 'x'.repeat(4000)]
    const queries: [path: string, names: string[]][] = [
      ['/workspaces', ['limit', 'cursor']],
      [`${W}/collections`, ['limit', 'cursor']],
      [`${W}/memories`, ['limit', 'cursor', 'collection_id', 'include_content']],
      [`${M}/watermarks`, ['limit', 'cursor']],
      [`${M}/edges`, ['limit', 'cursor', 'direction', 'type']],
      [`${W}/recall/pins`, ['limit', 'cursor']],
      [`${W}/agents`, ['limit', 'cursor']],
      [`${W}/ledger`, ['since', 'until', 'actor', 'agent_id', 'memory_id', 'edge_id', 'op', 'limit', 'since_ledger_id', 'cursor', 'order']],
    ]
    const cursors = [[''], ['\0'], [1], [1.5], [0, ''], [1e300, ''], [-1, '\0'], [null], {}, 'x', [9e15]].map((key) =>
      Buffer.from(JSON.stringify(key)).toString('base64url'),
    )
    for (const [path, names] of queries) {
      for (const name of names) {
        for (const value of name === 'cursor' ? [...values, ...cursors] : values) {
          const reply = await send(`${api().url}/v1${path}?${name}=${value}`)
          expect({ path, name, value, status: reply.status < 500 }).toEqual({ path, name, value, status: true })
          if (reply.status !== 200) expect(expectEnvelope(reply, 400, 'invalid_input').field).toMatch(name === 'cursor' ? /^(cursor|since_ledger_id)$/ : name)
        }
        expectEnvelope(await send(`${api().url}/v1${path}?${name}=1&${name}=2`), 400, 'invalid_input')
      }
    }

    const deep = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`
    const odd = ['null', 'true', '0', '-1', '1.5', '1e400', '1e308', '9007199254740993', '""', '" "', '[]', '{}', '[null]', '"\\u0000"', '"\\ud800"', deep(20_000), `{"__proto__":1}`, `"${'é'.repeat(40_000)}"`]
    const bodies: [method: string, path: string, fields: Record<string, string>][] = [
      ['POST', '/workspaces', { name: '"x"', region: '"r"', chunker_id: '"csv"', embedding_model: '"hash:"', meta: '{}', auto_link_enabled: 'true', auto_link_threshold: '1', auto_link_max_edges: '1', auto_link_max_incoming_per_day: '1' }],
      ['PUT', W, { name: '"x"', meta: '{}', auto_link_max_incoming_per_day: '1' }],
      ['POST', `${W}/collections`, { name: '"c"' }],
      ['POST', `${W}/memories`, { content: '"x"', collection_id: `"coll_${ABSENT}"`, tags: '{}', chunker_id: '"csv"', chunker_config: '{}', auto_link: 'true' }],
      ['PUT', M, { content: '"x"', tags: '{}', expected_watermark: '"w"' }],
      ['PATCH', M, { patch: '[]', expected_watermark: '"w"' }],
      ['POST', `${M}:append`, { content: '"x"', expected_watermark: '"w"' }],
      ['PUT', `${M}/tags/k`, { value: '"v"' }],
      ['POST', `${M}/edges`, { target_memory_id: `"${other}"`, edge_type: '"mentions"', properties_json: '{}', type: '"mentions"', properties: '{}' }],
      ['POST', `${W}/edges/:batch`, { edges: `[{"source_memory_id":"${id}","target_memory_id":"${other}","edge_type":"mentions"}]` }],
      ['POST', `${W}/graph/neighbors`, { memory_id: `"${id}"`, direction: '"out"', edge_types: '[]', type: '"mentions"', k: '1' }],
      ['POST', `${W}/graph/traverse`, { seed_memory_id: `"${id}"`, depth: '1', direction: '"out"', edge_types: '[]', type: '"mentions"', filter: '{}' }],
      ['POST', `${W}/recall`, { query: '"x"', mode: '"hybrid"', k: '1', filters: '{}', weights: '{}', include_cells: 'true', memory_ids: `["${id}"]`, graph_expansion: '{"depth":1}' }],
      ['POST', `${W}/recall/pins`, { query: '"x"', mode: '"hybrid"', k: '1', watermark: '"w"', label: '"l"' }],
      ['POST', `${W}/agents`, { agent_id: '"agent_x"', identity_provider: '"opaque"', display_name: '"d"', identity_proof: '{}', agent_type: '"t"', model: '"m"', capabilities: '{}' }],
    ]
    const ok = { content: '"x"', query: '"x"' }
    for (const [method, path, fields] of bodies) {
      for (const key of [...Object.keys(fields), 'unknown_field', '__proto__']) {
        for (const value of odd) {
          const pairs = Object.entries({ ...fields, ...ok, [key]: value }).filter(([name]) => name in fields || name === key)
          const body = `{${[...pairs.filter(([name]) => name !== key), [key, value]].map(([name, json]) => `"${name}":${json}`).join()}}`
          const reply = await send(`${api().url}/v1${path}`, { method, headers: { 'Mem-Agent-Id': 'agent_test' }, body })
          expect({ path, key, value: value.slice(0, 40), ok: reply.status < 500, text: reply.text.slice(0, 200) }).toMatchObject({ ok: true })
          if (reply.status >= 400) expectEnvelope(reply, reply.status, JSON.parse(reply.text).error_code)
          if (!(key in fields)) expect({ path, key, value: value.slice(0, 40), status: reply.status }).toMatchObject({ status: 400 })
        }
      }
    }

    for (const value of [deep(500_000), `["\\ud83d\\ude00",${deep(500_000)}]`, `{"a":`.repeat(100_000) + '1' + '}'.repeat(100_000)]) {
      for (const [path, key] of [
        ['/workspaces', 'meta'],
        [`${W}/memories`, 'content'],
        [`${W}/memories`, 'unknown_field'],
        [`${W}/agents`, 'identity_proof'],
        [`${W}/recall`, 'filters'],
      ]) {
        for (const headers of [{}, { 'Idempotency-Key': 'deep' }]) {
          const body = `{"name":"x","agent_id":"agent_deep","identity_provider":"opaque","${key}":${value}}`
          const only = key === 'meta' ? `{"name":"x","meta":${value.startsWith('[') ? `{"a":${value}}` : value}}` : body
          const reply = await post(path ?? '', key === 'identity_proof' ? `{"agent_id":"agent_deep","identity_provider":"opaque","identity_proof":{"a":${value}}}` : only, headers)
          expect({ path, key, start: value.slice(0, 5), headers, status: reply.status }).toMatchObject({ status: 400 })
        }
      }
    }

    const headers = ['Mem-Agent-Id', 'Mem-Identity-Provider', 'Mem-Identity-Proof', 'If-Match', 'Idempotency-Key', 'X-Mem-Workspace', 'Content-Type', 'If-None-Match', 'User-Agent', 'Accept', 'Transfer-Encoding-X']
    for (const name of headers) {
      for (const value of ['', ' ', '*', '""', 'x'.repeat(201), '\u00e9', Buffer.from('😀').toString('latin1'), ';;;', 'W/', '\u0080', 'e30', 'bnVsbA', 'eyJhIjoiXHUwMDAwIn0']) {
        const reply = await post(`${W}/memories`, '{"content":"x"}', { [name]: value })
        expect({ name, value, status: reply.status < 500 }).toEqual({ name, value, status: true })
        const appended = await post(`${M}:append`, '{"content":"x"}', { [name]: value })
        expect({ name, value, status: appended.status < 500 }).toEqual({ name, value, status: true })
      }
    }
  })

  test('memory#118 what cannot be read as HTTP is answered by an envelope too', async () => {
    const { port } = new URL(api().url)
    for (const bytes of ['NOPE\r\n\r\n', 'GET / HTTP/9.9\r\nHost: localhost\r\n\r\n', `GET /${'x'.repeat(70_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`]) {
      const socket = connect(Number(port), '127.0.0.1')
      socket.write(bytes)
      const answer = await text(socket)
      const [head = '', body = ''] = answer.split('\r\n\r\n')
      expect(head).toMatch(/^HTTP\/1\.1 400 /)
      expect(head).toMatch(/\r\nX-Request-ID: req_[0-9A-Z]{26}/i)
      expectEnvelope({ status: 400, text: body }, 400, 'invalid_input')
    }
    const socket = connect(Number(port), '127.0.0.1')
    socket.write('GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n')
    const [head = '', body = ''] = (await text(socket)).split('\r\n\r\n')
    expect(head).toMatch(/^HTTP\/1\.1 401 /)
    expectEnvelope({ status: 401, text: body }, 401, 'unauthorized')
  })

  test('memory#119 8 MiB + 1, bad UTF-8, array body, trailing garbage: 400', async () => {
    const ws = await api().workspace()
    const path = `/workspaces/${ws}/memories`
    const ofSize = (bytes: number): string => `{"content":"${' '.repeat(bytes - 14)}"}`
    const chunked = { 'Transfer-Encoding': 'chunked' }
    for (const headers of [{}, chunked]) {
      const whole = await post(path, ofSize(8 * MIB), headers)
      expect([whole.status, Buffer.byteLength(ofSize(8 * MIB))]).toEqual([201, 8 * MIB])
      expectEnvelope(await post(path, ofSize(8 * MIB + 1), headers), 400, 'invalid_input')
      expectEnvelope(await post(path, ofSize(20 * MIB), headers), 400, 'invalid_input')
    }
    const bad: (string | Uint8Array)[] = [
      Buffer.from('{"content":"caf\xe9"}', 'latin1'),
      Buffer.from([0x7b, 0x22, 0x63, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
      Buffer.from('{"content":"\xed\xa0\x80"}', 'latin1'),
      Buffer.from('{"content":"x"}', 'utf16le'),
      ...['[{"content":"x"}]', '{"content":"x"} x', '{"content":"x"}{}', '{"content":"x"},', '{"content":"x"', "{'content':'x'}"],
      ...['{content:"x"}', '{"content":"x",}', '{"content":"a\nb"}', '"x"', '1', 'null', 'true', '', ' ', 'NaN', '{"content":"\\ud800"}', '{"content":"\\u0000"}'],
      ...['{"content":"x","tags":{"\\udc00":"v"}}', '{"content":"x","tags":{"k":"\\u0000"}}', '{"content":"x","extra":1}', '{"content":"x","__proto__":{}}', '{"content":null}', '{"content":["x"]}', '{}'],
      '{"content":"x","chunker_config":{"a":{"b":1}}}',
    ]
    for (const body of bad) {
      const reply = await post(path, body)
      expect({ body: body.toString(), status: reply.status }).toMatchObject({ status: 400 })
      expectEnvelope(reply, 400, 'invalid_input')
    }
    expectEnvelope(await send(`${api().url}/v1${path}`, { method: 'POST', headers: { 'Mem-Agent-Id': 'agent_test' } }), 400, 'invalid_input')
    for (const body of ['{"content":"x","content":"y"}', ' {"content":"\u00e9\\ud83d\\ude00"}\n', '\ufeff{"content":"x"}']) {
      expect((await post(path, body)).status).toBe(201)
    }
    for (const type of ['application/json', 'application/json; charset=utf-8', 'text/plain', 'application/x-www-form-urlencoded', '']) {
      expect((await post(path, '{"content":"x"}', type === '' ? {} : { 'Content-Type': type })).status).toBe(201)
    }
    expect((await api().call('GET', `${path}?include_content=false`)).body.memories).toHaveLength(2 + 3 + 5)
  })

  describe('memory#124', () => {
    const once = (key: string): { headers: Record<string, string> } => ({ headers: { 'Idempotency-Key': key } })

    test('memory#124 repeat same answer, one Memory; other body 409', async () => {
      const ws = await api().workspace()
      const memories = `/workspaces/${ws}/memories`
      const first = await api().call('POST', memories, { content: 'x', tags: { a: '1', b: '2' } }, once('key'))
      expect(first.headers.get('idempotent-replay')).toBeNull()
      const repeat = await api().call('POST', memories, { tags: { b: '2', a: '1' }, content: 'x' }, once('key'))
      expect(repeat).toMatchObject({ status: 201, body: first.body })
      expect(repeat.headers.get('idempotent-replay')).toBe('true')
      expect(repeat.headers.get('etag')).toBe(first.headers.get('etag'))
      for (const body of [{ content: 'y' }, { content: 'x' }, { nonsense: true }]) {
        expect(await api().call('POST', memories, body, once('key'))).toMatchObject({
          status: 409,
          body: { error_code: 'already_exists', details: { reason: 'idempotency_key_reused' } },
        })
      }
      // Another agent, route or workspace has keys of its own.
      const others = [
        await api().call('POST', memories, { content: 'x' }, { ...once('key'), agent: 'agent_other' }),
        await api().call('POST', `/workspaces/${await api().workspace()}/memories`, { content: 'x' }, once('key')),
        await api().call('POST', `/workspaces/${ws}/collections`, { name: 'x' }, once('key')),
      ]
      for (const other of others) expect([other.status, other.headers.get('idempotent-replay')]).toEqual([201, null])
      // Errors are not stored.
      const bad = await api().call('POST', memories, { content: 'x', collection_id: `coll_${ABSENT}` }, once('later'))
      const good = await api().call('POST', memories, { content: 'x' }, once('later'))
      expect([bad.status, good.status, good.headers.get('idempotent-replay')]).toEqual([404, 201, null])
      for (const key of ['', 'k'.repeat(201)]) {
        expect(await api().call('POST', memories, { content: 'x' }, once(key))).toMatchObject({
          status: 400,
          body: { details: { field: 'Idempotency-Key' } },
        })
      }
      expect((await api().call('POST', memories, { content: 'x' }, once('k'.repeat(200)))).status).toBe(201)
      expect((await api().call('GET', memories)).body.memories).toHaveLength(4)
      const { entries } = (await api().call('GET', `/workspaces/${ws}/ledger?op=imprint`)).body
      expect(entries).toHaveLength(4)
    })

    test('memory#124 parallel pair: one Memory', async () => {
      const ws = await api().workspace()
      const memories = `/workspaces/${ws}/memories`
      for (let round = 0; round < 5; round++) {
        const pair = await Promise.all(
          Array.from({ length: 4 }, () => api().call('POST', memories, { content: `round ${round}` }, once(`pair ${round}`))),
        )
        expect(pair.map(({ status }) => status)).toEqual([201, 201, 201, 201])
        expect(new Set(pair.map(({ body }) => body.memory_id)).size).toBe(1)
        expect(pair.filter(({ headers }) => headers.get('idempotent-replay') === 'true')).toHaveLength(3)
      }
      expect((await api().call('GET', memories)).body.memories).toHaveLength(5)
      const clash = await Promise.all(
        ['a', 'b'].map((content) => api().call('POST', memories, { content }, once('clash'))),
      )
      expect(clash.map(({ status }) => status).sort()).toEqual([201, 409])
    })

    test('memory#124 :append, once, even when the head has moved', async () => {
      const ws = await api().workspace()
      const made = (await api().call('POST', `/workspaces/${ws}/memories`, { content: 'a' })).body
      const path = `/workspaces/${ws}/memories/${made.memory_id}`
      const append = (options: object) =>
        api().call('POST', `${path}:append`, { content: 'b', expected_watermark: made.watermark }, options)
      const pair = await Promise.all([append(once('once')), append(once('once')), append(once('once'))])
      expect(pair.map(({ status }) => status)).toEqual([200, 200, 200])
      expect(new Set(pair.map(({ body }) => body.watermark)).size).toBe(1)
      const later = await append(once('once'))
      expect(later).toMatchObject({ status: 200, body: pair[0]?.body })
      expect(later.headers.get('etag')).toBe(`"${pair[0]?.body.watermark}"`)
      expect((await append(once('twice'))).status).toBe(412)
      const encoded = await api().call('POST', `${path}%3Aappend`, { content: 'b', expected_watermark: made.watermark }, once('once'))
      expect(encoded.headers.get('idempotent-replay')).toBe('true')
      expect((await api().call('GET', path)).body.content).toBe('ab')
      expect((await api().call('GET', `${path}/watermarks`)).body.watermarks).toHaveLength(2)
    })

    test('memory#124 every other create, and /edges/:batch', async () => {
      const ws = await api().workspace()
      const [a, b, c] = [await api().imprint(ws, 'a'), await api().imprint(ws, 'b'), await api().imprint(ws, 'c')]
      const W = `/workspaces/${ws}`
      const row = (target: string) => ({ source_memory_id: a, target_memory_id: target, edge_type: 'mentions' })
      const creates: [path: string, body: object, status: number][] = [
        ['/workspaces', { name: 'once' }, 201],
        [`${W}/collections`, { name: 'once' }, 201],
        [`${W}/recall/pins`, { query: 'once' }, 201],
        [`${W}/agents`, { agent_id: 'agent_once', identity_provider: 'opaque' }, 201],
        [`${W}/memories/${a}/edges`, { target_memory_id: b, edge_type: 'references' }, 201],
        [`${W}/edges/:batch`, { edges: [row(b), row(b), row(c), row(`mem_${ABSENT}`)] }, 200],
      ]
      const before = (await api().call('GET', '/workspaces?limit=200')).body.workspaces.length
      for (const [path, body, status] of creates) {
        const answers = await Promise.all([1, 2, 3].map(() => api().call('POST', path, body, once('create'))))
        for (const answer of answers) expect(answer).toMatchObject({ status, body: answers[0]?.body })
        expect(answers.filter(({ headers }) => headers.get('idempotent-replay') === 'true')).toHaveLength(2)
        const other = await api().call('POST', path, { ...body, name: 'other', label: 'other' }, once('create'))
        expect(other).toMatchObject({ status: 409, body: { details: { reason: 'idempotency_key_reused' } } })
      }
      expect((await api().call('GET', '/workspaces?limit=200')).body.workspaces).toHaveLength(before + 1)
      expect((await api().call('GET', `${W}/recall/pins`)).body.pins).toHaveLength(1)
      expect((await api().call('GET', `${W}/graph/stats`)).body.edge_count_by_type).toEqual({ mentions: 2, references: 1 })
    })
  })

  test('memory#125 /readyz: every adapter ok', async () => {
    const ready = { ok: true, status: 'ready', adapter: { primary: 'ok', vector: 'ok', ledger: 'ok' } }
    expect(await api().call('GET', '//readyz')).toMatchObject({ status: 200, body: ready })
  })
})

test.skipIf(!hasPostgres)('memory#125 /readyz: 503 naming the broken adapter; graph failure alone 200', async () => {
  for (const [seam, adapter] of [['ledger', 'ledger'], ['vector', 'vector'], ['graph', undefined]] as const) {
    const database = await createPostgresDatabase()
    const dsn = database.url.replace('postgres@', 'postgres:hunter2@')
    const env = { [`MEM_${seam.toUpperCase()}_DRIVER`]: 'postgres', [`MEM_${seam.toUpperCase()}_DSN`]: dsn }
    const api = await startMemoryApi({ dialect: 'sqlite', env })
    expect((await api.call('GET', '//readyz')).status).toBe(200)
    await database.drop()
    const { status, body } = await api.call('GET', '//readyz')
    if (adapter === undefined) expect({ status, body }).toMatchObject({ status: 200, body: { ok: true, status: 'ready' } })
    else {
      expect({ status, body }).toEqual({
        status: 503,
        body: {
          ok: false,
          status: 'degraded',
          adapter: { primary: 'ok', vector: 'ok', ledger: 'ok', [adapter]: expect.stringMatching(/^down: ./) },
        },
      })
      expect(JSON.stringify(body)).not.toContain('hunter2')
    }
    expect((await api.call('GET', '//healthz')).body).toEqual({ ok: true, status: 'live', version })
    await api.stop()
  }
})

test('memory#123 injected panic: 500 internal_error, server lives', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-panic-'))
  const database = openDatabase({ dialect: 'sqlite', dsn: join(directory, 'mem.db'), synchronous: 'normal' })
  await migrate(database, 'memory', join(packageRoot, 'migrations/memory'), 0)
  const log = createLogger('fatal', 'json')
  const ids = createIdSource(systemClock)
  const settings = { model: 'hash:default', providers: {}, timeoutMs: 1000, batchSize: 16, queryPrefix: '', documentPrefix: '' }
  const service = new MemoryService({
    databases: { metadata: database, vector: database, graph: database, ledger: database },
    index: new LocalSearch(createCellSource(database, database), 1000),
    createEmbedder: (model) => createEmbedder(model, settings),
    settings: {
      embedding: { model: 'hash:default', inlineTimeoutMs: 1000 },
      limits: { out_edges: 0, batch_edges: 0, memories_per_workspace: 0, workspaces: 0 },
      versionRetentionDays: 0,
      rejectInactiveAgents: false,
    },
    clock: systemClock,
    ids,
    log,
  })
  const listener = createListener({ log, ids, timeoutMs: 1000, allowedOrigins: [] })
  const http = { multiTenant: false, apiKey: undefined, apiKeyId: undefined, guardLoopback: false, allowedOrigins: [], timeoutMs: 1000 }
  mountMemory(listener, service, http)
  const url = await listener.listen({ port: 0 })
  const create = (): Promise<RawReply> => send(`${url}/v1/workspaces`, { method: 'POST', body: '{"name":"x"}' })
  const panics = [
    () => { throw new Error('secret at /srv/x.ts:7') },
    () => Promise.reject(new TypeError('secret')),
    () => Promise.reject(Object.assign(new Error('secret'), { statusCode: 418, code: 'SECRET' })),
    () => Promise.reject('secret'),
    () => Promise.reject(undefined),
    () => { throw null },
  ]
  const real = service.workspaces.create.bind(service.workspaces)
  for (const panic of panics) {
    Object.assign(service.workspaces, { create: panic })
    const reply = await create()
    expect(expectEnvelope(reply, 500, 'internal_error')).toEqual({})
    expect(JSON.stringify(reply)).not.toMatch(/secret|\.ts|stack/i)
    expect(reply.headers['x-request-id']).toMatch(/^req_/)
    expect((await send(`${url}/healthz`)).status).toBe(200)
  }
  Object.assign(service.workspaces, { create: real })
  expect((await create()).status).toBe(201)
  await listener.close()
  await service.close()
  await database.close()
  rmSync(directory, { recursive: true, force: true })
})

const provider = await startEmbeddingProvider()
afterAll(() => provider.stop())

describeOnBoth(
  'time-out',
  (api) => {
    test('memory#123 timeout: 500, no half write', async () => {
      const ws = await api().workspace({ embedding_model: 'openai:bag-16' })
      const made = (await api().call('POST', `/workspaces/${ws}/memories`, { content: 'before' })).body
      const path = `/workspaces/${ws}/memories/${made.memory_id}`
      const before = (await api().call('GET', path)).body
      provider.behave = () => 'hangs'
      const writes: [method: string, path: string, body: object][] = [
        ['POST', `/workspaces/${ws}/memories`, { content: 'lost' }],
        ['PUT', path, { content: 'lost', expected_watermark: made.watermark }],
        ['PATCH', path, { patch: [{ old_string: 'before', new_string: 'lost' }], expected_watermark: made.watermark }],
        ['POST', `${path}:append`, { content: 'lost' }],
        ['POST', `/workspaces/${ws}/recall`, { query: 'before', mode: 'vector' }],
      ]
      const replies = await Promise.all(writes.map(([method, path, body]) => api().call(method, path, body)))
      for (const reply of replies) {
        expect(reply).toMatchObject({ status: 500, body: { error_code: 'internal_error', details: { reason: 'timeout' } } })
        expect(reply.headers.get('x-request-id')).toMatch(/^req_/)
      }
      provider.recover()
      expect((await api().call('GET', path)).body).toEqual(before)
      expect((await api().call('GET', `/workspaces/${ws}/memories`)).body.memories).toHaveLength(1)
      const { entries } = (await api().call('GET', `/workspaces/${ws}/ledger`)).body
      expect(entries.map(({ op }: { op: string }) => op)).toEqual(['imprint', 'agent_register', 'workspace_create'])
      // Nothing was left behind that would keep the Memory from being written.
      expect((await api().call('POST', `${path}:append`, { content: ' and after' })).status).toBe(200)
    })
  },
  { env: { MEM_SERVER_TIMEOUT: '0.4', OPENAI_BASE_URL: provider.url } },
)
