import { afterAll, expect, test } from 'vitest'
import { startEmbeddingProvider } from '../support/embedding-provider.ts'
import { describeOnBoth } from '../support/memory-api.ts'
import { isOrdered, MODES, recaller } from '../support/recall.ts'

const provider = await startEmbeddingProvider()
afterAll(() => provider.stop())

describeOnBoth(
  'recall',
  (api) => {
    const { recall, hits, ids, refused } = recaller(api)

    test('memory#62 four modes: 200, default hybrid; other mode, blank query, lookup without ids: 400', async () => {
      const ws = await api().workspace()
      const id = await api().imprint(ws, 'The keeper of the lighthouse bakes rye bread.', { tags: { kind: 'note' } })
      const memory = (await api().call('GET', `/workspaces/${ws}/memories/${id}`)).body
      const vector = { vector_score: expect.any(Number) }
      const keyword = { keyword_score: expect.any(Number) }
      const scores = { keyword, vector, hybrid: { ...vector, ...keyword } }
      for (const mode of MODES) {
        const [hit] = await hits(ws, { query: 'rye bread', mode })
        expect(hit).toEqual({
          memory_id: id,
          cell_id: memory.cells[0].cell_id,
          score: expect.any(Number),
          ...scores[mode],
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
      expect(empty).toEqual({
        results: [],
        total_candidates_scanned: 0,
        latency_ms: expect.any(Number),
        embedding_pending: false,
      })

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
        const found = async (k?: number): Promise<number> =>
          new Set(await ids(ws, { query: 'harbour log', mode, k })).size
        expect(await Promise.all([found(), found(0), found(-7), found(1), found(100), found(1000)])).toEqual([
          5, 5, 5, 1, 100, 100,
        ])
      }
      for (const k of [1.5, '5', null, true]) await refused(ws, { query: 'harbour', k }, 'k')
    })

    test('memory#65 quotes, *, AND, -, brackets in the query: 200', async () => {
      const ws = await api().workspace()
      const id = await api().imprint(
        ws,
        'Harbour master, e-mail harbour@example.org, price 100% of C++ and NEAR enough.',
      )
      const marks = '" \' ` * - + ( ) [ ] { } ^ : \\ % _ ; | & ! ~ <-> @@ AND OR NOT NEAR( text: -- $1 ? /*'.split(' ')
      const nasty = [...marks, '\n', '\t', '\u200b', '\ufeff', '😀', '💥\u0301']
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
      const { status } = await api().call('POST', `/workspaces/${ws}/recall`, undefined, {
        raw: '{"query": "a\\u0000"}',
      })
      expect(status).toBe(400)
    })

    test('memory#66 many matching Cells: one hit, text = best Cell', async () => {
      const ws = await api().workspace()
      const paragraphs = Array.from(
        { length: 30 },
        (_, i) => `Part ${i}: an otter. ${'Plain filler goes on. '.repeat(80)}`,
      )
      paragraphs[17] = 'Otter, otter and otter: all about the otter family.' + ' Reeds, water, fish.'.repeat(90)
      const id = await api().imprint(ws, paragraphs.join('\n\n'))
      const { cells } = (await api().call('GET', `/workspaces/${ws}/memories/${id}`)).body
      expect(cells).toHaveLength(30)
      for (const mode of MODES) {
        const found = await hits(ws, { query: 'otter family', mode })
        expect(found).toMatchObject([{ memory_id: id, text: cells[17].text, cell_id: cells[17].cell_id }])
      }
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
      const texts = [
        'otter river',
        'otters in a long river',
        'a river of words',
        'the otter family swims',
        'bread',
        'rivers, fish',
      ]
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
      for (const weights of [
        { vector: 0.25, keyword: 3 },
        { vector: 1, keyword: 0 },
        { vector: 0, keyword: 2 },
        { keyword: 1 },
      ]) {
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
      for (const weights of [{ vector: 0, keyword: 0 }, {}])
        expect(await hits(ws, { query, weights, k: 100 })).toEqual(hybrid)
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
      expect((await api().call('PUT', memory, { content: 'A pangolin rolls.', expected_watermark: head })).status).toBe(
        200,
      )
      for (const mode of MODES) {
        const found = await hits(ws, { query: 'armadillo', mode, include_cells: true, k: 100 })
        expect(JSON.stringify(found)).not.toContain('armadillo')
        expect((await hits(ws, { query: 'pangolin', mode }))[0]).toMatchObject({
          memory_id: id,
          text: 'A pangolin rolls.',
        })
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
      const live = await Promise.all(
        Array.from({ length: 5 }, (_, i) => api().imprint(ws, `An otter, seen ${i} times.`)),
      )
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
      await expect.poll(isReady).toBe(true)
      expect((await recall(waiting, { query: 'walrus' })).embedding_pending).toBe(false)
    })

    test('memory#73 provider down: hybrid gives keyword hits + vector_unavailable; writes 201', async () => {
      const ws = await api().workspace({ embedding_model: 'openai:bag-32' })
      const before = await api().imprint(ws, 'The otter came early.')
      expect(await ids(ws, { query: 'otter', mode: 'vector' })).toEqual([before])
      for (const behaviour of ['fails', 'hangs'] as const) {
        provider.behave = () => behaviour
        const { status, body } = await api().call('POST', `/workspaces/${ws}/memories`, {
          content: `An otter ${behaviour}.`,
        })
        expect({ status, body }).toMatchObject({ status: 201, body: { recall_ready: false, cells_created: 1 } })
        const hybrid = await recall(ws, { query: 'otter' })
        expect(hybrid).toMatchObject({ warnings: ['vector_unavailable'], embedding_pending: true })
        const keyword = await ids(ws, { query: 'otter', mode: 'keyword' })
        expect(keyword).toContain(body.memory_id)
        expect(hybrid.results.map((hit) => hit.memory_id).sort()).toEqual(keyword.toSorted())
        expect(hybrid.results.every((hit) => hit.vector_score === undefined && hit.score >= 0 && hit.score <= 1)).toBe(
          true,
        )
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

    test('memory#75 lookup keeps order, skips missing, filters; include_cells adds scored Cells', async () => {
      const ws = await api().workspace()
      const foreign = await api().imprint(await api().workspace(), 'elsewhere')
      const a = await api().imprint(ws, 'first', { tags: { keep: 'yes' } })
      const b = await api().imprint(ws, `${'second '.repeat(300)}\n\n${'third '.repeat(300)}`, {
        tags: { keep: 'yes' },
      })
      const c = await api().imprint(ws, '')
      const absent = 'mem_00000000000000000000000000'
      const memory_ids = [c, b, absent, a, foreign, b]
      expect(
        (await hits(ws, { mode: 'lookup', memory_ids })).map(({ memory_id, text, score }) => [
          memory_id,
          text.length,
          score,
        ]),
      ).toEqual([
        [c, 0, 0],
        [b, 7 * 300 + 2 + 6 * 300, 0],
        [a, 5, 0],
      ])
      expect(await ids(ws, { mode: 'lookup', query: '', memory_ids, filters: { tags: { keep: 'yes' } } })).toEqual([
        b,
        a,
      ])

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
  },
  { file: 'embedding: {inline_timeout: 0.2, timeout: 5s}', env: { OPENAI_BASE_URL: provider.url } },
)

/** Min-max; all equal → 1. */
function normalized(scores: readonly (readonly [id: string, score: number])[]): Map<string, number> {
  const values = scores.map(([, score]) => score)
  const lowest = Math.min(...values)
  const range = Math.max(...values) - lowest
  return new Map(scores.map(([id, score]) => [id, range > 0 ? (score - lowest) / range : 1]))
}
