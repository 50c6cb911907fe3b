import { expect, test } from 'vitest'
import { openDatabase } from '../../src/database/open.ts'
import { describeOnBoth, type Reply } from '../support/memory-api.ts'
import {
  anId,
  aTime,
  expectError,
  expectInvalid,
  expectNoEntry,
  expectOk,
  ledgerOf,
  readPages,
} from '../support/expectations.ts'

const ABSENT = 'mem_01ARZ3NDEKTSV4RRFFQ69G5FAV'
const TYPES = ['parent_of', 'derived_from', 'supersedes', 'references', 'session_of', 'mentions'] as const

describeOnBoth('graph', (api) => {
  const memoryPath = (ws: string, id: string) => `/workspaces/${ws}/memories/${id}`
  const imprintMany = (ws: string, count: number): Promise<string[]> =>
    Promise.all(Array.from({ length: count }, (_, i) => api().imprint(ws, `node ${i}`)))
  const link = (ws: string, source: string, body: object) => api().call('POST', `${memoryPath(ws, source)}/edges`, body)
  const linked = async (ws: string, source: string, target: string, edge_type = 'references'): Promise<string> =>
    expectOk(await link(ws, source, { target_memory_id: target, edge_type }), 201).edge.edge_id
  const batch = (ws: string, edges: unknown) => api().call('POST', `/workspaces/${ws}/edges/:batch`, { edges })
  const neighbors = (ws: string, body: object) => api().call('POST', `/workspaces/${ws}/graph/neighbors`, body)
  const traverse = (ws: string, body: object) => api().call('POST', `/workspaces/${ws}/graph/traverse`, body)
  const layersOf = (answer: Reply['body']): string[][] =>
    answer.layers.map((layer: { memory_id: string }[]) => layer.map(({ memory_id }) => memory_id))
  const idsOf = (rows: Record<string, string>[], key: string) => rows.map((row) => row[key])
  const edgesOf = async (ws: string, id: string, query = ''): Promise<Reply['body'][]> =>
    expectOk(await api().call('GET', `${memoryPath(ws, id)}/edges?${query}`)).edges

  /** Two Memories that auto-link has joined: the newer one points to the older one. */
  const autoLinked = async () => {
    const ws = await api().workspace({ auto_link_enabled: true, auto_link_threshold: 0.5 })
    const older = await api().imprint(ws, 'the otter sleeps in the reeds')
    expectOk(await api().call('POST', `/workspaces/${ws}/recall`, { query: 'warms the index' }))
    const newer = await api().imprint(ws, 'the otter sleeps in the reeds')
    const [edge] = await edgesOf(ws, newer)
    expect(edge).toMatchObject({ source_memory_id: newer, target_memory_id: older, edge_type: 'vector_neighbor' })
    return { ws, older, newer, edge: String(edge.edge_id) }
  }

  test('memory#45 link: 201 {edge, ledger_id}; listed by direction and type; bad direction 400', async () => {
    const ws = await api().workspace()
    const [a = '', b = '', c = ''] = await imprintMany(ws, 3)
    const properties = { why: 'é', deep: { list: [1, null] }, ['__proto__']: 1 }
    const made = expectOk(await link(ws, a, { target_memory_id: b, edge_type: 'mentions', properties_json: properties }), 201)
    expect(made).toEqual({
      edge: {
        edge_id: anId('edg'),
        workspace_id: ws,
        source_memory_id: a,
        target_memory_id: b,
        edge_type: 'mentions',
        properties_json: properties,
        created_by_agent_id: 'agent_test',
        created_at: aTime,
        watermark: anId('wmk'),
      },
      ledger_id: anId('lg'),
    })
    const plain = expectOk(await link(ws, c, { target_memory_id: a, edge_type: 'parent_of' }), 201).edge
    expect(plain).not.toHaveProperty('properties_json')
    expect(await ledgerOf(api(), ws, 'op=link')).toMatchObject([
      {
        ledger_id: made.ledger_id,
        target: made.edge.edge_id,
        agent_id: 'agent_test',
        metadata: { edge_type: 'mentions', source_memory_id: a, target_memory_id: b },
      },
      { target: plain.edge_id },
    ])
    const cases: [query: string, edges: object[], far: string[]][] = [
      ['', [plain, made.edge], [c, b]],
      ['direction=both', [plain, made.edge], [c, b]],
      ['direction=out', [made.edge], [b]],
      ['direction=in', [plain], [c]],
      ['type=mentions', [made.edge], [b]],
      ['type=parent_of,mentions&direction=in', [plain], [c]],
      ['type=vector_neighbor', [], []],
    ]
    for (const [query, edges, far] of cases) {
      const answer = expectOk(await api().call('GET', `${memoryPath(ws, a)}/edges?${query}`))
      expect({ query, ...answer }).toEqual({ query, edges, neighbors: far.map(() => expect.any(Object)) })
      expect(idsOf(answer.neighbors, 'memory_id')).toEqual(far)
    }
    for (const direction of ['sideways', '', 'OUT', 'in,out']) {
      expectInvalid(await api().call('GET', `${memoryPath(ws, a)}/edges?direction=${direction}`), 'direction')
    }
    for (const type of ['likes', '', 'mentions,', 'Mentions']) {
      expectInvalid(await api().call('GET', `${memoryPath(ws, a)}/edges?type=${type}`), 'type')
    }

    for (const type of TYPES) if (type !== 'mentions') await linked(ws, a, b, type)
    const all = await edgesOf(ws, a)
    expect(all).toHaveLength(7)
    const ids = idsOf(all, 'edge_id')
    expect(ids).toEqual(ids.toSorted().toReversed())
    for (const limit of [1, 2, 7]) {
      expect(await readPages(api(), `${memoryPath(ws, a)}/edges`, 'edges', limit)).toEqual(all)
    }
    const one = expectOk(await api().call('GET', `${memoryPath(ws, a)}/edges?type=references,session_of`))
    expect(one.edges).toHaveLength(2)
    const { content_md5, head_watermark } = expectOk(await api().call('GET', memoryPath(ws, b)))
    expect(one.neighbors).toEqual([{ memory_id: b, workspace_id: ws, content_md5, head_watermark }])
  })

  test('memory#46 unknown type, vector_neighbor, self-loop: 400; absent target: 404', async () => {
    const ws = await api().workspace()
    const [a = '', b = ''] = await imprintMany(ws, 2)
    await expectNoEntry(api(), ws, async () => {
      for (const edge_type of ['likes', 'vector_neighbor', '', 'References', 'toString', undefined, null, 1, ['references']]) {
        expectInvalid(await link(ws, a, { target_memory_id: b, edge_type }), 'edge_type')
      }
      for (const target_memory_id of [a, undefined, null, 1, 'edg_x', '', b.toLowerCase().slice(4)]) {
        expectInvalid(await link(ws, a, { target_memory_id, edge_type: 'references' }), 'target_memory_id')
      }
      // The type and the loop are judged before either end is looked up.
      expectInvalid(await link(ws, ABSENT, { target_memory_id: b, edge_type: 'likes' }), 'edge_type')
      expectInvalid(await link(ws, ABSENT, { target_memory_id: ABSENT, edge_type: 'references' }), 'target_memory_id')
      for (const [source, target] of [
        [a, ABSENT],
        [ABSENT, a],
        ['nope', a],
      ] as const) {
        const reply = await link(ws, source, { target_memory_id: target, edge_type: 'references' })
        expectError(reply, 404, 'not_found', { resource: 'memory', id: source === a ? target : source })
      }
      for (const properties_json of [null, [], 'x', { text: 'x'.repeat(65_536) }]) {
        expectInvalid(await link(ws, a, { target_memory_id: b, edge_type: 'references', properties_json }), 'properties_json')
      }
      expectInvalid(await link(ws, a, { target_memory_id: b, edge_type: 'references', weight: 1 }), 'weight')
      expectInvalid(await link(ws, a, { target_memory_id: b, edge_type: 'references', source_memory_id: a }), 'source_memory_id')
    })
    expect(await edgesOf(ws, a)).toEqual([])
  })

  test('memory#47 same triple: 409 already_exists; other type: 201', async () => {
    const ws = await api().workspace()
    const [a = '', b = ''] = await imprintMany(ws, 2)
    const id = await linked(ws, a, b)
    await expectNoEntry(api(), ws, async () => {
      const again = await link(ws, a, { target_memory_id: b, edge_type: 'references', properties_json: { other: 1 } })
      expectError(again, 409, 'already_exists', { id })
    })
    await linked(ws, a, b, 'mentions')
    await linked(ws, b, a)
    const race = await Promise.all(
      Array.from({ length: 5 }, () => link(ws, a, { target_memory_id: b, edge_type: 'session_of' })),
    )
    expect(race.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409, 409])
    expect(await edgesOf(ws, a)).toHaveLength(4)
  })

  test('memory#48 aliases type, properties accepted; conflict: 400', async () => {
    const ws = await api().workspace()
    const [a = '', b = '', c = '', d = ''] = await imprintMany(ws, 4)
    const aliased = await link(ws, a, { target_memory_id: b, type: 'mentions', properties: { a: 1 } })
    expect(expectOk(aliased, 201).edge).toMatchObject({ edge_type: 'mentions', properties_json: { a: 1 } })
    const both = { type: 'mentions', edge_type: 'mentions', properties: { a: 1, b: { c: 2, d: 3 } } }
    const reordered = { target_memory_id: c, ...both, properties_json: { b: { d: 3, c: 2 }, a: 1 } }
    expect(expectOk(await link(ws, a, reordered), 201).edge.properties_json).toEqual(both.properties)
    const rows = [{ source_memory_id: a, target_memory_id: d, type: 'mentions', properties: {} }]
    expect(expectOk(await batch(ws, rows))).toMatchObject({ ok: 1 })
    expect((await edgesOf(ws, d))[0].properties_json).toEqual({})
    await expectNoEntry(api(), ws, async () => {
      const target_memory_id = d
      expectInvalid(await link(ws, b, { target_memory_id, type: 'mentions', edge_type: 'references' }), 'type')
      const properties = { properties: { a: 1 }, properties_json: { a: 2 } }
      expectInvalid(await link(ws, b, { target_memory_id, type: 'mentions', ...properties }), 'properties')
      expectInvalid(await link(ws, b, { target_memory_id, type: 'likes' }), 'edge_type')
      expectInvalid(await link(ws, b, { target_memory_id, type: 'mentions', properties: null }), 'properties')
      expectInvalid(await batch(ws, [{ ...rows[0], edge_type: 'references' }]), 'edges.0.type')
    })
  })

  test('memory#49 unlink: 204, relink 201; unknown Edge: 404', async () => {
    const ws = await api().workspace()
    const [a = '', b = ''] = await imprintMany(ws, 2)
    const id = await linked(ws, a, b)
    const path = `/workspaces/${ws}/edges`
    expectError(await api().call('DELETE', `${path}/${id}`, undefined, { agent: null }), 400, 'missing_agent_id')
    expectOk(await api().call('DELETE', `${path}/${id}`), 204)
    expect(await edgesOf(ws, a)).toEqual([])
    await expectNoEntry(api(), ws, async () => {
      for (const unknown of [id, 'edg_01ARZ3NDEKTSV4RRFFQ69G5FAV', 'nope', a]) {
        const reply = await api().call('DELETE', `${path}/${unknown}`)
        expectError(reply, 404, 'not_found', { resource: 'edge', id: unknown })
      }
    })
    const relinked = await linked(ws, a, b)
    expect(relinked).not.toBe(id)
    expect(await ledgerOf(api(), ws, 'op=unlink')).toMatchObject([
      { target: id, metadata: { edge_type: 'references', source_memory_id: a, target_memory_id: b } },
    ])
  })

  test('memory#50 unlink of an auto Edge: 409 cannot_unlink_synthetic_edge', async () => {
    const { ws, newer, edge } = await autoLinked()
    await expectNoEntry(api(), ws, async () => {
      const reply = await api().call('DELETE', `/workspaces/${ws}/edges/${edge}`)
      expectError(reply, 409, 'cannot_unlink_synthetic_edge', { edge_id: edge })
    })
    expect(await edgesOf(ws, newer, 'type=vector_neighbor')).toHaveLength(1)
  })

  test('memory#51 link over an auto Edge, both ways: 409 already_linked_via_synthetic', async () => {
    const { ws, older, newer, edge } = await autoLinked()
    const third = await api().imprint(ws, 'third', { auto_link: false })
    await expectNoEntry(api(), ws, async () => {
      for (const [source, target_memory_id] of [
        [newer, older],
        [older, newer],
      ] as const) {
        for (const edge_type of ['references', 'mentions']) {
          const reply = await link(ws, source, { target_memory_id, edge_type })
          expectError(reply, 409, 'already_linked_via_synthetic', { edge_id: edge })
        }
        const row = { source_memory_id: source, target_memory_id, edge_type: 'references' }
        const { results } = expectOk(await batch(ws, [row]))
        expect(results).toMatchObject([{ status: 'error', error_code: 'already_linked_via_synthetic' }])
      }
    })
    await linked(ws, newer, third)
    expectOk(await api().call('DELETE', memoryPath(ws, older)))
    expect(await edgesOf(ws, newer, 'type=vector_neighbor')).toEqual([])
  })

  test('memory#52 batch good/duplicate/absent: row status and code, ok, failed', async () => {
    const ws = await api().workspace()
    const [a = '', b = '', c = ''] = await imprintMany(ws, 3)
    const row = (source_memory_id: string, target_memory_id: string, edge_type = 'references') => ({
      source_memory_id,
      target_memory_id,
      edge_type,
    })
    const answer = expectOk(
      await batch(ws, [row(a, b), row(a, b), row(a, ABSENT), row(ABSENT, a), row(a, a), row(a, b, 'likes'), row(b, c)]),
    )
    const failed = (index: number, error_code: string) => ({
      index,
      status: 'error',
      error: expect.stringMatching(/./),
      error_code,
    })
    const good = (index: number) => ({ index, status: 'ok', edge_id: anId('edg'), ledger_id: anId('lg') })
    expect(answer).toEqual({
      results: [
        good(0),
        failed(1, 'already_exists'),
        failed(2, 'not_found'),
        failed(3, 'not_found'),
        failed(4, 'invalid_input'),
        failed(5, 'invalid_input'),
        good(6),
      ],
      ok: 2,
      failed: 5,
    })
    expect(await ledgerOf(api(), ws, 'op=link')).toMatchObject([
      { ledger_id: answer.results[0].ledger_id, target: answer.results[0].edge_id },
      { ledger_id: answer.results[6].ledger_id, target: answer.results[6].edge_id },
    ])
    await expectNoEntry(api(), ws, async () => {
      for (const edges of [undefined, null, {}, 'x', [null], [[]]]) {
        expectError(await batch(ws, edges), 400, 'invalid_input', { field: expect.stringContaining('edges') })
      }
      expectInvalid(await batch(ws, [row(c, a), { ...row(c, b), weight: 1 }]), 'edges.1.weight')
      expectInvalid(await batch(ws, [row(c, a), { target_memory_id: b, edge_type: 'references' }]), 'edges.1.source_memory_id')
    })
    expect(await edgesOf(ws, c)).toHaveLength(1)
  })

  test('memory#53 1001 batch rows: 429, none written; /edges:batch: 404; empty: zeros', async () => {
    const ws = await api().workspace()
    const [a = '', b = ''] = await imprintMany(ws, 2)
    await expectNoEntry(api(), ws, async () => {
      const row = { source_memory_id: a, target_memory_id: b, edge_type: 'references' }
      const reply = await batch(ws, Array.from({ length: 1001 }, () => row))
      expectError(reply, 429, 'quota_exceeded', { limit: 'limits.batch_edges', value: 1000 })
      expectError(await api().call('POST', `/workspaces/${ws}/edges:batch`, { edges: [row] }), 404, 'not_found')
      expectError(await api().call('POST', `/workspaces/${ws}/edges%3Abatch`, { edges: [row] }), 404, 'not_found')
      expect(expectOk(await batch(ws, []))).toEqual({ results: [], ok: 0, failed: 0 })
      const encoded = await api().call('POST', `/workspaces/${ws}/edges/%3Abatch`, { edges: [] })
      expect(expectOk(encoded).ok).toBe(0)
    })
    expect(await edgesOf(ws, a)).toEqual([])
  })

  test('memory#54 1001st out-Edge: 429 quota_exceeded', async () => {
    const ws = await api().workspace()
    const [hub = '', ...targets] = await imprintMany(ws, 169)
    const rows = targets.flatMap((target_memory_id) =>
      TYPES.map((edge_type) => ({ source_memory_id: hub, target_memory_id, edge_type })),
    )
    expect(expectOk(await batch(ws, rows.slice(0, 999)))).toMatchObject({ ok: 999, failed: 0 })
    const { ok, failed, results } = expectOk(await batch(ws, rows.slice(999, 1002)))
    expect({ ok, failed }).toEqual({ ok: 1, failed: 2 })
    expect(results[1]).toMatchObject({ index: 1, error_code: 'quota_exceeded' })
    const { source_memory_id: _, ...next } = rows[1002] ?? {}
    await expectNoEntry(api(), ws, async () => {
      const details = { limit: 'limits.out_edges', value: 1000 }
      expectError(await link(ws, hub, next), 429, 'quota_exceeded', details)
    })
    await linked(ws, targets[0] ?? '', hub)
    const first = results[0].edge_id
    expectOk(await api().call('DELETE', `/workspaces/${ws}/edges/${first}`), 204)
    expectOk(await link(ws, hub, next), 201)
    expect(await edgesOf(ws, hub, 'limit=500')).toHaveLength(200)
    expect(await edgesOf(ws, hub)).toHaveLength(100)
    const wide = expectOk(await neighbors(ws, { memory_id: hub, k: 1000 }))
    expect(wide.edges).toHaveLength(201)
  })

  test('memory#55 neighbors: direction, types, k; headers unique, live only', async () => {
    const ws = await api().workspace()
    const a = await api().imprint(ws, 'a', { tags: { t: 'v' } })
    const [b = '', c = '', gone = ''] = await imprintMany(ws, 3)
    const edges: Record<string, string> = {
      ab: await linked(ws, a, b),
      abMentions: await linked(ws, a, b, 'mentions'),
      ca: await linked(ws, c, a),
      ba: await linked(ws, b, a),
      agone: await linked(ws, a, gone),
    }
    expectOk(await api().call('DELETE', memoryPath(ws, gone)))
    const cases: [request: object, edges: (string | undefined)[], headers: string[]][] = [
      [{}, [edges['abMentions'], edges['ab'], edges['ba'], edges['ca']], [b, c]],
      [{ direction: 'out' }, [edges['abMentions'], edges['ab']], [b]],
      [{ direction: 'in' }, [edges['ba'], edges['ca']], [b, c]],
      [{ k: 1 }, [edges['abMentions'], edges['ba']], [b]],
      [{ k: 0, direction: 'in' }, [edges['ba'], edges['ca']], [b, c]],
      [{ edge_types: ['mentions'] }, [edges['abMentions']], [b]],
      [{ type: 'mentions' }, [edges['abMentions']], [b]],
      [{ type: 'mentions, references', direction: 'out' }, [edges['abMentions'], edges['ab']], [b]],
      [{ type: ['references'], edge_types: ['mentions'], direction: 'out' }, [edges['abMentions'], edges['ab']], [b]],
      [{ edge_types: ['vector_neighbor'] }, [], []],
    ]
    for (const [request, expected, headers] of cases) {
      const answer = expectOk(await neighbors(ws, { memory_id: a, ...request }))
      expect(Object.keys(answer)).toEqual(['edges', 'neighbors'])
      expect({ request, edges: idsOf(answer.edges, 'edge_id') }).toEqual({ request, edges: expected })
      expect({ request, ids: idsOf(answer.neighbors, 'memory_id') }).toEqual({ request, ids: headers })
    }
    const { content_md5, head_watermark } = expectOk(await api().call('GET', memoryPath(ws, a)))
    const [header] = expectOk(await neighbors(ws, { memory_id: c })).neighbors
    expect(header).toEqual({ memory_id: a, workspace_id: ws, content_md5, head_watermark, tags: { t: 'v' } })
    const bad: [field: string, body: object][] = [
      ['memory_id', {}],
      ['memory_id', { memory_id: 'ws_x' }],
      ['direction', { memory_id: a, direction: 'up' }],
      ['direction', { memory_id: a, direction: null }],
      ['edge_types.0', { memory_id: a, edge_types: ['likes'] }],
      ['edge_types', { memory_id: a, edge_types: 'mentions' }],
      ['type', { memory_id: a, type: 'likes' }],
      ['type', { memory_id: a, type: 7 }],
      ['k', { memory_id: a, k: '5' }],
      ['k', { memory_id: a, k: 1.5 }],
      ['limit', { memory_id: a, limit: 5 }],
    ]
    for (const [field, body] of bad) {
      expectError(await neighbors(ws, body), 400, 'invalid_input', { field: expect.stringContaining(field) })
    }
    for (const memory_id of [ABSENT, gone]) {
      expectError(await neighbors(ws, { memory_id }), 404, 'not_found', { resource: 'memory', id: memory_id })
    }
  })

  test('memory#56 neighbors, traverse without agent: 400 missing_agent_id', async () => {
    const ws = await api().workspace()
    const id = await api().imprint(ws, 'x')
    for (const [path, body] of [
      ['graph/neighbors', { memory_id: id }],
      ['graph/traverse', { seed_memory_id: id }],
      ['edges/:batch', { edges: [] }],
      [`memories/${id}/edges`, { target_memory_id: id, edge_type: 'x' }],
    ] as const) {
      const reply = await api().call('POST', `/workspaces/${ws}/${path}`, body, { agent: null })
      expectError(reply, 400, 'missing_agent_id')
      expect(reply.body.details).toEqual({})
    }
    for (const path of ['graph/stats', `memories/${id}/edges`]) {
      expectOk(await api().call('GET', `/workspaces/${ws}/${path}`, undefined, { agent: null }))
    }
  })

  test('memory#57 traverse depth 0: 1 layer; 3: 3; 4 on SQLite: 400 graph_traverse_depth_exceeded', async () => {
    const ws = await api().workspace()
    const chain = await imprintMany(ws, 8)
    const edges: string[] = []
    for (const [i, id] of chain.slice(0, -1).entries()) edges.push(await linked(ws, id, chain[i + 1] ?? ''))
    const [seed = ''] = chain
    const walk = async (fields: object) => expectOk(await traverse(ws, { seed_memory_id: seed, ...fields }))
    for (const fields of [{}, { depth: 0 }, { depth: -4 }, { depth: 1 }]) {
      expect(layersOf(await walk(fields))).toEqual([[chain[1]]])
    }
    const three = await walk({ depth: 3 })
    const { content_md5, head_watermark } = expectOk(await api().call('GET', memoryPath(ws, seed)))
    expect(three).toEqual({
      seed: { memory_id: seed, workspace_id: ws, content_md5, head_watermark },
      layers: [1, 2, 3].map((i) => [
        { memory_id: chain[i], via_edge_id: edges[i - 1], via_edge_type: 'references' },
      ]),
      stats: { nodes_visited: 4, edges_walked: 3, truncated: false },
    })
    const max_depth = api().dialect === 'sqlite' ? 3 : 5
    expect(layersOf(await walk({ depth: max_depth }))).toHaveLength(max_depth)
    for (const depth of [max_depth + 1, 1_000_000]) {
      const details = { depth, max_depth }
      const reply = await traverse(ws, { seed_memory_id: seed, depth })
      expectError(reply, 400, 'graph_traverse_depth_exceeded', details)
    }
    expect(layersOf(await walk({ depth: 2, direction: 'in' }))).toEqual([])
    const middle = { seed_memory_id: chain[3], depth: 2 }
    expect(layersOf(expectOk(await traverse(ws, { ...middle, direction: 'in' })))).toEqual([[chain[2]], [chain[1]]])
    expect(layersOf(expectOk(await traverse(ws, { ...middle, direction: 'both' })))).toEqual([
      [chain[4], chain[2]],
      [chain[5], chain[1]],
    ])
    const bad: [field: string, body: object][] = [
      ['seed_memory_id', {}],
      ['seed_memory_id', { seed_memory_id: null }],
      ['memory_id', { seed_memory_id: seed, memory_id: seed }],
      ['depth', { seed_memory_id: seed, depth: '2' }],
      ['depth', { seed_memory_id: seed, depth: null }],
      ['depth', { seed_memory_id: seed, depth: 0.5 }],
      ['direction', { seed_memory_id: seed, direction: 'any' }],
      ['filter', { seed_memory_id: seed, filter: null }],
      ['filter.writer', { seed_memory_id: seed, filter: { writer: 'x' } }],
      ['filter.tags', { seed_memory_id: seed, filter: { tags: { a: ['x'] } } }],
      ['edge_types', { seed_memory_id: seed, edge_types: ['likes'] }],
    ]
    for (const [field, body] of bad) {
      expectError(await traverse(ws, body), 400, 'invalid_input', { field: expect.stringContaining(field) })
    }
  })

  test('memory#58 cycle: each Memory once, start never; unknown start: 404', async () => {
    const ws = await api().workspace()
    const [a = '', b = '', c = '', d = ''] = await imprintMany(ws, 4)
    await linked(ws, a, b)
    const ac = await linked(ws, a, c)
    const abMentions = await linked(ws, a, b, 'mentions')
    for (const [source, target] of [
      [b, a],
      [c, a],
      [b, c],
      [c, b],
      [c, d],
      [b, d],
      [d, a],
    ] as const) {
      await linked(ws, source, target)
    }
    const walk = async (fields: object) => expectOk(await traverse(ws, { seed_memory_id: a, depth: 3, ...fields }))
    const out = await walk({})
    expect(layersOf(out)).toEqual([[b, c], [d]])
    // Newest Edge first: the first to reach a Memory is the one reported.
    expect(out.layers[0]).toMatchObject([{ via_edge_id: abMentions, via_edge_type: 'mentions' }, { via_edge_id: ac }])
    expect(out.stats).toEqual({ nodes_visited: 4, edges_walked: 10, truncated: false })
    expect(layersOf(await walk({ type: 'mentions' }))).toEqual([[b]])
    expect(layersOf(await walk({ edge_types: ['mentions'], type: ['references'] }))).toEqual([[b, c], [d]])
    expect(layersOf(await walk({ direction: 'both' })).flat().toSorted()).toEqual([b, c, d].toSorted())
    expectOk(await api().call('DELETE', memoryPath(ws, c)))
    expect(layersOf(await walk({}))).toEqual([[b], [d]])
    for (const seed_memory_id of [ABSENT, c]) {
      const details = { resource: 'memory', id: seed_memory_id }
      expectError(await traverse(ws, { seed_memory_id }), 404, 'not_found', details)
    }
  })

  test('memory#59 filter hides but walks through; over 10 000 Edges: truncated', async () => {
    const ws = await api().workspace()
    const [a = '', hidden = ''] = await imprintMany(ws, 2)
    const shown = await api().imprint(ws, 'shown', { tags: { kind: 'x', more: 'y' } })
    const other = await api().call('POST', `/workspaces/${ws}/memories`, { content: 'o' }, { agent: 'agent_other' })
    const theirs: string = expectOk(other, 201).memory_id
    await linked(ws, a, hidden)
    await linked(ws, hidden, shown)
    await linked(ws, hidden, theirs)
    const walk = async (filter: object) => expectOk(await traverse(ws, { seed_memory_id: a, depth: 2, filter }))
    const tagged = await walk({ tags: { kind: 'x' } })
    expect(layersOf(tagged)).toEqual([[shown]])
    expect(tagged.stats).toEqual({ nodes_visited: 4, edges_walked: 3, truncated: false })
    expect(layersOf(await walk({ tags: { kind: 'x', more: 'z' } }))).toEqual([])
    expect(layersOf(await walk({ agent_id: 'agent_other' }))).toEqual([[theirs]])
    expect(layersOf(await walk({ agent_id: 'agent_test' }))).toEqual([[hidden], [shown]])
    expect(layersOf(await walk({ agent_id: 'agent_other', tags: { kind: 'x' } }))).toEqual([])
    expect(layersOf(await walk({}))).toEqual([[hidden], [theirs, shown]])

    // A root, 100 children, 100 Edges of each child to the same 100 leaves: 10 100 in all.
    const big = await api().workspace()
    const ids = await imprintMany(big, 201)
    const [root = '', ...rest] = ids.toSorted()
    await insertEdges(big, [root], rest.slice(0, 100))
    await insertEdges(big, rest.slice(0, 99), rest.slice(100))
    const walkBig = async () => expectOk(await traverse(big, { seed_memory_id: root, depth: 2 })).stats
    expect(await walkBig()).toEqual({ nodes_visited: 201, edges_walked: 10_000, truncated: false })
    await insertEdges(big, [rest[99] ?? ''], rest.slice(100))
    expect(await walkBig()).toEqual({ nodes_visited: 201, edges_walked: 10_000, truncated: true })
    const shallow = expectOk(await traverse(big, { seed_memory_id: root, depth: 1 }))
    expect(shallow.stats).toEqual({ nodes_visited: 101, edges_walked: 100, truncated: false })

    // More than 200 Edges of one Memory and direction are a cut too.
    const wide = await api().workspace()
    const [hub = '', ...spokes] = await imprintMany(wide, 102)
    for (const type of TYPES.slice(0, 2)) await insertEdges(wide, [hub], spokes.slice(0, 100), type)
    const walkHub = async () => expectOk(await traverse(wide, { seed_memory_id: hub })).stats
    expect(await walkHub()).toEqual({ nodes_visited: 101, edges_walked: 200, truncated: false })
    await insertEdges(wide, [hub], spokes.slice(100))
    expect(await walkHub()).toMatchObject({ edges_walked: 200, truncated: true })
  })

  /** Edges from each source to each target, below the API for speed. */
  async function insertEdges(ws: string, sources: string[], targets: string[], type = 'references'): Promise<void> {
    const database = openDatabase(api().address)
    const among = (ids: string[]): string => ids.map((id) => `'${id}'`).join()
    await database.run(
      `INSERT INTO edge (edge_id, workspace_id, source_memory_id, target_memory_id, edge_type, created_by_agent_id,
         created_at, watermark)
       SELECT 'edg_' || s.memory_id || t.memory_id || '${type}', '${ws}', s.memory_id, t.memory_id, '${type}', 'agent_test', 0, 'wmk_'
         FROM memory s CROSS JOIN memory t
        WHERE s.memory_id IN (${among(sources)}) AND t.memory_id IN (${among(targets)})`,
    )
    await database.close()
  }

  test('memory#60 forget cascades both directions and counts; graph/stats right before and after', async () => {
    const ws = await api().workspace()
    const [a = '', b = '', c = ''] = await imprintMany(ws, 3)
    const stats = async () => expectOk(await api().call('GET', `/workspaces/${ws}/graph/stats`))
    expect(await stats()).toEqual({ node_count: 3, edge_count_by_type: {} })
    const cascaded = [await linked(ws, a, b), await linked(ws, b, a, 'mentions'), await linked(ws, c, a)]
    await linked(ws, b, c)
    expect(await stats()).toEqual({ node_count: 3, edge_count_by_type: { mentions: 1, references: 3 } })
    const answer = expectOk(await api().call('DELETE', memoryPath(ws, a)))
    expect(answer.cascaded_edges).toBe(3)
    expect(await stats()).toEqual({ node_count: 2, edge_count_by_type: { references: 1 } })
    const entries = await ledgerOf(api(), ws, 'op=edge_cascade_forget')
    expect(entries.map(({ target }) => target).toSorted()).toEqual(cascaded.toSorted())
    for (const entry of entries) {
      const edge_type = entry.target === cascaded[1] ? 'mentions' : 'references'
      expect(entry.metadata).toEqual({ edge_type, memory_id: a })
    }
    expect(await ledgerOf(api(), ws, 'op=forget')).toMatchObject([{ target: a, metadata: { cascaded_edges: 3 } }])
    expect(await edgesOf(ws, b)).toHaveLength(1)
    const gone = await api().call('DELETE', `/workspaces/${ws}/edges/${cascaded[0]}`)
    expectError(gone, 404, 'not_found', { resource: 'edge' })
  })
})

describeOnBoth(
  'no graph',
  (api) => {
    test('memory#61 driver none: graph routes 501 capability_unavailable; forget, recall work', async () => {
      const ws = await api().workspace({ auto_link_enabled: true })
      const W = `/workspaces/${ws}`
      const id = await api().imprint(ws, 'an otter')
      const twin = expectOk(await api().call('POST', `${W}/memories`, { content: 'an otter' }), 201)
      expect(twin).not.toHaveProperty('auto_linked_edges')
      const calls: [method: string, path: string, body?: object][] = [
        ['GET', `${W}/memories/${id}/edges`],
        ['GET', `${W}/memories/nope/edges?direction=x`],
        ['POST', `${W}/memories/${id}/edges`, { target_memory_id: twin.memory_id, edge_type: 'references' }],
        ['POST', `${W}/memories/${id}/edges`, { nonsense: true }],
        ['POST', `${W}/edges/:batch`, { edges: [] }],
        ['DELETE', `${W}/edges/edg_x`],
        ['POST', `${W}/graph/neighbors`, { memory_id: id }],
        ['POST', `${W}/graph/traverse`, { seed_memory_id: id }],
        ['GET', `${W}/graph/stats`],
      ]
      await expectNoEntry(api(), ws, async () => {
        for (const [method, path, body] of calls) {
          const reply = await api().call(method, path, body)
          expectError(reply, 501, 'capability_unavailable', { seam: 'graph', driver: 'none' })
        }
        const unnamed = await api().call('POST', `${W}/graph/neighbors`, { memory_id: id }, { agent: null })
        expectError(unnamed, 400, 'missing_agent_id')
        expectError(await api().call('GET', '/workspaces/nope/graph/stats'), 404, 'not_found')
      })
      const request = { query: 'otter', graph_expansion: { depth: 2 } }
      const recall = expectOk(await api().call('POST', `${W}/recall`, request))
      expect(recall.results).toHaveLength(2)
      expect(recall.graph_nodes_expanded).toBe(0)
      expect(expectOk(await api().call('DELETE', `${W}/memories/${id}`)).cascaded_edges).toBe(0)
      expect(expectOk(await api().call('GET', '//readyz')).ok).toBe(true)
    })
  },
  { env: { MEM_GRAPH_DRIVER: 'none' } },
)
