import { expect, test } from 'vitest'
import { describeOnBoth } from '../support/memory-api.ts'
import {
  anId,
  aTime,
  expectError,
  expectInvalid,
  expectNoEntry,
  expectOk,
  ledgerOf,
  readPages,
  statusesOf,
} from '../support/expectations.ts'

const UNKNOWN_WS = '/workspaces/ws_01ARZ3NDEKTSV4RRFFQ69G5FAV'
const AUTO_LINK_DEFAULTS = {
  auto_link_enabled: false,
  auto_link_threshold: 0.7,
  auto_link_max_edges: 10,
  auto_link_max_incoming_per_day: 100,
}

describeOnBoth('workspaces and collections', (api) => {
  const create = (body: unknown) => api().call('POST', '/workspaces', body, { agent: null })

  test('memory#1 POST workspace: 201, ws_ id, defaults; empty or missing name: 400', async () => {
    const bare = expectOk(await create({ name: 'bare' }), 201)
    expect(bare).toEqual({ id: anId('ws'), name: 'bare', ...AUTO_LINK_DEFAULTS, created_at: aTime, updated_at: aTime })
    expect(bare.updated_at).toBe(bare.created_at)
    expect(expectOk(await api().call('GET', `/workspaces/${bare.id}`))).toEqual(bare)

    const fields = {
      name: '😀'.repeat(200),
      region: 'ß'.repeat(64),
      chunker_id: 'code-go',
      embedding_model: 'noop:default',
      meta: { list: [1, null, { deep: 'é' }], empty: {}, constructor: 'x' },
      auto_link_enabled: true,
      auto_link_threshold: 0.25,
      auto_link_max_edges: 50,
      auto_link_max_incoming_per_day: 0,
    }
    const full = expectOk(await create(fields), 201)
    expect(full).toEqual({ id: anId('ws'), ...fields, created_at: aTime, updated_at: aTime })
    expect(full.id > bare.id).toBe(true)
    expect(expectOk(await api().call('GET', `/workspaces/${full.id}`))).toEqual(full)
    const twin = expectOk(await create({ name: 'bare' }), 201)
    expect(twin.id).not.toBe(bare.id)
    expect(await ledgerOf(api(), full.id)).toMatchObject([
      { op: 'workspace_create', target: full.id, agent_id: 'agent_system', seq: 1 },
    ])

    const bad: [field: string, value: unknown][] = [
      ...[undefined, '', null, 1, ['x'], {}, 'x'.repeat(201)].map((value): [string, unknown] => ['name', value]),
      ['region', 'x'.repeat(65)],
      ['region', null],
      ['meta', null],
      ['meta', []],
      ['meta', 'x'],
      ['meta', { text: 'x'.repeat(65_536) }],
      ['auto_link_enabled', 'true'],
      ['auto_link_enabled', null],
      ['auto_link_enabled', 1],
      ['id', 'ws_mine'],
      ['created_at', '2026-01-01'],
      ['Name', 'x'],
    ]
    for (const [field, value] of bad) expectInvalid(await create({ name: 'x', [field]: value }), field)
    const largest = { text: 'x'.repeat(65_536 - '{"text":""}'.length) }
    expect(expectOk(await create({ name: 'x', meta: largest }), 201).meta).toEqual(largest)
  })

  test('memory#1 the agent a POST names is the one the ledger names, and is registered', async () => {
    const named = await api().call('POST', '/workspaces', { name: 'x' }, { agent: 'agent_founder' })
    const { id } = expectOk(named, 201)
    expect(await ledgerOf(api(), id, 'op=workspace_create')).toMatchObject([{ agent_id: 'agent_founder' }])
    const agent = await api().call('GET', `/workspaces/${id}/agents/agent_founder`)
    expect(expectOk(agent)).toMatchObject({ identity_provider: 'opaque', active: true })
    const reserved = await api().call('POST', '/workspaces', { name: 'x' }, { agent: 'agent_system' })
    expectError(reserved, 401, 'agent_verification_failed', { provider: 'opaque' })
  })

  test('memory#2 unknown chunker_id or embedding provider: 400', async () => {
    const ws = await api().workspace()
    const bad: [field: string, value: unknown][] = [
      ...['', 'nope', 'Default', 'toString', null, 1].map((value): [string, unknown] => ['chunker_id', value]),
      ...['', 'nope', 'nope:x', 'hash', ':default', 'hash:other', 'constructor:x', 'HASH:default', null, {}].map(
        (value): [string, unknown] => ['embedding_model', value],
      ),
      ['embedding_model', `openai:${'m'.repeat(194)}`],
    ]
    for (const [field, value] of bad) {
      expectInvalid(await create({ name: 'x', [field]: value }), field)
      expectInvalid(await api().call('PUT', `/workspaces/${ws}`, { name: 'x', [field]: value }), field)
    }
    for (const chunker_id of ['default', 'markdown', 'no-chunk', 'code-go', 'csv', 'jsonl']) {
      expect(expectOk(await create({ name: 'x', chunker_id }), 201).chunker_id).toBe(chunker_id)
    }
    for (const embedding_model of [
      'hash:default',
      'openai:',
      'openai:x',
      'voyage:voyage-3',
      'gemini:',
      'noop:default',
    ]) {
      expect(expectOk(await create({ name: 'x', embedding_model }), 201).embedding_model).toBe(embedding_model)
    }
    expect(expectOk(await api().call('GET', `/workspaces/${ws}`)).name).toBe('test')
  })

  test('memory#3 5 workspaces, limit=2: 3 pages, no repeats, last without next_cursor', async () => {
    const made: string[] = []
    for (let i = 0; i < 5; i++) made.push(await api().workspace({ name: `page ${i}` }))
    const all = await readPages(api(), '/workspaces', 'workspaces', 2)
    const ids: string[] = all.map((workspace) => workspace.id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.slice(0, 5)).toEqual(made.toReversed())
    expect(ids).toEqual(ids.toSorted().toReversed())

    const first = expectOk(await api().call('GET', '/workspaces?limit=2'))
    expect(Object.keys(first)).toEqual(['workspaces', 'next_cursor'])
    await api().workspace({ name: 'meanwhile' })
    await api().call('DELETE', `/workspaces/${made[3]}`)
    const second = expectOk(await api().call('GET', `/workspaces?limit=2&cursor=${first.next_cursor}`))
    expect(second.workspaces.map((workspace: { id: string }) => workspace.id)).toEqual([made[2], made[1]])
  })

  test('memory#4 limit=500 acts as 200; limit=x or bad cursor: 400', async () => {
    const { workspaces } = expectOk(await api().call('GET', '/workspaces?limit=200'))
    const missing = 201 - workspaces.length
    await Promise.all(Array.from({ length: Math.max(missing, 0) }, () => api().workspace()))
    const count = async (query: string): Promise<number> =>
      expectOk(await api().call('GET', `/workspaces?${query}`)).workspaces.length
    expect(await count('limit=500')).toBe(200)
    expect(await count('limit=99999999999999999999')).toBe(200)
    for (const query of ['', 'limit=0', 'limit=-3']) expect(await count(query)).toBe(100)
    for (const limit of ['x', '1.5', '', '1e2', '0x10', '%20', '1,2', 'NaN']) {
      expectInvalid(await api().call('GET', `/workspaces?limit=${limit}`), 'limit')
    }
    const own = expectOk(await api().call('GET', '/workspaces?limit=1')).next_cursor
    const pin = Buffer.from(JSON.stringify([1, 'ws_'])).toString('base64url')
    for (const cursor of ['x', '', '%25', `${own}x`, own.slice(1), own.toLowerCase(), pin, `${own}%3D`]) {
      expectInvalid(await api().call('GET', `/workspaces?cursor=${cursor}`), 'cursor')
    }
    expectInvalid(await api().call('GET', '/workspaces?limit=1&limit=2'), 'limit')
  })

  test('memory#5 PUT clears absent region, meta; keeps auto_link_*, created_at', async () => {
    const old = expectOk(
      await create({
        name: 'old',
        region: 'eu',
        chunker_id: 'csv',
        embedding_model: 'noop:default',
        meta: { a: 1 },
        auto_link_enabled: true,
        auto_link_threshold: 0.9,
        auto_link_max_edges: 3,
        auto_link_max_incoming_per_day: 4,
      }),
      201,
    )
    const path = `/workspaces/${old.id}`
    const replaced = expectOk(await api().call('PUT', path, { name: 'new' }))
    expect(replaced).toEqual({
      id: old.id,
      name: 'new',
      auto_link_enabled: true,
      auto_link_threshold: 0.9,
      auto_link_max_edges: 3,
      auto_link_max_incoming_per_day: 4,
      created_at: old.created_at,
      updated_at: aTime,
    })
    expect(replaced.updated_at >= old.updated_at).toBe(true)
    expect(expectOk(await api().call('GET', path))).toEqual(replaced)
    const changed = expectOk(await api().call('PUT', path, { name: 'new', region: 'us', auto_link_enabled: false }))
    expect(changed).toMatchObject({ region: 'us', auto_link_enabled: false, auto_link_max_edges: 3 })
    expect(await ledgerOf(api(), old.id, 'op=workspace_update')).toMatchObject([
      { target: old.id, agent_id: 'agent_test' },
      { target: old.id, agent_id: 'agent_test' },
    ])
    await expectNoEntry(api(), old.id, async () => {
      for (const body of [{}, { name: '' }, { region: 'x' }, { name: 'x', region: null }, { name: 'x', nope: 1 }]) {
        expectError(await api().call('PUT', path, body), 400, 'invalid_input', { field: expect.any(String) })
      }
    })
    expect(expectOk(await api().call('GET', path))).toEqual(changed)
  })

  test('memory#6 auto_link_max_edges 99 reads back 50; threshold 0: 400', async () => {
    const good: [field: string, value: number, stored: number][] = [
      ['auto_link_max_edges', 99, 50],
      ['auto_link_max_edges', 1e20, 50],
      ['auto_link_max_edges', 1, 1],
      ['auto_link_threshold', 7, 1],
      ['auto_link_threshold', 0.0001, 0.0001],
      ['auto_link_max_incoming_per_day', 0, 0],
      ['auto_link_max_incoming_per_day', 5_000_000_000, 5_000_000_000],
    ]
    for (const [field, value, stored] of good) {
      const { id, ...made } = expectOk(await create({ name: 'x', [field]: value }), 201)
      expect(made[field]).toBe(stored)
      expect(expectOk(await api().call('GET', `/workspaces/${id}`))[field]).toBe(stored)
      expect(expectOk(await api().call('PUT', `/workspaces/${id}`, { name: 'x', [field]: value }))[field]).toBe(stored)
    }
    const ws = await api().workspace()
    const bad: [field: string, value: unknown][] = [
      ...[0, -1, '0.5', null, [0.5]].map((value): [string, unknown] => ['auto_link_threshold', value]),
      ...[0, -1, 1.5, 60.5, '5', null, true].map((value): [string, unknown] => ['auto_link_max_edges', value]),
      ...[-1, 0.5, '5', null].map((value): [string, unknown] => ['auto_link_max_incoming_per_day', value]),
    ]
    for (const [field, value] of bad) {
      expectInvalid(await create({ name: 'x', [field]: value }), field)
      expectInvalid(await api().call('PUT', `/workspaces/${ws}`, { name: 'x', [field]: value }), field)
    }
    expect(expectOk(await api().call('GET', `/workspaces/${ws}`))).toMatchObject(AUTO_LINK_DEFAULTS)
  })

  test('memory#7 GET, PUT, DELETE of an unknown workspace: 404', async () => {
    const ids = ['ws_01ARZ3NDEKTSV4RRFFQ69G5FAV', 'x', 'mem_1', '-', '%20', '😀', 'ws_%00', 'x'.repeat(2000)]
    for (const id of ids) {
      for (const [method, body] of [['GET'], ['PUT', { name: 'x' }], ['DELETE']] as const) {
        const reply = await api().call(method, `/workspaces/${id}`, body)
        expectError(reply, 404, 'not_found', { resource: expect.any(String) })
      }
      expect(await api().call('HEAD', `/workspaces/${id}`)).toMatchObject({ status: 404, body: undefined })
    }
    expectError(await api().call('GET', UNKNOWN_WS), 404, 'not_found', {
      resource: 'workspace',
      id: UNKNOWN_WS.slice(12),
    })
    // The workspace is looked up before a body is read.
    expectError(await api().call('PUT', UNKNOWN_WS, undefined, { raw: '{' }), 404, 'not_found')
    expectError(await api().call('POST', `${UNKNOWN_WS}/memories`, { content: 'x' }), 404, 'not_found')
    for (const path of ['/collections', '/memories', '/ledger', '/agents', '/recall/pins', '/graph/stats']) {
      expectError(await api().call('GET', UNKNOWN_WS + path), 404, 'not_found', { resource: 'workspace' })
    }
  })

  test('memory#8 DELETE with a live Memory: 409 not_empty; after forget: 204; GET: 404', async () => {
    const ws = await api().workspace()
    const W = `/workspaces/${ws}`
    expectOk(await api().call('POST', `${W}/collections`, { name: 'c' }), 201)
    expectOk(await api().call('POST', `${W}/recall/pins`, { query: 'q' }), 201)
    const ids = [await api().imprint(ws, 'one'), await api().imprint(ws, 'two')]
    await expectNoEntry(api(), ws, async () => {
      expectError(await api().call('DELETE', W), 409, 'not_empty', { count: 2 })
    })
    for (const id of ids) expectOk(await api().call('DELETE', `${W}/memories/${id}`))
    expectOk(await api().call('DELETE', W), 204)
    for (const [method, path, body] of [
      ['GET', W],
      ['DELETE', W],
      ['PUT', W, { name: 'x' }],
      ['POST', `${W}/memories`, { content: 'x' }],
      ['GET', `${W}/ledger`],
    ] as const) {
      expectError(await api().call(method, path, body), 404, 'not_found', { resource: 'workspace', id: ws })
    }
    const { workspaces } = expectOk(await api().call('GET', '/workspaces?limit=200'))
    expect(workspaces.some((workspace: { id: string }) => workspace.id === ws)).toBe(false)
    const empty = await api().workspace()
    expectOk(await api().call('DELETE', `/workspaces/${empty}`, undefined, { agent: null }), 204)
  })

  test('memory#9 collection: create 201, read, list by name; same name: 409 already_exists', async () => {
    const ws = await api().workspace()
    const path = `/workspaces/${ws}/collections`
    const made = expectOk(await api().call('POST', path, { name: 'beta' }), 201)
    expect(made).toEqual({ id: anId('coll'), workspace_id: ws, name: 'beta', created_at: aTime })
    expect(expectOk(await api().call('GET', `${path}/${made.id}`))).toEqual(made)
    for (const name of ['alpha', 'Zeta', 'éclair', '😀', 'b', 'beta ', 'ﬀ', 'a b']) {
      expectOk(await api().call('POST', path, { name }), 201)
    }
    const names = (await readPages(api(), path, 'collections', 2)).map((collection) => collection.name)
    expect(names).toEqual(['Zeta', 'a b', 'alpha', 'b', 'beta', 'beta ', 'éclair', 'ﬀ', '😀'])
    await expectNoEntry(api(), ws, async () => {
      expectError(await api().call('POST', path, { name: 'beta' }), 409, 'already_exists', { id: made.id })
      for (const name of [undefined, '', null, 7, 'x'.repeat(201)]) {
        expectInvalid(await api().call('POST', path, { name }), 'name')
      }
      expectInvalid(await api().call('POST', path, { name: 'x', meta: {} }), 'meta')
    })
    expectOk(await api().call('POST', `/workspaces/${await api().workspace()}/collections`, { name: 'beta' }), 201)
    expect(await ledgerOf(api(), ws, 'op=collection_create')).toHaveLength(9)
    const race = await Promise.all(Array.from({ length: 5 }, () => api().call('POST', path, { name: 'race' })))
    expect(statusesOf(race)).toEqual([201, 409, 409, 409, 409])
  })

  test('memory#10 DELETE collection in use: 409 not_empty; unused: 204; again: 404', async () => {
    const ws = await api().workspace()
    const path = `/workspaces/${ws}/collections`
    const { id } = expectOk(await api().call('POST', path, { name: 'c' }), 201)
    const memory = await api().imprint(ws, 'x', { collection_id: id })
    await expectNoEntry(api(), ws, async () => {
      expectError(await api().call('DELETE', `${path}/${id}`), 409, 'not_empty', { count: 1 })
    })
    expectOk(await api().call('GET', `${path}/${id}`))
    expectOk(await api().call('DELETE', `/workspaces/${ws}/memories/${memory}`))
    expectOk(await api().call('DELETE', `${path}/${id}`), 204)
    for (const gone of [id, 'nope', ws]) {
      const missing = { resource: 'collection', id: gone }
      expectError(await api().call('DELETE', `${path}/${gone}`), 404, 'not_found', missing)
      expectError(await api().call('GET', `${path}/${gone}`), 404, 'not_found', missing)
    }
    expect(await ledgerOf(api(), ws, 'op=collection_delete')).toMatchObject([{ target: id }])
    expectOk(await api().call('POST', path, { name: 'c' }), 201)
  })

  test('memory#11 every list, when empty: []', async () => {
    const ws = await api().workspace()
    const W = `/workspaces/${ws}`
    const M = `${W}/memories/${await api().imprint(ws, '')}`
    for (const path of [`${W}/collections`, `${W}/recall/pins`]) {
      expect(Object.values(expectOk(await api().call('GET', path)))).toEqual([[]])
    }
    expect(expectOk(await api().call('GET', `${W}/memories?collection_id=nope`))).toEqual({ memories: [] })
    expect(expectOk(await api().call('GET', `/workspaces/${await api().workspace()}/memories`))).toEqual({
      memories: [],
    })
    expect(expectOk(await api().call('GET', `${M}/edges`))).toEqual({ edges: [], neighbors: [] })
    expect(expectOk(await api().call('GET', M)).cells).toEqual([])
    expect(expectOk(await api().call('GET', `${W}/ledger?agent_id=nobody`))).toEqual({ entries: [] })
    const id = M.slice(M.lastIndexOf('/') + 1)
    const neighbors = await api().call('POST', `${W}/graph/neighbors`, { memory_id: id })
    expect(expectOk(neighbors)).toEqual({ edges: [], neighbors: [] })
    const traverse = expectOk(await api().call('POST', `${W}/graph/traverse`, { seed_memory_id: id }))
    expect(traverse).toMatchObject({ layers: [], stats: { nodes_visited: 1, edges_walked: 0, truncated: false } })
    expect(expectOk(await api().call('POST', `${W}/edges/:batch`, { edges: [] })).results).toEqual([])
    expect(expectOk(await api().call('POST', `${W}/recall`, { query: 'x' })).results).toEqual([])
    const other = await api().workspace()
    const stats = await api().call('GET', `/workspaces/${other}/graph/stats`)
    expect(expectOk(stats)).toEqual({ node_count: 0, edge_count_by_type: {} })
  })
})
