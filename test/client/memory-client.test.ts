import { createServer } from 'node:net'
import { once } from 'node:events'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { MemoryApiError, MemoryNetworkError, MemoryRequestError, MemoryTimeoutError } from '../../src/client/errors.ts'
import { MemoryClient } from '../../src/client/memory-client.ts'
import { startRecordingServer, type RecordingServer } from './recording-server.ts'

let server: RecordingServer
let client: MemoryClient

beforeAll(async () => {
  server = await startRecordingServer()
})
afterAll(() => server.close())
beforeEach(() => {
  server.requests.length = 0
  server.replies.length = 0
  client = new MemoryClient(server.endpoint, 'k-1', { agentId: 'agent_a' })
})

interface Expected {
  call: (client: MemoryClient) => Promise<unknown>
  sends: string
  body?: unknown
  headers?: Record<string, string>
  status?: number
}

const page = { limit: 2, cursor: 'c/1' }
const write = { idempotencyKey: 'once' }
const once1 = { 'idempotency-key': 'once' }

/** One row for every method of the contract: what it must send. */
const METHODS: Record<string, Expected> = {
  createWorkspace: {
    call: (c) => c.createWorkspace({ name: 'n', meta: { a: [1] } }, write),
    sends: 'POST /v1/workspaces',
    body: { name: 'n', meta: { a: [1] } },
    headers: once1,
    status: 201,
  },
  getWorkspace: { call: (c) => c.getWorkspace('ws_1'), sends: 'GET /v1/workspaces/ws_1' },
  listWorkspaces: { call: (c) => c.listWorkspaces(page), sends: 'GET /v1/workspaces?limit=2&cursor=c%2F1' },
  updateWorkspace: {
    call: (c) => c.updateWorkspace('ws_1', { name: 'm' }),
    sends: 'PUT /v1/workspaces/ws_1',
    body: { name: 'm' },
  },
  deleteWorkspace: { call: (c) => c.deleteWorkspace('ws_1'), sends: 'DELETE /v1/workspaces/ws_1', status: 204 },
  createCollection: {
    call: (c) => c.createCollection('ws_1', { name: 'n' }, write),
    sends: 'POST /v1/workspaces/ws_1/collections',
    body: { name: 'n' },
    headers: once1,
  },
  getCollection: {
    call: (c) => c.getCollection('ws_1', 'coll_1'),
    sends: 'GET /v1/workspaces/ws_1/collections/coll_1',
  },
  listCollections: {
    call: (c) => c.listCollections('ws_1', page),
    sends: 'GET /v1/workspaces/ws_1/collections?limit=2&cursor=c%2F1',
  },
  deleteCollection: {
    call: (c) => c.deleteCollection('ws_1', 'coll_1'),
    sends: 'DELETE /v1/workspaces/ws_1/collections/coll_1',
    status: 204,
  },
  imprint: {
    call: (c) => c.imprint('ws_1', { content: 'té\n', tags: { a: 'b' }, collection_id: undefined }, write),
    sends: 'POST /v1/workspaces/ws_1/memories',
    body: { content: 'té\n', tags: { a: 'b' } },
    headers: once1,
    status: 201,
  },
  listMemories: {
    call: (c) => c.listMemories('ws_1', { collection_id: 'coll_1', include_content: false, ...page }),
    sends: 'GET /v1/workspaces/ws_1/memories?collection_id=coll_1&include_content=false&limit=2&cursor=c%2F1',
  },
  lookup: { call: (c) => c.lookup('ws_1', 'mem_1'), sends: 'GET /v1/workspaces/ws_1/memories/mem_1' },
  lookupAt: {
    call: (c) => c.lookupAt('ws_1', 'mem_1', 'wmk_1'),
    sends: 'GET /v1/workspaces/ws_1/memories/mem_1@wmk_1',
  },
  update: {
    call: (c) => c.update('ws_1', 'mem_1', { content: 'x', tags: {} }, 'wmk_1'),
    sends: 'PUT /v1/workspaces/ws_1/memories/mem_1',
    body: { content: 'x', tags: {} },
    headers: { 'if-match': 'wmk_1' },
  },
  patch: {
    call: (c) => c.patch('ws_1', 'mem_1', { patch: [{ old_string: 'a', new_string: 'b' }] }, 'wmk_1'),
    sends: 'PATCH /v1/workspaces/ws_1/memories/mem_1',
    body: { patch: [{ old_string: 'a', new_string: 'b' }] },
    headers: { 'if-match': 'wmk_1' },
  },
  append: {
    call: (c) => c.append('ws_1', 'mem_1', { content: 'x' }, 'wmk_1', write),
    sends: 'POST /v1/workspaces/ws_1/memories/mem_1:append',
    body: { content: 'x' },
    headers: { 'if-match': 'wmk_1', ...once1 },
  },
  forget: {
    call: (c) => c.forget('ws_1', 'mem_1', { redact_audit: true }),
    sends: 'DELETE /v1/workspaces/ws_1/memories/mem_1?redact_audit=true',
  },
  watermarkHistory: {
    call: (c) => c.watermarkHistory('ws_1', 'mem_1', page),
    sends: 'GET /v1/workspaces/ws_1/memories/mem_1/watermarks?limit=2&cursor=c%2F1',
  },
  setTag: {
    call: (c) => c.setTag('ws_1', 'mem_1', 'a/b ?#%', 'v'),
    sends: 'PUT /v1/workspaces/ws_1/memories/mem_1/tags/a%2Fb%20%3F%23%25',
    body: { value: 'v' },
    status: 204,
  },
  deleteTag: {
    call: (c) => c.deleteTag('ws_1', 'mem_1', 'ключ'),
    sends: `DELETE /v1/workspaces/ws_1/memories/mem_1/tags/${encodeURIComponent('ключ')}`,
    status: 204,
  },
  listEdges: {
    call: (c) => c.listEdges('ws_1', 'mem_1', { direction: 'in', type: 'references,mentions', ...page }),
    sends: 'GET /v1/workspaces/ws_1/memories/mem_1/edges?direction=in&type=references%2Cmentions&limit=2&cursor=c%2F1',
  },
  link: {
    call: (c) => c.link('ws_1', 'mem_1', { target_memory_id: 'mem_2', edge_type: 'references' }, write),
    sends: 'POST /v1/workspaces/ws_1/memories/mem_1/edges',
    body: { target_memory_id: 'mem_2', edge_type: 'references' },
    headers: once1,
  },
  linkBatch: {
    call: (c) => c.linkBatch('ws_1', { edges: [] }, write),
    sends: 'POST /v1/workspaces/ws_1/edges/:batch',
    body: { edges: [] },
    headers: once1,
  },
  unlink: { call: (c) => c.unlink('ws_1', 'edg_1'), sends: 'DELETE /v1/workspaces/ws_1/edges/edg_1', status: 204 },
  neighbors: {
    call: (c) => c.neighbors('ws_1', { memory_id: 'mem_1', k: 3 }),
    sends: 'POST /v1/workspaces/ws_1/graph/neighbors',
    body: { memory_id: 'mem_1', k: 3 },
  },
  traverse: {
    call: (c) => c.traverse('ws_1', { seed_memory_id: 'mem_1', filter: { tags: { a: 'b' } } }),
    sends: 'POST /v1/workspaces/ws_1/graph/traverse',
    body: { seed_memory_id: 'mem_1', filter: { tags: { a: 'b' } } },
  },
  graphStats: { call: (c) => c.graphStats('ws_1'), sends: 'GET /v1/workspaces/ws_1/graph/stats' },
  recall: {
    call: (c) => c.recall('ws_1', { query: 'q', filters: { tags: { a: ['b', 'c'] } } }),
    sends: 'POST /v1/workspaces/ws_1/recall',
    body: { query: 'q', filters: { tags: { a: ['b', 'c'] } } },
  },
  createPin: {
    call: (c) => c.createPin('ws_1', { query: 'q', k: 3 }, write),
    sends: 'POST /v1/workspaces/ws_1/recall/pins',
    body: { query: 'q', k: 3 },
    headers: once1,
  },
  listPins: {
    call: (c) => c.listPins('ws_1', page),
    sends: 'GET /v1/workspaces/ws_1/recall/pins?limit=2&cursor=c%2F1',
  },
  deletePin: {
    call: (c) => c.deletePin('ws_1', 'pin_1'),
    sends: 'DELETE /v1/workspaces/ws_1/recall/pins/pin_1',
    status: 204,
  },
  registerAgent: {
    call: (c) => c.registerAgent('ws_1', { agent_id: 'agent_b', identity_provider: 'opaque' }, write),
    sends: 'POST /v1/workspaces/ws_1/agents',
    body: { agent_id: 'agent_b', identity_provider: 'opaque' },
    headers: once1,
  },
  getAgent: { call: (c) => c.getAgent('ws_1', 'agent_b'), sends: 'GET /v1/workspaces/ws_1/agents/agent_b' },
  listAgents: { call: (c) => c.listAgents('ws_1', page), sends: 'GET /v1/workspaces/ws_1/agents?limit=2&cursor=c%2F1' },
  deactivateAgent: {
    call: (c) => c.deactivateAgent('ws_1', 'agent_b'),
    sends: 'DELETE /v1/workspaces/ws_1/agents/agent_b',
    status: 204,
  },
  ledgerQuery: {
    call: (c) =>
      c.ledgerQuery('ws_1', {
        since: '2026-01-01',
        until: '2026-01-02T00:00:00+01:00',
        actor: 'console',
        agent_id: 'agent_b',
        memory_id: 'mem_1',
        edge_id: 'edg_1',
        op: 'link,unlink',
        limit: 9,
        since_ledger_id: 'lg_1',
        cursor: 'lg_1',
        order: 'asc',
      }),
    sends:
      'GET /v1/workspaces/ws_1/ledger?since=2026-01-01&until=2026-01-02T00%3A00%3A00%2B01%3A00&actor=console' +
      '&agent_id=agent_b&memory_id=mem_1&edge_id=edg_1&op=link%2Cunlink&limit=9&since_ledger_id=lg_1&cursor=lg_1&order=asc',
  },
  health: { call: (c) => c.health(), sends: 'GET /healthz' },
  ready: { call: (c) => c.ready(), sends: 'GET /readyz' },
}

describe('every method', () => {
  test('is in the table', () => {
    const methods = Object.getOwnPropertyNames(MemoryClient.prototype).filter((name) => name !== 'constructor')
    expect(Object.keys(METHODS).sort()).toEqual(methods.sort())
  })

  test.each(Object.entries(METHODS))('%s', async (_, { call, sends, body, headers, status = 200 }) => {
    const answer = { some: 'answer' }
    server.replies.push({ status, body: answer })
    expect(await call(client)).toEqual(status === 204 ? undefined : answer)
    const [request, ...more] = server.requests
    expect(more).toEqual([])
    expect(`${request?.method} ${request?.url}`).toBe(sends)
    expect(request?.body).toEqual(body)
    expect(request?.headers).toMatchObject({ authorization: 'Bearer k-1', 'mem-agent-id': 'agent_a', ...headers })
    expect(request?.headers['content-type']).toBe(body === undefined ? undefined : 'application/json')
    for (const optional of ['if-match', 'idempotency-key', 'mem-identity-provider']) {
      expect(request?.headers[optional]).toBe(headers?.[optional])
    }
  })
})

describe('settings', () => {
  test('are public and may change', async () => {
    expect(client).toMatchObject({ endpoint: server.endpoint, apiKey: 'k-1', agentId: 'agent_a', workspace: undefined })
    client.apiKey = 'k-2'
    client.agentId = 'agent_b'
    await client.health()
    expect(server.requests[0]?.headers).toMatchObject({ authorization: 'Bearer k-2', 'mem-agent-id': 'agent_b' })
  })

  test('without key and agent neither header is sent', async () => {
    await new MemoryClient(server.endpoint).health()
    expect(server.requests[0]?.headers).not.toHaveProperty('authorization')
    expect(server.requests[0]?.headers).not.toHaveProperty('mem-agent-id')
  })

  test('headers go with every call, but never a provider', async () => {
    const headers = { 'X-Mem-Workspace': 'ws_1', 'mem-identity-provider': 'vendor_session' }
    await new MemoryClient(server.endpoint, undefined, { headers }).health()
    expect(server.requests[0]?.headers).toMatchObject({ 'x-mem-workspace': 'ws_1' })
    expect(server.requests[0]?.headers).not.toHaveProperty('mem-identity-provider')
  })

  test('an agent beyond ASCII travels as UTF-8, as the server reads it', async () => {
    client.agentId = 'agent_é🙂'
    await client.health()
    const [{ headers } = {}] = server.requests
    expect(Buffer.from(String(headers?.['mem-agent-id']), 'latin1').toString()).toBe('agent_é🙂')
  })

  test('fetch is the one given', async () => {
    const seen: string[] = []
    const own: typeof fetch = (input) => {
      seen.push(input instanceof Request ? input.url : input.toString())
      return Promise.resolve(new Response('{"ok":true}'))
    }
    await new MemoryClient('https://example.org/mem/', undefined, { fetch: own }).health()
    expect(seen).toEqual(['https://example.org/mem/healthz'])
  })
})

test('the address may end with slashes and spaces, and patience be broken or endless', async () => {
  for (const [endpoint, timeoutMs] of [
    [`${server.endpoint}//`, 10_000 / 3],
    [` ${server.endpoint} `, Infinity],
  ] as const) {
    server.replies.push({ body: { ok: true } })
    expect(await new MemoryClient(endpoint, undefined, { timeoutMs }).health()).toEqual({ ok: true })
  }
  expect(server.requests.map(({ url }) => url)).toEqual(['/healthz', '/healthz'])
})

describe('errors', () => {
  const envelope = { error_code: 'cas_conflict', message: 'head moved', details: { head_watermark: 'wmk_2' } }

  test('an answer other than 2xx tells status, envelope, body', async () => {
    server.replies.push({ status: 412, body: envelope })
    const error = await client.getWorkspace('ws_1').catch((thrown: unknown) => thrown)
    if (!(error instanceof MemoryApiError)) throw new Error('no MemoryApiError', { cause: error })
    expect(error).toMatchObject({ status: 412, envelope, rawBody: JSON.stringify(envelope), message: 'head moved' })
    expect([error.isCasConflict(), error.isNotFound()]).toEqual([true, false])
  })

  test.each([
    [404, { error_code: 'not_found', message: 'm', details: {} }, true],
    [400, { error_code: 'invalid_input', message: 'm', details: {} }, false],
    [502, '<html>bad gateway</html>', false],
    [500, { error: 'another service' }, false],
    [302, '', false],
  ])('%i', async (status, body, notFound) => {
    server.replies.push({ status, body, headers: { location: '/elsewhere' } })
    const error = await client.deletePin('ws_1', 'pin_1').catch((thrown: unknown) => thrown)
    if (!(error instanceof MemoryApiError)) throw new Error('no MemoryApiError', { cause: error })
    expect(error).toMatchObject({ status, rawBody: typeof body === 'string' ? body : JSON.stringify(body) })
    expect(error.isNotFound()).toBe(notFound)
    expect(error.envelope === undefined).toBe(status !== 404 && status !== 400)
    expect(server.requests).toHaveLength(1)
  })

  test('ready gives the body of a 503, but not that of a proxy', async () => {
    const degraded = { ok: false, status: 'degraded', adapter: { primary: 'ok', vector: 'down: gone', ledger: 'ok' } }
    server.replies.push({ status: 503, body: degraded }, { status: 503, body: '<html>' })
    expect(await client.ready()).toEqual(degraded)
    await expect(client.ready()).rejects.toMatchObject({ status: 503 })
  })

  test('a page where JSON should be is a network error', async () => {
    server.replies.push({ body: '<html>log in</html>' })
    await expect(client.health()).rejects.toBeInstanceOf(MemoryNetworkError)
  })

  test('nobody listens: a network error with its code', async () => {
    const gone = await startRecordingServer()
    await gone.close()
    const error = await new MemoryClient(gone.endpoint).health().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(MemoryNetworkError)
    expect(error).toMatchObject({ code: 'ECONNREFUSED', message: expect.stringContaining(gone.endpoint) })
  })

  test('a server that never answers: a time-out error', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const address = silent.address()
    const port = typeof address === 'object' ? address?.port : undefined
    const impatient = new MemoryClient(`http://127.0.0.1:${port}`, undefined, { timeoutMs: 30 })
    await expect(impatient.health()).rejects.toBeInstanceOf(MemoryTimeoutError)
    silent.close()
  })

  test('a password in the address is refused, and not told back', async () => {
    const { host } = new URL(server.endpoint)
    const error = await new MemoryClient(`http://user:hidden@${host}`).health().catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(MemoryRequestError)
    expect(String(error)).not.toContain('hidden')
    expect(server.requests).toEqual([])
  })

  test.each([
    ['a missing id', () => Reflect.apply(client.lookup.bind(client), undefined, ['ws_1'])],
    ['an empty id', () => client.deleteWorkspace('')],
    ['a dot segment, which would name the workspace', () => client.forget('ws_1', '..')],
    ['a dot key', () => client.setTag('ws_1', 'mem_1', '.', 'v')],
    ['an unpaired surrogate', () => client.lookup('ws_1', '\ud800')],
    ['an address without scheme', () => new MemoryClient('localhost:7777').health()],
    ['an address with a query', () => new MemoryClient('http://h/?a=b').health()],
    ['an address with a fragment', () => new MemoryClient('http://h/#a').health()],
    ['a request that is no JSON', () => client.imprint('ws_1', Object({ content: 1n }))],
    ['patience that is no time', () => new MemoryClient('http://h', 'k', { timeoutMs: Number.NaN }).health()],
    ['an agent id that no header can carry', () => new MemoryClient('http://h', 'k', { agentId: 'agent\nb' }).health()],
  ])('%s is refused before anything is sent', async (_, call) => {
    await expect(call()).rejects.toBeInstanceOf(MemoryRequestError)
    expect(server.requests).toEqual([])
  })
})
