import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sha256 } from '../../src/base/hash.ts'
import { version } from '../../src/base/version.ts'
import { describeOnBoth } from '../support/memory-api.ts'
import { expectEnvelope, send } from '../support/raw-request.ts'
import { startServer, type RunningServer } from '../support/server.ts'

describe('a server with a key', () => {
  const KEY = 'correct-horse-battery'
  let server: RunningServer
  beforeAll(async () => {
    server = await startServer({ env: { MEM_API_KEY: KEY } })
  })
  afterAll(() => server.stop())
  const bearer = { authorization: `Bearer ${KEY}` }

  test('memory#116 missing, wrong, short, long, Basic token: 401, no echo; /healthz too', async () => {
    const wrong = [
      'Bearer wrong-horse',
      `Bearer ${KEY.slice(0, -1)}`,
      `Bearer ${KEY}x`,
      `Bearer ${'z'.repeat(8000)}`,
      'Bearer',
      'Bearer ',
    ]
    const others = [
      `Basic ${Buffer.from(`a:${KEY}`).toString('base64')}`,
      `Basic ${KEY}`,
      KEY,
      `Bearer ${KEY} ${KEY}`,
      `Token ${KEY}`,
    ]
    const paths = [
      '/healthz',
      '/readyz',
      '/mcp',
      '/v1/workspaces',
      '/v1/nope',
      '/',
      '/favicon.ico',
      '/v1/workspaces/%zz',
      '/uix',
    ]
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
    expect(JSON.parse((await send(`${server.url}/v1/workspaces`, { headers: bearer })).text)).toEqual({
      workspaces: [],
    })
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
        const reply = await send(server.url + path, { method, headers: { ...headers, 'X-Request-ID': id } })
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
      const line = async (): Promise<unknown> =>
        server
          .output()
          .split('\n')
          .find((each) => each.includes(`"${id}"`))
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

    // A client that leaves in the middle of its body is logged too, once.
    const { host, port } = new URL(server.url)
    const socket = connect(Number(port), '127.0.0.1')
    const head = [
      'POST /v1/workspaces HTTP/1.1',
      `Host: ${host}`,
      `Authorization: ${bearer.authorization}`,
      'X-Request-ID: left',
    ]
    socket.write(`${[...head, 'Content-Length: 100'].join('\r\n')}\r\n\r\n{"name":`, () => socket.destroy())
    await expect.poll(() => server.output()).toMatch(/"status":499,.*"request_id":"left"/)
    expect(server.output()).not.toContain('"level":"error"')
  })
})
describeOnBoth('http', (api) => {
  test('memory#117 unknown path: 404 envelope; wrong method: 405 method_not_allowed, Allow', async () => {
    const ws = await api().workspace()
    const id = await api().imprint(ws, 'x')
    const W = `/v1/workspaces/${ws}`
    const M = `${W}/memories/${id}`
    const unknown = [
      '/',
      '/v1',
      '/v1/',
      '/v2/workspaces',
      '/V1/workspaces',
      '/v1/workspaces/',
      `${W}/`,
      `${W}/nope`,
      `${M}/nope`,
      `${M}/edges/x`,
    ]
    const odd = [
      '//',
      '/v1//workspaces',
      '/%',
      '/v1/workspaces/%zz/nope',
      '/..%2f',
      `${W}/graph`,
      `${W}/recall/pins/a/b`,
      '/mcp',
    ]
    for (const path of [...unknown, ...odd]) {
      for (const method of ['GET', 'POST', 'DELETE']) {
        const headers = { 'Mem-Agent-Id': 'agent_test' }
        const details = expectEnvelope(await send(api().url + path, { method, headers }), 404, 'not_found')
        expect(details).toEqual({ resource: expect.any(String), id: expect.any(String) })
      }
    }
    for (const path of [`${W}/edges:batch`, `${M}:nope`, `${M}:append:append`]) {
      expectEnvelope(
        await send(api().url + path, { method: 'POST', headers: { 'Mem-Agent-Id': 'agent_x' } }),
        404,
        'not_found',
      )
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
    expectEnvelope(
      await send(`${api().url}/v1/workspaces/ws_x/memories`, { method: 'PATCH', body: '{' }),
      405,
      'method_not_allowed',
    )
  })

  test('HEAD equals GET without body', async () => {
    const ws = await api().workspace()
    const id = await api().imprint(ws, 'x')
    for (const path of [
      '/healthz',
      '/v1/workspaces',
      `/v1/workspaces/${ws}`,
      `/v1/workspaces/${ws}/memories/${id}`,
      '/v1/nope',
    ]) {
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
    const patched = (patch: object[], mark = head) =>
      ['PATCH', `${W}/memories/${id}`, { patch, expected_watermark: mark }] as const
    const cases: [
      request: readonly [string, string, unknown?, object?],
      status: number,
      code: string,
      details: object,
    ][] = [
      [['POST', '/workspaces', {}], 400, 'invalid_input', { field: 'name' }],
      [['POST', '/workspaces', { name: 'x', regoin: 'y' }], 400, 'invalid_input', { field: 'regoin' }],
      [['POST', '/workspaces', { name: 'x', chunker_id: 'y' }], 400, 'invalid_input', { field: 'chunker_id' }],
      [['POST', `${W}/memories`, { content: 'x', tags: { k: 1 } }], 400, 'invalid_input', { field: 'tags.k' }],
      [['GET', `${W}/memories?limit=many`], 400, 'invalid_input', { field: 'limit' }],
      [['GET', `${W}/memories?cursor=zzz`], 400, 'invalid_input', { field: 'cursor' }],
      [['GET', `${W}/memories?include_content=maybe`], 400, 'invalid_input', { field: 'include_content' }],
      [
        patched([{ old_string: 'zz', new_string: '' }]),
        400,
        'patch_anchor_not_found',
        { index: 0, reason: 'absent', matches: 0 },
      ],
      [
        patched([{ old_string: 'a', new_string: '' }]),
        400,
        'patch_anchor_not_found',
        { index: 0, reason: 'ambiguous', matches: 2 },
      ],
      [
        patched([{ old_string: '', new_string: '' }]),
        400,
        'patch_anchor_not_found',
        { index: 0, reason: 'empty', matches: 0 },
      ],
      [
        ['POST', `${W}/graph/traverse`, { seed_memory_id: id, depth: 9 }],
        400,
        'graph_traverse_depth_exceeded',
        { depth: 9, max_depth: api().dialect === 'sqlite' ? 3 : 5 },
      ],
      [['POST', `${W}/memories`, { content: 'x' }, { agent: null }], 400, 'missing_agent_id', {}],
      [
        ['POST', `${W}/memories`, { content: 'x' }, { agent: 'agent_system' }],
        401,
        'agent_verification_failed',
        { provider: 'opaque' },
      ],
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
      [patched([], 'wmk_old'), 412, 'cas_conflict', { expected_watermark: 'wmk_old', head_watermark: head }],
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
})
