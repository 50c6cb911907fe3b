import { expect, test } from 'vitest'
import { describeOnBoth, type CallOptions } from '../support/memory-api.ts'
import { expectError, expectInvalid, expectNoEntry, expectOk } from '../support/expectations.ts'

describeOnBoth('isolation', (api) => {
  /** A workspace with one record of every kind, its owner's, and one beside it, the intruder's. */
  const twoWorkspaces = async () => {
    const [owner, intruder] = [await api().workspace({ name: 'owner' }), await api().workspace({ name: 'intruder' })]
    const W = `/workspaces/${owner}`
    const post = async (path: string, body: object) => expectOk(await api().call('POST', W + path, body), 201)
    const collection: string = (await post('/collections', { name: 'c' })).id
    const imprinted = await post('/memories', { content: 'an otter', collection_id: collection, tags: { a: '1' } })
    const memory: string = imprinted.memory_id
    const other = await api().imprint(owner, 'a walrus')
    const edge: string = (await post(`/memories/${memory}/edges`, { target_memory_id: other, edge_type: 'references' }))
      .edge.edge_id
    const pin: string = (await post('/recall/pins', { query: 'q' })).pin_id
    await post('/agents', { agent_id: 'agent_owner', identity_provider: 'opaque' })
    const mine = await api().imprint(intruder, 'a native')
    return { owner, intruder, collection, memory, mark: String(imprinted.watermark), other, edge, pin, mine }
  }
  type Two = Awaited<ReturnType<typeof twoWorkspaces>>

  /** Everything the owner can see. */
  const stateOf = async ({ owner, memory, other, mark }: Two): Promise<unknown[]> => {
    const W = `/workspaces/${owner}`
    const M = `${W}/memories/${memory}`
    const within = [
      '',
      '/collections',
      '/memories',
      `/memories/${other}`,
      '/recall/pins',
      '/agents',
      '/ledger',
      '/graph/stats',
    ]
    const paths = [
      ...within.map((path) => W + path),
      ...['', '/watermarks', '/edges', `@${mark}`].map((path) => M + path),
    ]
    return Promise.all(paths.map(async (path) => expectOk(await api().call('GET', path))))
  }
  /** Runs calls from the intruder's workspace, which must find nothing, change nothing and leave no trace. */
  const expectAbsent = async (
    two: Two,
    calls: [method: string, path: string, body: object | undefined, resource: string, options?: CallOptions][],
  ): Promise<void> => {
    const before = await stateOf(two)
    await expectNoEntry(api(), two.intruder, async () => {
      for (const [method, path, body, resource, options] of calls) {
        const reply = await api().call(method, `/workspaces/${two.intruder}${path}`, body, options)
        expectError(reply, 404, 'not_found', { resource })
      }
    })
    expect(await stateOf(two)).toEqual(before)
  }

  test('memory#41 lookup, update, patch, append, forget via another workspace: 404, Memory intact', async () => {
    const two = await twoWorkspaces()
    const M = `/memories/${two.memory}`
    const expected_watermark = two.mark
    const patch = [{ old_string: 'otter', new_string: 'x' }]
    await expectAbsent(two, [
      ['GET', M, undefined, 'memory'],
      ['PUT', M, { content: 'stolen', expected_watermark }, 'memory'],
      ['PUT', M, { content: 'stolen', expected_watermark: 'old' }, 'memory'],
      ['PATCH', M, { patch, expected_watermark }, 'memory'],
      ['PATCH', M, { patch: [], expected_watermark }, 'memory'],
      ['POST', `${M}:append`, { content: 'stolen' }, 'memory'],
      ['POST', `${M}:append`, { content: 'stolen', expected_watermark }, 'memory'],
      ['DELETE', M, undefined, 'memory'],
      ['DELETE', `${M}?redact_audit=true`, undefined, 'memory', { headers: { 'If-Match': two.mark } }],
      ['POST', '/memories', { content: 'x', collection_id: two.collection }, 'collection'],
    ])
    const listed = await api().call('GET', `/workspaces/${two.intruder}/memories?collection_id=${two.collection}`)
    expect(expectOk(listed)).toEqual({ memories: [] })
  })

  test('memory#42 same for tags, history, @mark, edges, unlink, pins, collections', async () => {
    const two = await twoWorkspaces()
    const M = `/memories/${two.memory}`
    await expectAbsent(two, [
      ['PUT', `${M}/tags/a`, { value: '2' }, 'memory'],
      ['POST', `${M}/tags/a`, { value: '2' }, 'memory'],
      ['DELETE', `${M}/tags/a`, undefined, 'memory'],
      ['DELETE', `${M}/tags/absent`, undefined, 'memory'],
      ['GET', `${M}/watermarks`, undefined, 'memory'],
      ['GET', `${M}@${two.mark}`, undefined, 'memory'],
      ['GET', `/memories/${two.mine}@${two.mark}`, undefined, 'watermark'],
      ['GET', `${M}/edges`, undefined, 'memory'],
      ['POST', `${M}/edges`, { target_memory_id: two.other, edge_type: 'mentions' }, 'memory'],
      ['DELETE', `/edges/${two.edge}`, undefined, 'edge'],
      ['DELETE', `/recall/pins/${two.pin}`, undefined, 'pin'],
      ['GET', `/collections/${two.collection}`, undefined, 'collection'],
      ['DELETE', `/collections/${two.collection}`, undefined, 'collection'],
      ['GET', '/agents/agent_owner', undefined, 'agent'],
      ['DELETE', '/agents/agent_owner', undefined, 'agent'],
    ])
    const I = `/workspaces/${two.intruder}`
    expect(expectOk(await api().call('GET', `${I}/recall/pins`)).pins).toEqual([])
    expect(expectOk(await api().call('GET', `${I}/ledger?memory_id=${two.memory}`)).entries).toEqual([])
    expect(expectOk(await api().call('GET', `${I}/ledger?edge_id=${two.edge}`)).entries).toEqual([])
    const [entry] = expectOk(await api().call('GET', `/workspaces/${two.owner}/ledger?limit=1`)).entries
    expectInvalid(await api().call('GET', `${I}/ledger?since_ledger_id=${entry.ledger_id}`), 'since_ledger_id')
  })

  test('memory#43 link, neighbors, traverse to a foreign Memory: 404; recall lookup skips it', async () => {
    const two = await twoWorkspaces()
    const link = (target_memory_id: string) => ({ target_memory_id, edge_type: 'references' })
    await expectAbsent(two, [
      ['POST', `/memories/${two.mine}/edges`, link(two.memory), 'memory'],
      ['POST', `/memories/${two.memory}/edges`, link(two.mine), 'memory'],
      ['POST', '/graph/neighbors', { memory_id: two.memory }, 'memory'],
      ['POST', '/graph/traverse', { seed_memory_id: two.memory }, 'memory'],
    ])
    const I = `/workspaces/${two.intruder}`
    const rows = [
      { source_memory_id: two.mine, ...link(two.memory) },
      { source_memory_id: two.memory, ...link(two.other) },
    ]
    const batch = expectOk(await api().call('POST', `${I}/edges/:batch`, { edges: rows }))
    expect(batch).toMatchObject({
      ok: 0,
      failed: 2,
      results: [{ error_code: 'not_found' }, { error_code: 'not_found' }],
    })
    const recall = async (request: object) => expectOk(await api().call('POST', `${I}/recall`, request)).results
    const found = await recall({ mode: 'lookup', memory_ids: [two.memory, two.mine, two.other] })
    expect(found).toMatchObject([{ memory_id: two.mine }])
    for (const mode of ['keyword', 'vector', 'hybrid']) {
      expect(
        (await recall({ query: 'otter', mode, k: 100 })).map((hit: { memory_id: string }) => hit.memory_id),
      ).not.toContain(two.memory)
      expect(await recall({ query: 'otter', mode, filters: { collection_id: two.collection } })).toEqual([])
    }
  })
})

describeOnBoth(
  'tenancy',
  (api) => {
    const as = (tenant: string): CallOptions => ({ headers: { 'X-Mem-Workspace': tenant } })

    test('memory#44 multi-tenant: no header 400; path - or equal id works; other id 404; list shows only the header’s', async () => {
      const [a, b] = [await api().workspace({ name: 'a' }), await api().workspace({ name: 'b' })]
      const ignored = await api().call('POST', '/workspaces', { name: 'c' }, as(a))
      const c: string = expectOk(ignored, 201).id
      expect(new Set([a, b, c]).size).toBe(3)

      for (const segment of ['-', a]) {
        const W = `/workspaces/${segment}`
        const made = expectOk(await api().call('POST', `${W}/memories`, { content: 'x' }, as(a)), 201)
        const M = `${W}/memories/${made.memory_id}`
        expect(expectOk(await api().call('GET', M, undefined, as(a))).workspace_id).toBe(a)
        expectOk(await api().call('POST', `${M}:append`, { content: 'y' }, as(a)))
        expectError(await api().call('GET', M, undefined, as(b)), 404, 'not_found')
        const foreign = await api().call('GET', `/workspaces/-/memories/${made.memory_id}`, undefined, as(b))
        expectError(foreign, 404, 'not_found', { resource: 'memory' })
        expect(expectOk(await api().call('GET', W, undefined, as(a))).name).toBe('a')
      }
      const calls: [method: string, path: string, body?: object][] = [
        ['GET', ''],
        ['PUT', '', { name: 'renamed' }],
        ['DELETE', ''],
        ['GET', '/memories'],
        ['POST', '/memories', { content: 'x' }],
        ['GET', '/ledger'],
        ['POST', '/recall', { query: 'x' }],
        ['POST', '/agents', { agent_id: 'agent_x', identity_provider: 'opaque' }],
      ]
      for (const [method, path, body] of calls) {
        for (const segment of ['-', a]) {
          expectInvalid(await api().call(method, `/workspaces/${segment}${path}`, body), 'X-Mem-Workspace')
        }
        const other = await api().call(method, `/workspaces/${b}${path}`, body, as(a))
        expectError(other, 404, 'not_found', { resource: 'workspace', id: b })
        const unknown = await api().call(method, `/workspaces/-${path}`, body, as('ws_unknown'))
        expectError(unknown, 404, 'not_found', { resource: 'workspace', id: 'ws_unknown' })
      }
      // The tenant is judged before the agent, the agent before the workspace.
      const noAgent = { agent: null }
      expectInvalid(await api().call('POST', `/workspaces/${a}/memories`, {}, noAgent), 'X-Mem-Workspace')
      const unnamed = await api().call('POST', '/workspaces/-/memories', {}, { ...as('ws_unknown'), ...noAgent })
      expectError(unnamed, 400, 'missing_agent_id')

      const list = async (options?: CallOptions): Promise<string[]> =>
        expectOk(await api().call('GET', '/workspaces', undefined, options)).workspaces.map(
          ({ id }: { id: string }) => id,
        )
      expect(await list(as(a))).toEqual([a])
      expect(await list(as('ws_unknown'))).toEqual([])
      expect(await list()).toEqual([c, b, a])
      expect(expectOk(await api().call('GET', '/workspaces/-', undefined, as(b))).name).toBe('b')
      expectOk(await api().call('DELETE', '/workspaces/-', undefined, as(b)), 204)
      expect(await list()).toEqual([c, a])
    })
  },
  { env: { MEM_MODE: 'multi-tenant' } },
)

describeOnBoth('single tenancy', (api) => {
  test('memory#44 single-tenant: X-Mem-Workspace is ignored', async () => {
    const [a, b] = [await api().workspace({ name: 'a' }), await api().workspace({ name: 'b' })]
    const options = { headers: { 'X-Mem-Workspace': b } }
    expect(expectOk(await api().call('GET', `/workspaces/${a}`, undefined, options)).name).toBe('a')
    expectError(await api().call('GET', '/workspaces/-', undefined, options), 404, 'not_found')
    expect(expectOk(await api().call('GET', '/workspaces', undefined, options)).workspaces).toHaveLength(2)
  })
})
