import { expect, test } from 'vitest'
import { openDatabase } from '../../src/database/open.ts'
import { graphApi, memoryPath, TYPES } from '../support/graph-api.ts'
import { describeOnBoth, type Reply } from '../support/memory-api.ts'
import { expectError, expectNoEntry, expectOk, ledgerOf } from '../support/expectations.ts'

const ABSENT = 'mem_01ARZ3NDEKTSV4RRFFQ69G5FAV'

describeOnBoth('graph', (api) => {
  const { imprintMany, linked, neighbors, traverse, edgesOf } = graphApi(api)
  const layersOf = (answer: Reply['body']): string[][] =>
    answer.layers.map((layer: { memory_id: string }[]) => layer.map(({ memory_id }) => memory_id))
  const idsOf = (rows: Record<string, string>[], key: string) => rows.map((row) => row[key])

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
      layers: [1, 2, 3].map((i) => [{ memory_id: chain[i], via_edge_id: edges[i - 1], via_edge_type: 'references' }]),
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
    expect(
      layersOf(await walk({ direction: 'both' }))
        .flat()
        .toSorted(),
    ).toEqual([b, c, d].toSorted())
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
    expect(entries.map(({ target = '' }) => target).toSorted()).toEqual(cascaded.toSorted())
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
