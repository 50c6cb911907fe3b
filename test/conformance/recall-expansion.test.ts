import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { describeOnBoth } from '../support/memory-api.ts'
import { isOrdered, recaller } from '../support/recall.ts'

describeOnBoth('recall expansion', (api) => {
  const { recall, hits, ids, refused } = recaller(api)
  const link = async (ws: string, source: string, target: string, edge_type = 'references'): Promise<string> => {
    const body = { target_memory_id: target, edge_type }
    return (await api().call('POST', `/workspaces/${ws}/memories/${source}/edges`, body)).body.edge.edge_id
  }

  test('memory#74 via, provenance, score formula, size limit', async () => {
    const ws = await api().workspace()
    const seed = await api().imprint(ws, 'The otter.')
    const [one, two, hidden, beyond, incoming] = await Promise.all(
      ['bread', 'salt', 'hidden', 'beyond', 'incoming'].map((text) => api().imprint(ws, text, { tags: { at: text } })),
    )
    const first = await link(ws, seed, one ?? '')
    const second = await link(ws, one ?? '', two ?? '', 'mentions')
    await link(ws, two ?? '', seed)
    await link(ws, one ?? '', hidden ?? '')
    await link(ws, hidden ?? '', beyond ?? '')
    await link(ws, incoming ?? '', seed)
    const query = { query: 'otter', mode: 'keyword', k: 1 }
    const [direct] = await hits(ws, query)
    const score = direct?.score ?? 0

    const near = await recall(ws, { ...query, graph_expansion: { depth: 1 } })
    expect(near.graph_nodes_expanded).toBe(1)
    expect(near.results.map((hit) => [hit.memory_id, hit.via])).toEqual([
      [seed, 'seed'],
      [one, 'graph'],
    ])
    expect(near.results[0]).toEqual(direct)
    expect(near.results[1]).toMatchObject({
      text: 'bread',
      tags: { at: 'bread' },
      written_by_agent_id: 'agent_test',
      graph_provenance: { from_memory_id: seed, edge_id: first, edge_type: 'references', layer: 1 },
    })
    expect(near.results[1]?.score).toBeCloseTo(0.2 * 0.7 * score, 6)

    const far = await hits(ws, {
      ...query,
      graph_expansion: { depth: 2, weight: 0.5, edge_types: ['references', 'mentions'] },
    })
    const reached = far.find((hit) => hit.memory_id === two)
    expect(reached?.graph_provenance).toEqual({
      from_memory_id: one,
      edge_id: second,
      edge_type: 'mentions',
      layer: 2,
    })
    expect(reached?.score).toBeCloseTo(0.5 * 0.7 ** 2 * score, 6)
    expect(far.map((hit) => hit.memory_id)).toEqual([seed, one, ...[two ?? '', hidden ?? ''].sort()])

    const typed = await ids(ws, { ...query, graph_expansion: { depth: 3, edge_types: ['references'] } })
    expect(typed).toEqual([seed, one, hidden, beyond])
    const both = await ids(ws, { ...query, graph_expansion: { depth: 1, direction: 'both' } })
    expect(new Set(both)).toEqual(new Set([seed, one, two, incoming]))
    expect(await ids(ws, { ...query, graph_expansion: { depth: 1, direction: 'in' } })).not.toContain(one)

    const filtered = await ids(ws, {
      ...query,
      query: 'otter',
      filters: { tags: { at: ['beyond'] } },
      graph_expansion: { depth: 3 },
    })
    expect(filtered).toEqual([])
    await api().call('PUT', `/workspaces/${ws}/memories/${seed}/tags/at`, { value: 'seed' })
    const through = { ...query, filters: { tags: { at: ['seed', 'beyond'] } }, graph_expansion: { depth: 3 } }
    expect(await ids(ws, through)).toEqual([seed, beyond])

    const counted = await recall(ws, {
      ...query,
      graph_expansion: { depth: 2, include_neighbors_in_response: false },
    })
    expect(counted).toMatchObject({ results: [{ memory_id: seed, via: 'seed' }], graph_nodes_expanded: 3 })
    expect(counted.results).toHaveLength(1)
    expect(await ids(ws, { ...query, graph_expansion: { depth: 0 } })).toEqual([seed])
    expect(await recall(ws, query)).not.toHaveProperty('graph_nodes_expanded')

    // A heavy weight lifts what the graph found above the direct hit.
    const lifted = await hits(ws, { ...query, graph_expansion: { depth: 1, weight: 10 } })
    expect(lifted.map((hit) => hit.via)).toEqual(['graph', 'seed'])
    await api().call('DELETE', `/workspaces/${ws}/memories/${one}`)
    expect(await ids(ws, { ...query, graph_expansion: { depth: 3 } })).toEqual([seed])
  })

  test('memory#74 the best path wins; at most k + max_neighbors', async () => {
    const ws = await api().workspace()
    const strong = await api().imprint(ws, 'otter otter otter')
    const weak = await api().imprint(ws, 'an otter among many other words')
    const targets = await Promise.all(Array.from({ length: 15 }, (_, i) => api().imprint(ws, `bread ${i}`)))
    for (const target of targets) await link(ws, weak, target)
    const best = targets.at(-1) ?? ''
    await link(ws, strong, best)
    const request = { query: 'otter', mode: 'keyword', k: 2 }
    const found = await hits(ws, { ...request, graph_expansion: { depth: 1 } })
    expect(found).toHaveLength(12)
    expect(isOrdered(found)).toBe(true)
    expect(found.find((hit) => hit.memory_id === best)?.graph_provenance?.from_memory_id).toBe(strong)
    const score = found.find((hit) => hit.memory_id === strong)?.score ?? 0
    expect(found.find((hit) => hit.memory_id === best)?.score).toBeCloseTo(0.14 * score, 6)
    for (const [max_neighbors, length] of [
      [0, 2],
      [3, 5],
      [200, 17],
    ]) {
      expect(await hits(ws, { ...request, graph_expansion: { depth: 1, max_neighbors } })).toHaveLength(length ?? 0)
    }
  })

  test('memory#75 lookup keeps the order asked for; what the graph adds follows', async () => {
    const ws = await api().workspace()
    const [newer, older] = [await api().imprint(ws, 'first'), await api().imprint(ws, 'second')].toReversed()
    const neighbor = await api().imprint(ws, 'third')
    await link(ws, older ?? '', neighbor)
    const request = { mode: 'lookup', memory_ids: [newer, older], graph_expansion: { depth: 1 } }
    expect((await hits(ws, request)).map((hit) => [hit.memory_id, hit.via, hit.score])).toEqual([
      [newer, 'seed', 0],
      [older, 'seed', 0],
      [neighbor, 'graph', 0],
    ])
  })

  test('memory#74 depth over cap 400', async () => {
    const ws = await api().workspace()
    await api().imprint(ws, 'otter')
    const cap = api().dialect === 'sqlite' ? 3 : 5
    expect(await hits(ws, { query: 'otter', graph_expansion: { depth: cap } })).toHaveLength(1)
    const over = await api().call('POST', `/workspaces/${ws}/recall`, {
      query: 'otter',
      graph_expansion: { depth: cap + 1 },
    })
    expect(over).toMatchObject({
      status: 400,
      body: { error_code: 'graph_traverse_depth_exceeded', details: { depth: cap + 1, max_depth: cap } },
    })
    const bad: [expansion: object, field: string][] = [
      [{}, 'depth'],
      [{ depth: -1 }, 'depth'],
      [{ depth: 1.5 }, 'depth'],
      [{ depth: 1, direction: 'up' }, 'direction'],
      [{ depth: 1, edge_types: ['likes'] }, 'edge_types.0'],
      [{ depth: 1, edge_types: 'references' }, 'edge_types'],
      [{ depth: 1, max_neighbors: 201 }, 'max_neighbors'],
      [{ depth: 1, max_neighbors: 1.5 }, 'max_neighbors'],
      [{ depth: 1, weight: 'heavy' }, 'weight'],
      [{ depth: 1, hops: 2 }, 'hops'],
    ]
    for (const [graph_expansion, field] of bad) {
      await refused(ws, { query: 'otter', graph_expansion }, `graph_expansion.${field}`)
    }
  })
})

/** While it runs ahead, a second passes each time somebody looks. */
const racing = {
  isAhead: false,
  ahead: 0,
  now: () => systemClock.now() + (racing.isAhead ? (racing.ahead += 1000) : racing.ahead),
}

describeOnBoth(
  'recall expansion on a slow store',
  (api) => {
    test('memory#74 the walks from all hits end together after 5 s, those of the best hits first', async () => {
      const { recall } = recaller(api)
      const ws = await api().workspace()
      const W = `/workspaces/${ws}/memories`
      for (let i = 0; i < 20; i++) {
        const [otter, bread] = [await api().imprint(ws, 'otter '.repeat(i + 1)), await api().imprint(ws, `bread ${i}`)]
        await api().call('POST', `${W}/${otter}/edges`, { target_memory_id: bread, edge_type: 'references' })
      }
      const request = { query: 'otter', mode: 'keyword', k: 20, graph_expansion: { depth: 1, max_neighbors: 20 } }
      expect((await recall(ws, request)).graph_nodes_expanded).toBe(20)
      racing.isAhead = true
      const { results, graph_nodes_expanded } = await recall(ws, request)
      racing.isAhead = false
      expect(graph_nodes_expanded).toBeGreaterThan(0)
      expect(graph_nodes_expanded).toBeLessThan(20)
      expect(results.filter((hit) => hit.via === 'seed')).toHaveLength(20)
      const [best, reached] = [results[0], results.find((hit) => hit.via === 'graph')]
      expect(reached?.graph_provenance?.from_memory_id).toBe(best?.memory_id)
    })
  },
  { clock: racing },
)
