import { beforeAll, describe, expect, test } from 'vitest'
import { describeOnBoth } from '../support/memory-api.ts'
import { MODES, recaller } from '../support/recall.ts'

describeOnBoth('recall filters', (api) => {
  const { recall, ids, refused } = recaller(api)

  describe('2000 Memories', () => {
    let ws: string
    let first: string
    const rare: string[] = []
    beforeAll(async () => {
      ws = await api().workspace()
      first = await api().imprint(ws, 'The gardeners were quietly pruning old pear trees beside the abbey wall.')
      for (let start = 1; start < 2000; start += 50) {
        const batch = Array.from({ length: Math.min(50, 2000 - start) }, (_, i) => start + i)
        await Promise.all(
          batch.map(async (n) => {
            const tags = { shelf: String(n % 10), ...(n % 1000 === 0 && { rare: 'yes' }) }
            const id = await api().imprint(ws, `Harbour log number ${n}: ships went by, the wall of fog rose.`, {
              tags,
            })
            if (n === 1000) rare.push(id)
          }),
        )
      }
      rare.push(await api().imprint(ws, 'Harbour log, the last page.', { tags: { rare: 'yes', shelf: '3' } }))
    }, 120_000)

    test('memory#64 keyword finds stems, scattered words, the oldest of 2000 Memories', async () => {
      for (const query of [
        'gardener prune tree',
        'abbeys PEARS',
        'what did quiet gardening pruned',
        'pruning harbourless',
      ]) {
        expect({ query, ids: (await ids(ws, { query, mode: 'keyword' })).slice(0, 1) }).toEqual({
          query,
          ids: [first],
        })
      }
      expect((await ids(ws, { query: 'wall abbey', mode: 'keyword', k: 3 }))[0]).toBe(first)
      expect((await recall(ws, { query: 'log', mode: 'keyword' })).total_candidates_scanned).toBe(2000)
      expect(await ids(ws, { query: 'zeppelin', mode: 'keyword' })).toEqual([])
    })

    test('memory#67 a 1-in-1000 filter still fills k, in every mode', async () => {
      for (const mode of MODES) {
        const request = { query: 'harbour log', mode, k: 2, filters: { tags: { rare: 'yes' } } }
        expect({ mode, ids: (await ids(ws, request)).sort() }).toEqual({ mode, ids: rare.toSorted() })
        expect((await recall(ws, request)).total_candidates_scanned).toBe(2)
        expect(await ids(ws, { ...request, k: 50, filters: { tags: { shelf: '3' } } })).toHaveLength(50)
        expect(await ids(ws, { ...request, filters: { tags: { rare: 'yes', shelf: ['3', '4'] } } })).toEqual([rare[1]])
      }
    })
  })

  test('memory#67 each filter alone, combined; unknown key, negative weight: 400', async () => {
    const ws = await api().workspace()
    const collection = (await api().call('POST', `/workspaces/${ws}/collections`, { name: 'shelf' })).body.id
    const imprint = async (agent: string, fields: object): Promise<{ id: string; at: string }> => {
      const made = await api().call(
        'POST',
        `/workspaces/${ws}/memories`,
        { content: 'A note on otters.', ...fields },
        { agent },
      )
      const id: string = made.body.memory_id
      return { id, at: (await api().call('GET', `/workspaces/${ws}/memories/${id}`)).body.created_at }
    }
    const a = await imprint('agent_a', { collection_id: collection, tags: { kind: 'note', Größe: 'x"y' } })
    const b = await imprint('agent_b', { tags: { kind: 'letter' } })
    await expect.poll(async () => new Date().toISOString() > b.at).toBe(true)
    const c = await imprint('agent_a', { tags: { kind: 'note' } })
    await api().call('PUT', `/workspaces/${ws}/memories/${c.id}/tags/late`, { value: '1' }, { agent: 'agent_b' })
    const all = [a.id, b.id, c.id]
    const cases: [filters: object, found: string[]][] = [
      [{}, all],
      [{ collection_id: collection }, [a.id]],
      [{ collection_id: 'coll_00000000000000000000000000' }, []],
      [{ tags: {} }, all],
      [{ tags: { kind: 'note' } }, [a.id, c.id]],
      [{ tags: { kind: ['note', 'letter'] } }, all],
      [{ tags: { kind: [] } }, []],
      [{ tags: { kind: 'note', late: '1' } }, [c.id]],
      [{ tags: { Größe: 'x"y' } }, [a.id]],
      [{ tags: { kind: 'Note' } }, []],
      [{ tags: { __proto__: 'x', toString: 'y' } }, []],
      [{ ts_after: c.at }, [c.id]],
      [{ ts_before: c.at }, [a.id, b.id]],
      [{ ts_after: a.at, ts_before: c.at }, [a.id, b.id]],
      [{ ts_after: '2001-02-03' }, all],
      [{ ts_after: '2001-02-03T04:05:06+05:30', ts_before: '2099-01-01' }, all],
      [{ ts_before: '2001-02-03' }, []],
      [{ agent_id: 'agent_a' }, [a.id, c.id]],
      [{ agent_id: 'agent_unknown' }, []],
      [{ agent_id_in: ['agent_b', 'agent_x'] }, [b.id]],
      [{ agent_id_in: [] }, []],
      [{ agent_id_not_in: ['agent_b'] }, [a.id, c.id]],
      [{ agent_id_not_in: [] }, all],
      [{ agent_id: 'agent_a', agent_id_in: ['agent_b'] }, []],
      [{ agent_id: 'agent_a', agent_id_not_in: ['agent_a'] }, []],
      [{ agent_id: 'agent_a', tags: { kind: 'note' }, collection_id: collection, ts_before: c.at }, [a.id]],
    ]
    for (const mode of [...MODES, 'lookup']) {
      for (const [filters, expected] of cases) {
        const found = await ids(ws, { query: 'otters', mode, filters, ...(mode === 'lookup' && { memory_ids: all }) })
        expect({ mode, filters, found: found.sort() }).toEqual({ mode, filters, found: expected.toSorted() })
      }
    }
    const bad: [request: object, field: string][] = [
      [{ filters: { tag: {} } }, 'filters.tag'],
      [{ filters: { collection_id: 1 } }, 'filters.collection_id'],
      [{ filters: { collection_id: 'mem_1' } }, 'filters.collection_id'],
      [{ filters: { tags: { kind: 1 } } }, 'filters.tags.kind'],
      [{ filters: { tags: ['kind'] } }, 'filters.tags'],
      [{ filters: { ts_after: 'yesterday' } }, 'filters.ts_after'],
      [{ filters: { ts_before: '2026-02-30' } }, 'filters.ts_before'],
      [{ filters: { agent_id_in: 'agent_a' } }, 'filters.agent_id_in'],
      [{ filters: [] }, 'filters'],
      [{ filters: null }, 'filters'],
      [{ weights: { vector: -1, keyword: 1 } }, 'weights.vector'],
      [{ weights: { vector: 1, keyword: -0.1 } }, 'weights.keyword'],
      [{ weights: { vector: '1' } }, 'weights.vector'],
      [{ weights: { graph: 1 } }, 'weights.graph'],
    ]
    for (const [request, field] of bad) await refused(ws, { query: 'otters', ...request }, field)
  })
})
