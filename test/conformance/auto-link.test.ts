import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openDatabase } from '../../src/database/open.ts'
import type { Edge } from '../../src/memory/model.ts'
import { startEmbeddingProvider } from '../support/embedding-provider.ts'
import { adjustableClock, describeOnBoth, type MemoryApi, type Reply } from '../support/memory-api.ts'
import { anId, aTime, expectNoEntry, expectOk, ledgerOf } from '../support/expectations.ts'

const clock = adjustableClock()
const provider = await startEmbeddingProvider()
afterAll(() => provider.stop())

/** A search of auto-link has 100 ms, which a machine that stands still for a moment takes: here it has time. */
beforeAll(() => {
  const timeout = AbortSignal.timeout.bind(AbortSignal)
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => timeout(ms === 100 ? 20_000 : ms))
})
afterAll(() => vi.restoreAllMocks())

/** Bags of words of 64 values: equal texts have the cosine 1. */
const MODEL = 'openai:bag-64'

/** What the tests do with a server under test. */
function within(api: () => MemoryApi) {
  const workspace = (fields: object = {}): Promise<string> =>
    api().workspace({ auto_link_enabled: true, auto_link_threshold: 0.9, embedding_model: MODEL, ...fields })
  const warm = async (ws: string) => expectOk(await api().call('POST', `/workspaces/${ws}/recall`, { query: 'warm' }))
  const imprint = async (ws: string, content: string, fields: object = {}): Promise<Reply['body']> => {
    return expectOk(await api().call('POST', `/workspaces/${ws}/memories`, { content, ...fields }), 201)
  }
  const edgesOf = async (ws: string, id: string, direction = 'out'): Promise<Edge[]> =>
    expectOk(
      await api().call('GET', `/workspaces/${ws}/memories/${id}/edges?type=vector_neighbor&direction=${direction}`),
    ).edges
  const ready = async (ws: string, id: string): Promise<void> => {
    await expect
      .poll(async () => expectOk(await api().call('GET', `/workspaces/${ws}/memories/${id}`)).recall_ready)
      .toBe(true)
  }
  return { workspace, warm, imprint, edgesOf, ready }
}

describeOnBoth(
  'auto-link',
  (api) => {
    const { workspace, imprint, edgesOf } = within(api)

    test('memory#94 off by default; on: Edges new → old above threshold by agent_system_auto_link', async () => {
      const off = await api().workspace({ embedding_model: MODEL })
      await imprint(off, 'an otter sleeps')
      expect(await imprint(off, 'an otter sleeps')).not.toHaveProperty('auto_linked_edges')
      expect(await ledgerOf(api(), off, 'op=graph_link')).toEqual([])

      const ws = await workspace()
      const far = await imprint(ws, 'bread and butter for breakfast')
      expect(far).not.toHaveProperty('auto_linked_edges')
      const near = await imprint(ws, 'an otter sleeps')
      const made = await imprint(ws, 'an otter sleeps')
      expect(made.auto_linked_edges).toBe(1)
      const [edge, ...rest] = await edgesOf(ws, made.memory_id)
      expect(rest).toEqual([])
      expect(edge).toMatchObject({
        source_memory_id: made.memory_id,
        target_memory_id: near.memory_id,
        edge_type: 'vector_neighbor',
        created_by_agent_id: 'agent_system_auto_link',
      })
      expect(await edgesOf(ws, far.memory_id, 'both')).toEqual([])
      const stats = await api().call('GET', `/workspaces/${ws}/graph/stats`)
      expect(expectOk(stats).edge_count_by_type).toEqual({ vector_neighbor: 1 })
      expect((await ledgerOf(api(), ws, `memory_id=${made.memory_id}&op=imprint`))[0]?.metadata).toMatchObject({
        auto_link_edges: 1,
      })
      expect((await ledgerOf(api(), ws, `memory_id=${far.memory_id}&op=imprint`))[0]?.metadata).not.toHaveProperty(
        'auto_link_edges',
      )

      const strict = await workspace({ auto_link_threshold: 7 })
      await imprint(strict, 'an otter sleeps here')
      expect(await imprint(strict, 'an otter sleeps there')).not.toHaveProperty('auto_linked_edges')
    })

    test('memory#95 one per target, ≤ auto_link_max_edges, full properties, graph_link entries', async () => {
      const ws = await workspace({ auto_link_max_edges: 3, chunker_id: 'jsonl' })
      const line = '"an otter sleeps"'
      const targets: string[] = []
      for (let i = 0; i < 5; i++) targets.push((await imprint(ws, `${line}\n${line}`)).memory_id)
      const made = await imprint(ws, `${line}\n${line}\n"something else entirely"`)
      expect(made).toMatchObject({ cells_created: 3, auto_linked_edges: 3 })
      const edges = await edgesOf(ws, made.memory_id)
      expect(edges).toHaveLength(3)
      const linked = edges.map((edge) => edge.target_memory_id)
      expect(new Set(linked).size).toBe(3)
      for (const id of linked) expect(targets).toContain(id)

      const cellsOf = async (id: string): Promise<string[]> =>
        expectOk(await api().call('GET', `/workspaces/${ws}/memories/${id}`)).cells.map(
          (cell: { cell_id: string }) => cell.cell_id,
        )
      const newCells = await cellsOf(made.memory_id)
      const entries = await ledgerOf(api(), ws, `memory_id=${made.memory_id}&op=graph_link`)
      expect(entries).toHaveLength(3)
      for (const edge of edges) {
        const { via_cell_pair, ...properties } = edge.properties_json ?? {}
        expect(properties).toEqual({
          auto_source: 'vector_neighbor',
          cosine_score: expect.closeTo(1, 5),
          embedding_model: MODEL,
        })
        const [newCell, oldCell] = via_cell_pair as string[]
        expect(newCells).toContain(newCell)
        expect(await cellsOf(edge.target_memory_id)).toContain(oldCell)
        expect(edge).toMatchObject({ edge_id: anId('edg'), created_at: aTime, watermark: anId('wmk') })
        const entry = entries.find((candidate) => candidate.metadata?.['edge_id'] === edge.edge_id)
        expect(entry).toMatchObject({ agent_id: 'agent_system_auto_link', target: made.memory_id })
        expect(entry?.metadata).toEqual({
          trigger: 'auto_link',
          edge_id: edge.edge_id,
          edge_type: 'vector_neighbor',
          source_memory_id: made.memory_id,
          target_memory_id: edge.target_memory_id,
          cosine_score: properties['cosine_score'],
          via_cell_pair,
          embedding_model: MODEL,
        })
        expect(await ledgerOf(api(), ws, `edge_id=${edge.edge_id}`)).toEqual([entry])
      }
      const best = await workspace({ auto_link_max_edges: 1, auto_link_threshold: 0.1 })
      await imprint(best, 'an otter sleeps in the reeds by day')
      const equal = await imprint(best, 'an otter sleeps')
      await imprint(best, 'an otter eats')
      const last = await imprint(best, 'an otter sleeps')
      expect(await edgesOf(best, last.memory_id)).toMatchObject([{ target_memory_id: equal.memory_id }])
    })

    test('memory#96 auto_link: false stops it; true does not enable it', async () => {
      const ws = await workspace()
      await imprint(ws, 'an otter')
      const stopped = await imprint(ws, 'an otter', { auto_link: false })
      expect(stopped).not.toHaveProperty('auto_linked_edges')
      expect((await imprint(ws, 'an otter', { auto_link: true })).auto_linked_edges).toBe(2)
      const off = await api().workspace({ embedding_model: MODEL })
      await imprint(off, 'an otter')
      expect(await imprint(off, 'an otter', { auto_link: true })).not.toHaveProperty('auto_linked_edges')
      expect(await edgesOf(ws, stopped.memory_id)).toEqual([])
      expect(await ledgerOf(api(), off, 'op=graph_link,auto_link_skipped')).toEqual([])
    })

    test('memory#97 daily incoming limit holds; vector failure: auto_link_skipped, imprint 201', async () => {
      const ws = await workspace({ auto_link_max_incoming_per_day: 2, auto_link_max_edges: 1 })
      const target = await imprint(ws, 'an otter')
      const links = async (): Promise<number> => (await imprint(ws, 'an otter'))['auto_linked_edges'] ?? 0
      // Equal scores are sorted by id, so the oldest is always the one that is tried.
      expect([await links(), await links(), await links()]).toEqual([1, 1, 0])
      expect(await edgesOf(ws, target.memory_id, 'in')).toHaveLength(2)
      clock.advance(25 * 3600 * 1000)
      expect([await links(), await links(), await links()]).toEqual([1, 1, 0])
      const incoming = await edgesOf(ws, target.memory_id, 'in')
      expect(incoming).toHaveLength(4)
      expectOk(await api().call('DELETE', `/workspaces/${ws}/memories/${incoming[0]?.source_memory_id}`))
      expect([await links(), await links()]).toEqual([1, 0])
      expect(await ledgerOf(api(), ws, 'op=auto_link_skipped')).toEqual([])

      const none = await workspace({ auto_link_max_incoming_per_day: 0 })
      await imprint(none, 'an otter')
      expect(await imprint(none, 'an otter')).not.toHaveProperty('auto_linked_edges')

      const broken = await workspace()
      await api().imprint(broken, 'an otter')
      const database = openDatabase(api().address)
      await database.run(
        'UPDATE cell_vector SET vector = $2 WHERE cell_no IN (SELECT cell_no FROM cell WHERE workspace_id = $1)',
        [broken, Uint8Array.of(1, 2, 3)],
      )
      await database.close()
      const made = await api().call('POST', `/workspaces/${broken}/memories`, { content: 'an otter' })
      expect(expectOk(made, 201)).toMatchObject({ recall_ready: true })
      expect(made.body).not.toHaveProperty('auto_linked_edges')
      const skipped = await ledgerOf(api(), broken, 'op=auto_link_skipped,graph_link')
      expect(skipped).toMatchObject([{ target: made.body.memory_id, metadata: { reason: 'vector_error' } }])
    })
  },
  {
    clock,
    env: { OPENAI_BASE_URL: provider.url, OPENAI_API_KEY: 'unused' },
  },
)

describeOnBoth(
  'auto-link of Memories that are embedded later',
  (api) => {
    const { workspace, warm, imprint, edgesOf, ready } = within(api)

    test('memory#98 queue-embedded Memory is linked when ready; update never relinks', async () => {
      const ws = await workspace()
      const old = await imprint(ws, 'an otter')
      await ready(ws, old.memory_id)
      await warm(ws)
      provider.behave = () => 'hangs'
      const path = `/workspaces/${ws}/memories`
      const made = expectOk(await api().call('POST', path, { content: 'an otter' }), 201)
      expect(made.recall_ready).toBe(false)
      expect(made).not.toHaveProperty('auto_linked_edges')
      expect(await edgesOf(ws, made.memory_id)).toEqual([])
      provider.recover()
      await ready(ws, made.memory_id)
      await expect
        .poll(() => edgesOf(ws, made.memory_id))
        .toMatchObject([{ target_memory_id: old.memory_id, created_by_agent_id: 'agent_system_auto_link' }])
      expect(await ledgerOf(api(), ws, 'op=graph_link')).toMatchObject([{ target: made.memory_id }])

      const lonely = await imprint(ws, 'bread and butter')
      await ready(ws, lonely.memory_id)
      const M = `${path}/${lonely.memory_id}`
      const update = await api().call('PUT', M, { content: 'an otter', expected_watermark: lonely.watermark })
      expectOk(update)
      expectOk(await api().call('POST', `${M}:append`, { content: ' an otter' }))
      const patch = [{ old_string: 'an otter an', new_string: 'an' }]
      const head = expectOk(await api().call('GET', M)).head_watermark
      expectOk(await api().call('PATCH', M, { patch, expected_watermark: head }))
      await ready(ws, lonely.memory_id)
      await expectNoEntry(api(), ws, () => warm(ws))
      expect(await edgesOf(ws, lonely.memory_id, 'both')).toEqual([])
    })
  },
  {
    env: { OPENAI_BASE_URL: provider.url, OPENAI_API_KEY: 'unused' },
    file: 'embedding: {inline_timeout: 0.3, timeout: 5s}',
  },
)

describeOnBoth(
  'auto-link at the limit',
  (api) => {
    test('memory#98 auto-link stops silently at limits.out_edges, client Edges counted', async () => {
      const ws = await api().workspace({ auto_link_enabled: true, embedding_model: MODEL })
      const ids = [await api().imprint(ws, 'an otter'), await api().imprint(ws, 'bread and butter')]
      expectOk(await api().call('POST', `/workspaces/${ws}/recall`, { query: 'warm' }))
      provider.behave = () => 'hangs'
      const made = await api().imprint(ws, 'an otter')
      const path = `/workspaces/${ws}/memories/${made}`
      expectOk(await api().call('POST', `${path}/edges`, { target_memory_id: ids[1], edge_type: 'references' }), 201)
      provider.recover()
      await expect.poll(async () => expectOk(await api().call('GET', path)).recall_ready).toBe(true)
      const linked = await api().imprint(ws, 'an otter')
      expect(expectOk(await api().call('GET', `/workspaces/${ws}/memories/${linked}/edges`)).edges).toHaveLength(1)
      expect(expectOk(await api().call('GET', `${path}/edges?direction=out`)).edges).toMatchObject([
        { edge_type: 'references' },
      ])
      expect(await ledgerOf(api(), ws, `op=auto_link_skipped,graph_link&memory_id=${made}`)).toEqual([])
    })
  },
  {
    env: { OPENAI_BASE_URL: provider.url, OPENAI_API_KEY: 'unused' },
    file: 'limits: {out_edges: 1}\nembedding: {inline_timeout: 0.3, timeout: 5s}',
  },
)
