import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { recallAnswerSchema, type RecallAnswer, type RecallHit } from '../../src/memory/model.ts'
import { startEmbeddingProvider } from '../support/embedding-provider.ts'
import { describeOnBoth, type Reply } from '../support/memory-api.ts'

const provider = await startEmbeddingProvider()
afterAll(() => provider.stop())

const MODES = ['keyword', 'vector', 'hybrid'] as const
const file = 'embedding: {inline_timeout: 0.2, timeout: 5s}'

describeOnBoth(
  'recall',
  (api) => {
    /** A recall that must succeed, in the shape of memory.md 4.3. */
    const recall = async (ws: string, request: object): Promise<RecallAnswer> => {
      const { status, body } = await api().call('POST', `/workspaces/${ws}/recall`, request, { agent: null })
      expect({ status, body }).toMatchObject({ status: 200 })
      expect(body.latency_ms).toBeGreaterThan(0)
      return recallAnswerSchema.parse(body)
    }
    const hits = async (ws: string, request: object): Promise<RecallHit[]> => (await recall(ws, request)).results
    const ids = async (ws: string, request: object): Promise<string[]> =>
      (await hits(ws, request)).map((hit) => hit.memory_id)
    const refused = async (ws: string, request: object, field: string): Promise<void> => {
      const { status, body } = await api().call('POST', `/workspaces/${ws}/recall`, request)
      expect({ request, status, body }).toMatchObject({
        status: 400,
        body: { error_code: 'invalid_input', message: expect.stringContaining(field), details: { field } },
      })
    }

    test('memory#62 four modes: 200, default hybrid; other mode, blank query, lookup without ids: 400', async () => {
      const ws = await api().workspace()
      const id = await api().imprint(ws, 'The keeper of the lighthouse bakes rye bread.', { tags: { kind: 'note' } })
      const memory = (await api().call('GET', `/workspaces/${ws}/memories/${id}`)).body
      for (const mode of MODES) {
        const [hit] = await hits(ws, { query: 'rye bread', mode })
        expect(hit).toEqual({
          memory_id: id,
          cell_id: memory.cells[0].cell_id,
          score: expect.any(Number),
          ...(mode !== 'keyword' && { vector_score: expect.any(Number) }),
          ...(mode !== 'vector' && { keyword_score: expect.any(Number) }),
          text: memory.content,
          tags: { kind: 'note' },
          watermark: memory.head_watermark,
          written_by_agent_id: 'agent_test',
          via: 'seed',
        })
        expect(hit?.vector_score ?? 1).toBeLessThanOrEqual(1)
      }
      expect(await hits(ws, { mode: 'lookup', memory_ids: [id] })).toEqual([
        {
          memory_id: id,
          score: 0,
          text: memory.content,
          tags: { kind: 'note' },
          watermark: memory.head_watermark,
          written_by_agent_id: 'agent_test',
          via: 'seed',
        },
      ])
      expect(await hits(ws, { query: 'rye' })).toEqual(await hits(ws, { query: 'rye', mode: 'hybrid' }))
      const empty = await recall(await api().workspace(), { query: 'rye' })
      expect(empty).toEqual({ results: [], total_candidates_scanned: 0, latency_ms: expect.any(Number), embedding_pending: false })

      for (const mode of ['semantic', '', 'Hybrid', null, 1]) await refused(ws, { query: 'rye', mode }, 'mode')
      for (const query of [undefined, '', ' \t\n']) {
        for (const mode of [undefined, ...MODES]) await refused(ws, { query, mode }, 'query')
      }
      for (const query of [null, 1, ['rye'], {}]) await refused(ws, { query }, 'query')
      await refused(ws, { mode: 'lookup' }, 'memory_ids')
      await refused(ws, { mode: 'lookup', query: 'rye', memory_ids: [] }, 'memory_ids')
      await refused(ws, { mode: 'lookup', memory_ids: Array.from({ length: 101 }, () => id) }, 'memory_ids')
      await refused(ws, { mode: 'lookup', memory_ids: id }, 'memory_ids')
      await refused(ws, { mode: 'lookup', memory_ids: ['coll_1'] }, 'memory_ids.0')
      await refused(ws, { query: 'rye', include_cells: 'yes' }, 'include_cells')
      await refused(ws, { query: 'rye', limit: 3 }, 'limit')
    })

    test('memory#63 k absent or 0: 5; 1000: at most 100', async () => {
      const ws = await api().workspace()
      await Promise.all(Array.from({ length: 120 }, (_, i) => api().imprint(ws, `Harbour log, day ${i}: calm sea.`)))
      for (const mode of MODES) {
        const found = async (k?: number): Promise<number> => new Set(await ids(ws, { query: 'harbour log', mode, k })).size
        expect(await Promise.all([found(), found(0), found(-7), found(1), found(100), found(1000)])).toEqual([
          5, 5, 5, 1, 100, 100,
        ])
      }
      for (const k of [1.5, '5', null, true]) await refused(ws, { query: 'harbour', k }, 'k')
    })

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
              const id = await api().imprint(ws, `Harbour log number ${n}: ships went by, the wall of fog rose.`, { tags })
              if (n === 1000) rare.push(id)
            }),
          )
        }
        rare.push(await api().imprint(ws, 'Harbour log, the last page.', { tags: { rare: 'yes', shelf: '3' } }))
      }, 120_000)

      test('memory#64 keyword finds stems, scattered words, the oldest of 2000 Memories', async () => {
        for (const query of ['gardener prune tree', 'abbeys PEARS', 'what did quiet gardening pruned', 'pruning harbourless']) {
          expect({ query, ids: (await ids(ws, { query, mode: 'keyword' })).slice(0, 1) }).toEqual({ query, ids: [first] })
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

    test('memory#65 quotes, *, AND, -, brackets in the query: 200', async () => {
      const ws = await api().workspace()
      const id = await api().imprint(ws, 'Harbour master, e-mail harbour@example.org, price 100% of C++ and NEAR enough.')
      const nasty = [
        ...['"', "'", '`', '*', '-', '+', '(', ')', '[', ']', '{', '}', '^', ':', '\\', '%', '_', ';', '|', '&', '!', '~', '<->', '@@'],
        ...['AND', 'OR', 'NOT', 'NEAR(', 'text:', '--', '$1', '?', '/*', '\n', '\t', '\u200b', '\ufeff', '😀', '💥\u0301'],
      ]
      for (const mode of MODES) {
        for (const mark of nasty) {
          for (const query of [`${mark} harbour`, `harbour ${mark}`, `"harbour ${mark}"`, `(harbour)${mark}`]) {
            expect({ query, found: await ids(ws, { query, mode }) }).toEqual({ query, found: [id] })
          }
          if (mark.trim() !== '') await recall(ws, { query: mark, mode })
        }
        expect(await ids(ws, { query: 'harbour '.repeat(4096), mode })).toEqual([id])
        expect(await ids(ws, { query: '😀'.repeat(32 * 1024 - 8) + ' harbour', mode })).toEqual([id])
      }
      expect(await ids(ws, { query: '** -- ""', mode: 'keyword' })).toEqual([])
      await refused(ws, { query: 'x'.repeat(32 * 1024 + 1) }, 'query')
      const { status } = await api().call('POST', `/workspaces/${ws}/recall`, undefined, { raw: '{"query": "a\\u0000"}' })
      expect(status).toBe(400)
    })

    test('memory#66 many matching Cells: one hit, text = best Cell', async () => {
      const ws = await api().workspace()
      const paragraphs = Array.from({ length: 30 }, (_, i) => `Part ${i}: an otter. ${'Plain filler goes on. '.repeat(80)}`)
      paragraphs[17] = 'Otter, otter and otter: all about the otter family.' + ' Reeds, water, fish.'.repeat(90)
      const id = await api().imprint(ws, paragraphs.join('\n\n'))
      const { cells } = (await api().call('GET', `/workspaces/${ws}/memories/${id}`)).body
      expect(cells).toHaveLength(30)
      for (const mode of MODES) {
        const found = await hits(ws, { query: 'otter family', mode })
        expect(found).toMatchObject([{ memory_id: id, text: cells[17].text, cell_id: cells[17].cell_id }])
      }
    })

    test('memory#67 each filter alone, combined; unknown key, negative weight: 400', async () => {
      const ws = await api().workspace()
      const collection = (await api().call('POST', `/workspaces/${ws}/collections`, { name: 'shelf' })).body.id
      const imprint = async (agent: string, fields: object): Promise<{ id: string; at: string }> => {
        const made = await api().call('POST', `/workspaces/${ws}/memories`, { content: 'A note on otters.', ...fields }, { agent })
        const id: string = made.body.memory_id
        return { id, at: (await api().call('GET', `/workspaces/${ws}/memories/${id}`)).body.created_at }
      }
      const a = await imprint('agent_a', { collection_id: collection, tags: { kind: 'note', 'Größe': 'x"y' } })
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
        [{ tags: { 'Größe': 'x"y' } }, [a.id]],
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

    test('memory#68 ties by memory_id; same request, same answer', async () => {
      const ws = await api().workspace()
      const same = await Promise.all(Array.from({ length: 12 }, () => api().imprint(ws, 'Twelve equal otters.')))
      for (const mode of ['keyword', 'vector']) {
        const found = await hits(ws, { query: 'otters', mode, k: 12 })
        expect(new Set(found.map((hit) => hit.score)).size).toBe(1)
        expect(found.map((hit) => hit.memory_id)).toEqual(same.toSorted())
        expect(await ids(ws, { query: 'otters', mode, k: 4 })).toEqual(same.toSorted().slice(0, 4))
      }
      for (const mode of MODES) {
        const answers = await Promise.all(
          Array.from({ length: 5 }, () => hits(ws, { query: 'equal otters', mode, k: 7, include_cells: true })),
        )
        for (const answer of answers) expect(answer).toEqual(answers[0])
        expect(isOrdered(answers[0] ?? [])).toBe(true)
      }
    })

    test('memory#69 hybrid first in both: score 1; weights follow 4.2', async () => {
      const ws = await api().workspace()
      const texts = ['otter river', 'otters in a long river', 'a river of words', 'the otter family swims', 'bread', 'rivers, fish']
      for (const text of texts) await api().imprint(ws, text)
      const query = 'otter river'
      const keyword = await hits(ws, { query, mode: 'keyword', k: 100 })
      const vector = await hits(ws, { query, mode: 'vector', k: 100 })
      expect(keyword[0]?.memory_id).toBe(vector[0]?.memory_id)
      const hybrid = await hits(ws, { query, k: 100 })
      expect(hybrid[0]).toMatchObject({ memory_id: keyword[0]?.memory_id, score: 1 })
      expect(hybrid.every(({ score }) => score >= 0 && score <= 1)).toBe(true)
      expect(isOrdered(hybrid)).toBe(true)

      const v = normalized(vector.map((hit) => [hit.memory_id, hit.vector_score ?? 0]))
      const q = normalized(keyword.map((hit) => [hit.memory_id, hit.keyword_score ?? 0]))
      for (const weights of [{ vector: 0.25, keyword: 3 }, { vector: 1, keyword: 0 }, { vector: 0, keyword: 2 }, { keyword: 1 }]) {
        const weighted = await hits(ws, { query, weights, k: 100 })
        const expected = new Map(
          [...new Set([...v.keys(), ...q.keys()])].map((id) => [
            id,
            (weights.vector ?? 0) * (v.get(id) ?? 0) + weights.keyword * (q.get(id) ?? 0),
          ]),
        )
        expect(weighted).toHaveLength(expected.size)
        expect(isOrdered(weighted)).toBe(true)
        for (const { memory_id, score } of weighted) expect(score).toBeCloseTo(expected.get(memory_id) ?? -1, 5)
      }
      for (const weights of [{ vector: 0, keyword: 0 }, {}]) expect(await hits(ws, { query, weights, k: 100 })).toEqual(hybrid)
      const huge = await hits(ws, { query, weights: { vector: Number.MAX_VALUE, keyword: Number.MAX_VALUE } })
      expect(huge[0]?.memory_id).toBe(keyword[0]?.memory_id)
    })

    test('memory#70 old text after update, anything after forget: never found, all modes', async () => {
      const ws = await api().workspace()
      const other = await api().imprint(ws, 'A walrus sleeps.')
      const id = await api().imprint(ws, 'An armadillo rolls.\n\nSecond paragraph.')
      await ids(ws, { query: 'armadillo' })
      const head = (await api().call('GET', `/workspaces/${ws}/memories/${id}`)).body.head_watermark
      const memory = `/workspaces/${ws}/memories/${id}`
      expect((await api().call('PUT', memory, { content: 'A pangolin rolls.', expected_watermark: head })).status).toBe(200)
      for (const mode of MODES) {
        const found = await hits(ws, { query: 'armadillo', mode, include_cells: true, k: 100 })
        expect(JSON.stringify(found)).not.toContain('armadillo')
        expect((await hits(ws, { query: 'pangolin', mode }))[0]).toMatchObject({ memory_id: id, text: 'A pangolin rolls.' })
      }
      expect(await ids(ws, { query: 'armadillo', mode: 'keyword' })).toEqual([])
      expect((await hits(ws, { mode: 'lookup', memory_ids: [id] }))[0]?.text).toBe('A pangolin rolls.')

      expect((await api().call('DELETE', memory)).status).toBe(200)
      for (const mode of MODES) {
        for (const query of ['pangolin', 'armadillo', 'rolls']) {
          expect(await ids(ws, { query, mode, k: 100 })).not.toContain(id)
        }
      }
      expect(await ids(ws, { mode: 'lookup', memory_ids: [id, other] })).toEqual([other])
    })

    test('memory#71 100 look-alikes forgotten: vector k=5 still gives 5 live hits', async () => {
      const ws = await api().workspace()
      const live = await Promise.all(Array.from({ length: 5 }, (_, i) => api().imprint(ws, `An otter, seen ${i} times.`)))
      const gone = await Promise.all(Array.from({ length: 100 }, () => api().imprint(ws, 'An otter.')))
      expect(await ids(ws, { query: 'An otter.', mode: 'vector', k: 100 })).toHaveLength(100)
      await Promise.all(gone.map((id) => api().call('DELETE', `/workspaces/${ws}/memories/${id}`)))
      for (const mode of MODES) {
        expect((await ids(ws, { query: 'An otter.', mode, k: 5 })).sort()).toEqual(live.toSorted())
      }
    })

    test('memory#72 total_candidates_scanned exact; embedding_pending true while Cells wait', async () => {
      const ws = await api().workspace()
      const cellOf = (words: string): string => `${words} ${'filler '.repeat(280)}`
      const two = await api().imprint(ws, `${cellOf('otter one')}\n\n${cellOf('otter two')}\n\n${cellOf('walrus')}`, {
        tags: { many: 'yes' },
      })
      await api().imprint(ws, 'Otters swim.')
      await api().imprint(ws, 'Nothing here.')
      await api().imprint(ws, '!!! ???')
      const scanned = async (request: object): Promise<number> => (await recall(ws, request)).total_candidates_scanned
      expect(await scanned({ query: 'otter', mode: 'keyword' })).toBe(3)
      expect(await scanned({ query: 'otter', mode: 'keyword', k: 1 })).toBe(3)
      expect(await scanned({ query: 'otter walrus', mode: 'keyword' })).toBe(4)
      expect(await scanned({ query: 'zeppelin', mode: 'keyword' })).toBe(0)
      expect(await scanned({ query: 'otter', mode: 'vector' })).toBe(5)
      expect(await scanned({ query: 'otter', mode: 'vector', filters: { tags: { many: 'yes' } } })).toBe(3)
      expect(await scanned({ query: 'otter', mode: 'hybrid' })).toBe(5)
      expect(await scanned({ query: 'otter', mode: 'keyword', filters: { tags: { many: 'yes' } } })).toBe(2)
      expect(await scanned({ mode: 'lookup', memory_ids: [two, 'mem_00000000000000000000000000', two] })).toBe(1)
      expect((await recall(ws, { query: 'otter' })).embedding_pending).toBe(false)

      const waiting = await api().workspace({ embedding_model: 'openai:bag-64' })
      provider.behave = (texts) => (texts.some((text) => text.includes('otter')) ? 'hangs' : 'works')
      const id = await api().imprint(waiting, 'An otter waits.')
      expect((await recall(waiting, { query: 'walrus' })).embedding_pending).toBe(true)
      expect((await recall(waiting, { mode: 'lookup', memory_ids: [id] })).embedding_pending).toBe(true)
      provider.recover()
      const isReady = async (): Promise<boolean> =>
        (await api().call('GET', `/workspaces/${waiting}/memories/${id}`)).body.recall_ready
      await expect.poll(isReady, { timeout: 20_000 }).toBe(true)
      expect((await recall(waiting, { query: 'walrus' })).embedding_pending).toBe(false)
    })

    test('memory#73 provider down: hybrid gives keyword hits + vector_unavailable; writes 201', async () => {
      const ws = await api().workspace({ embedding_model: 'openai:bag-32' })
      const before = await api().imprint(ws, 'The otter came early.')
      expect(await ids(ws, { query: 'otter', mode: 'vector' })).toEqual([before])
      for (const behaviour of ['fails', 'hangs'] as const) {
        provider.behave = () => behaviour
        const { status, body } = await api().call('POST', `/workspaces/${ws}/memories`, { content: `An otter ${behaviour}.` })
        expect({ status, body }).toMatchObject({ status: 201, body: { recall_ready: false, cells_created: 1 } })
        const hybrid = await recall(ws, { query: 'otter' })
        expect(hybrid).toMatchObject({ warnings: ['vector_unavailable'], embedding_pending: true })
        const keyword = await ids(ws, { query: 'otter', mode: 'keyword' })
        expect(keyword).toContain(body.memory_id)
        expect(hybrid.results.map((hit) => hit.memory_id).sort()).toEqual(keyword.toSorted())
        expect(hybrid.results.every((hit) => hit.vector_score === undefined && hit.score >= 0 && hit.score <= 1)).toBe(true)
        expect(await recall(ws, { query: 'otter', mode: 'vector' })).toMatchObject({
          results: [],
          warnings: ['vector_unavailable'],
          total_candidates_scanned: 0,
        })
        expect((await recall(ws, { query: 'otter', mode: 'keyword' })).warnings).toBeUndefined()
        provider.recover()
      }
      expect(await recall(ws, { query: 'otter' })).not.toHaveProperty('warnings')
    })

    describe('memory#74 expansion', () => {
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

        const far = await hits(ws, { ...query, graph_expansion: { depth: 2, weight: 0.5, edge_types: ['references', 'mentions'] } })
        const reached = far.find((hit) => hit.memory_id === two)
        expect(reached?.graph_provenance).toEqual({ from_memory_id: one, edge_id: second, edge_type: 'mentions', layer: 2 })
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

        const counted = await recall(ws, { ...query, graph_expansion: { depth: 2, include_neighbors_in_response: false } })
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

      test('memory#74 depth over cap 400', async () => {
        const ws = await api().workspace()
        await api().imprint(ws, 'otter')
        const cap = api().dialect === 'sqlite' ? 3 : 5
        expect(await hits(ws, { query: 'otter', graph_expansion: { depth: cap } })).toHaveLength(1)
        const over = await api().call('POST', `/workspaces/${ws}/recall`, { query: 'otter', graph_expansion: { depth: cap + 1 } })
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

    test('memory#75 lookup keeps order, skips missing, filters; include_cells adds scored Cells', async () => {
      const ws = await api().workspace()
      const foreign = await api().imprint(await api().workspace(), 'elsewhere')
      const a = await api().imprint(ws, 'first', { tags: { keep: 'yes' } })
      const b = await api().imprint(ws, `${'second '.repeat(300)}\n\n${'third '.repeat(300)}`, { tags: { keep: 'yes' } })
      const c = await api().imprint(ws, '')
      const absent = 'mem_00000000000000000000000000'
      const memory_ids = [c, b, absent, a, foreign, b]
      expect((await hits(ws, { mode: 'lookup', memory_ids })).map(({ memory_id, text, score }) => [memory_id, text.length, score])).toEqual([
        [c, 0, 0],
        [b, 7 * 300 + 2 + 6 * 300, 0],
        [a, 5, 0],
      ])
      expect(await ids(ws, { mode: 'lookup', query: '', memory_ids, filters: { tags: { keep: 'yes' } } })).toEqual([b, a])

      const long = await api().imprint(
        ws,
        Array.from({ length: 14 }, (_, i) => `${'otter '.repeat(i + 1)} ${'filler '.repeat(250)}`).join('\n\n'),
      )
      const stored = (await api().call('GET', `/workspaces/${ws}/memories/${long}`)).body.cells
      for (const mode of MODES) {
        const [hit] = await hits(ws, { query: 'otter', mode, include_cells: true })
        const cells = hit?.cells ?? []
        expect(hit?.memory_id).toBe(long)
        expect(cells).toHaveLength(10)
        expect(cells.map((cell) => cell.score)).toEqual(cells.map((cell) => cell.score).toSorted((x, y) => y - x))
        for (const { cell_id, seq, text } of cells) expect(stored[seq]).toMatchObject({ cell_id, text })
        expect(cells[0]?.cell_id).toBe(hit?.cell_id)
      }
      expect((await hits(ws, { query: 'otter' }))[0]).not.toHaveProperty('cells')
    })

    test('memory#76 pin: defaults hybrid, 10; bad mode 400; list; DELETE 204, then 404', async () => {
      const ws = await api().workspace()
      const pins = `/workspaces/${ws}/recall/pins`
      const create = (body: object, agent: string | null = null): Promise<Reply> => api().call('POST', pins, body, { agent })
      const plain = await create({ query: 'otters' })
      expect(plain).toMatchObject({ status: 201, body: { pin_id: expect.stringMatching(/^pin_[0-9A-Z]{26}$/) } })
      expect(plain.body).toEqual({ pin_id: expect.any(String), watermark: expect.stringMatching(/^wmk_[0-9A-Z]{26}$/) })
      const full = await create({ query: 'Otter', mode: 'lookup', k: 100, watermark: ' any thing ', label: 'L' }, 'agent_pins')
      expect(full.body.watermark).toBe(' any thing ')
      const { body } = await api().call('GET', pins)
      expect(body).toEqual({
        pins: [
          {
            pin_id: full.body.pin_id,
            workspace_id: ws,
            query: 'Otter',
            mode: 'lookup',
            k: 100,
            watermark: ' any thing ',
            label: 'L',
            created_by: 'agent_pins',
            created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
          },
          {
            pin_id: plain.body.pin_id,
            workspace_id: ws,
            query: 'otters',
            mode: 'hybrid',
            k: 10,
            watermark: plain.body.watermark,
            created_at: expect.any(String),
          },
        ],
      })
      const bad: [body: object, field: string][] = [
        [{}, 'query'],
        [{ query: '' }, 'query'],
        [{ query: 'x', mode: 'fuzzy' }, 'mode'],
        [{ query: 'x', k: 0 }, 'k'],
        [{ query: 'x', k: 101 }, 'k'],
        [{ query: 'x', k: 2.5 }, 'k'],
        [{ query: 'x', label: 'l'.repeat(201) }, 'label'],
        [{ query: 'x', watermark: 5 }, 'watermark'],
        [{ query: 'x', filters: {} }, 'filters'],
      ]
      for (const [request, field] of bad) {
        expect(await create(request)).toMatchObject({ status: 400, body: { error_code: 'invalid_input', details: { field } } })
      }
      const page = (await api().call('GET', `${pins}?limit=1`)).body
      expect(page.pins).toHaveLength(1)
      const rest = (await api().call('GET', `${pins}?limit=1&cursor=${page.next_cursor}`)).body
      expect(rest).toEqual({ pins: [body.pins[1]] })
      const pin = `${pins}/${plain.body.pin_id}`
      expect(await api().call('DELETE', pin, undefined, { agent: null })).toMatchObject({ status: 204, body: undefined })
      expect(await api().call('DELETE', pin)).toMatchObject({
        status: 404,
        body: { error_code: 'not_found', details: { resource: 'pin', id: plain.body.pin_id } },
      })
      expect((await api().call('GET', pins)).body.pins).toHaveLength(1)
    })
  },
  { file, env: { OPENAI_BASE_URL: provider.url } },
)

/** Score descending, then memory_id ascending. */
const isOrdered = (results: readonly RecallHit[]): boolean =>
  results.every((hit, i) => {
    const next = results[i + 1]
    return !next || hit.score > next.score || (hit.score === next.score && hit.memory_id < next.memory_id)
  })

/** Min-max; all equal → 1. */
function normalized(scores: readonly (readonly [id: string, score: number])[]): Map<string, number> {
  const values = scores.map(([, score]) => score)
  const lowest = Math.min(...values)
  const range = Math.max(...values) - lowest
  return new Map(scores.map(([id, score]) => [id, range > 0 ? (score - lowest) / range : 1]))
}

