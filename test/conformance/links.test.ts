import { expect, test } from 'vitest'
import { graphApi, memoryPath, TYPES } from '../support/graph-api.ts'
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

const ABSENT = 'mem_01ARZ3NDEKTSV4RRFFQ69G5FAV'

describeOnBoth('links', (api) => {
  const { imprintMany, link, linked, batch, neighbors, edgesOf } = graphApi(api)

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
    const made = expectOk(
      await link(ws, a, { target_memory_id: b, edge_type: 'mentions', properties_json: properties }),
      201,
    )
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
      expect(answer.neighbors.map((header: { memory_id: string }) => header.memory_id)).toEqual(far)
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
    const ids: string[] = all.map(({ edge_id }) => edge_id)
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
      for (const edge_type of [
        'likes',
        'vector_neighbor',
        '',
        'References',
        'toString',
        undefined,
        null,
        1,
        ['references'],
      ]) {
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
        expectInvalid(
          await link(ws, a, { target_memory_id: b, edge_type: 'references', properties_json }),
          'properties_json',
        )
      }
      expectInvalid(await link(ws, a, { target_memory_id: b, edge_type: 'references', weight: 1 }), 'weight')
      expectInvalid(
        await link(ws, a, { target_memory_id: b, edge_type: 'references', source_memory_id: a }),
        'source_memory_id',
      )
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
    expect(statusesOf(race)).toEqual([201, 409, 409, 409, 409])
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
      expectInvalid(
        await batch(ws, [row(c, a), { target_memory_id: b, edge_type: 'references' }]),
        'edges.1.source_memory_id',
      )
    })
    expect(await edgesOf(ws, c)).toHaveLength(1)
  })

  test('memory#53 1001 batch rows: 429, none written; /edges:batch: 404; empty: zeros', async () => {
    const ws = await api().workspace()
    const [a = '', b = ''] = await imprintMany(ws, 2)
    await expectNoEntry(api(), ws, async () => {
      const row = { source_memory_id: a, target_memory_id: b, edge_type: 'references' }
      const reply = await batch(
        ws,
        Array.from({ length: 1001 }, () => row),
      )
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
})
