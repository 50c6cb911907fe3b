import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/database/open.ts'
import type { RecallAnswer } from '../../src/memory/model.ts'
import { runCli } from '../cli/run-cli.ts'
import { startEmbeddingProvider } from '../support/embedding-provider.ts'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'
import { startPgvector, type PgvectorServer } from '../support/pgvector.ts'
import { createPostgresDatabase, hasPostgres } from '../support/postgres.ts'

const provider = await startEmbeddingProvider()
afterAll(() => provider.stop())

let server: PgvectorServer
beforeAll(async () => {
  server = await startPgvector()
})
afterAll(() => server.stop())
beforeEach(async () => {
  provider.recover()
  await server.clear()
})

const environment = (): Record<string, string> => ({
  MEM_VECTOR_DRIVER: 'pgvector',
  MEM_VECTOR_DSN: server.url,
  OPENAI_BASE_URL: provider.url,
})

async function start(options: Partial<Parameters<typeof startMemoryApi>[0]> = {}): Promise<MemoryApi> {
  const api = await startMemoryApi({
    dialect: 'sqlite',
    env: environment(),
    file: 'embedding: {inline_timeout: 0.3}',
    ...options,
  })
  onTestFinished(() => api.stop())
  return api
}

/** Looks below the API: models of the vectors in the extension, by Cell. */
async function models(): Promise<string[]> {
  const db = openDatabase({ dialect: 'postgres', dsn: server.url, synchronous: 'normal' })
  const rows = await db.all<{ model: string }>(
    'SELECT model FROM cell_embedding JOIN vector_space USING (space_no) ORDER BY cell_no, model',
  )
  await db.close()
  return rows.map((row) => row.model)
}

const isReady = async (api: MemoryApi, ws: string, id: string): Promise<boolean> =>
  (await api.call('GET', `/workspaces/${ws}/memories/${id}`)).body.recall_ready

async function imprintReady(api: MemoryApi, ws: string, content: string, fields: object = {}): Promise<string> {
  const id = await api.imprint(ws, content, { ...fields })
  await expect.poll(() => isReady(api, ws, id)).toBe(true)
  return id
}

const recall = async (api: MemoryApi, ws: string, request: object): Promise<RecallAnswer> =>
  (await api.call('POST', `/workspaces/${ws}/recall`, request)).body

const NOUNS = ['otter', 'harbour', 'lighthouse', 'rye bread', 'fog', 'keeper', 'lantern']
const TEXTS = Array.from(
  { length: 28 },
  (_, i) =>
    `Note ${i}: the ${NOUNS[i % 7]} near the ${NOUNS[(i * i + 3) % 7]}, ${i % 5} times.\n\nAnd ${NOUNS[i % 4]}.`,
)

describe.each(['openai:bag-64', 'hash:default'])('recall with pgvector, %s', (model) => {
  test('gives the hits that the index in memory gives, in every mode and with every filter', async () => {
    const answers = []
    for (const env of [{ OPENAI_BASE_URL: provider.url }, environment()]) {
      const api = await start({ env })
      const ws = await api.workspace({ embedding_model: model })
      const collection = (await api.call('POST', `/workspaces/${ws}/collections`, { name: 'rare' })).body.id
      for (const [i, text] of TEXTS.entries()) {
        const fields = { ...(i % 7 === 0 && { collection_id: collection }), tags: { parity: i % 2 ? 'odd' : 'even' } }
        const headers = { 'Mem-Agent-Id': `agent_${i % 3}` }
        await api.call('POST', `/workspaces/${ws}/memories`, { content: text, ...fields }, { headers })
      }
      await expect.poll(async () => (await recall(api, ws, { query: 'x' })).embedding_pending).toBe(false)
      const filters = [
        {},
        { collection_id: collection },
        { tags: { parity: 'odd' }, agent_id_not_in: ['agent_1'] },
        { agent_id_in: ['agent_0', 'agent_2'] },
        { ts_before: '2001-01-01' },
      ]
      for (const mode of ['keyword', 'vector', 'hybrid']) {
        for (const filter of filters) {
          for (const weights of mode === 'hybrid' ? [undefined, { vector: 1, keyword: 2 }] : [undefined]) {
            const query = {
              query: 'a lighthouse keeper in the fog',
              mode,
              filters: filter,
              weights,
              k: 3,
              include_cells: true,
            }
            const { results, total_candidates_scanned: scanned } = await recall(api, ws, query)
            answers.push({
              env,
              scanned,
              results: results.map(({ text, score, vector_score: v }) => ({ text, score, v })),
            })
          }
        }
      }
    }
    const [inMemory, inDatabase] = [answers.slice(0, answers.length / 2), answers.slice(answers.length / 2)]
    expect(inMemory.flatMap(({ results }) => results).length).toBeGreaterThan(30)
    for (const [i, { scanned, results }] of inMemory.entries()) {
      const there = inDatabase[i]
      expect(there?.scanned).toBe(scanned)
      expect(there?.results.map(({ text }) => text)).toEqual(results.map(({ text }) => text))
      for (const [rank, { score, v = 0 }] of results.entries()) {
        expect(there?.results[rank]?.score).toBeCloseTo(score, 1)
        expect(there?.results[rank]?.v ?? 0).toBeCloseTo(v, 2)
      }
    }
  })
})

describe.each([
  { place: 'beside SQLite', dialect: 'sqlite' as const },
  { place: 'in one database with everything', dialect: 'postgres' as const },
])('vectors in pgvector, $place', ({ dialect }) => {
  const begin = () => start({ dialect, postgresUrl: server.url })

  test('follow edits and forget', async () => {
    const api = await begin()
    const ws = await api.workspace({ embedding_model: 'openai:bag-64', chunker_id: 'jsonl' })
    const id = await imprintReady(api, ws, '"otters"\n"herons"\n"voles"')
    const other = await imprintReady(api, ws, '"lighthouse"')
    expect(await models()).toEqual(Array.from({ length: 4 }, () => 'openai:bag-64'))
    const head = (await api.call('GET', `/workspaces/${ws}/memories/${id}`)).body.head_watermark
    const path = `/workspaces/${ws}/memories/${id}`
    await api.call('PUT', path, { content: '"otters"\n"beavers"', expected_watermark: head })
    await expect.poll(() => isReady(api, ws, id)).toBe(true)
    expect(await models()).toHaveLength(3)
    const found = async (query: string) =>
      (await recall(api, ws, { query, mode: 'vector', k: 1 })).results.map((hit) => [hit.text, hit.vector_score])
    expect(await found('beavers')).toEqual([['"beavers"', expect.closeTo(1, 5)]])
    expect((await found('voles'))[0]?.[1]).toBeLessThan(0.99)
    await api.call('DELETE', path)
    expect(await models()).toHaveLength(1)
    expect((await recall(api, ws, { query: 'otters', mode: 'vector' })).results.map((hit) => hit.memory_id)).toEqual([
      other,
    ])
    await api.call('DELETE', `/workspaces/${ws}/memories/${other}`)
    expect((await api.call('DELETE', `/workspaces/${ws}`)).status).toBe(204)
    expect(await models()).toEqual([])
  })

  test('memory#92 follow a change of the model and its dimension after migrate embeddings, also by the queue', async () => {
    const api = await begin()
    const ws = await api.workspace({ embedding_model: 'openai:bag-64' })
    const id = await imprintReady(api, ws, 'an otter')
    provider.behave = () => 'fails'
    const late = await api.imprint(ws, 'a heron')
    expect(await isReady(api, ws, late)).toBe(false)
    await api.call('PUT', `/workspaces/${ws}`, { name: 'changed', embedding_model: 'openai:bag-3000' })
    expect((await recall(api, ws, { query: 'an otter', mode: 'vector' })).results).toEqual([])
    provider.recover()
    const stores = {
      ...environment(),
      ...(dialect === 'postgres' && {
        MEM_METADATA_DRIVER: 'postgres',
        MEM_METADATA_DSN: server.url,
        MEM_GRAPH_DRIVER: 'postgres',
        MEM_LEDGER_DRIVER: 'postgres',
      }),
    }
    const env = { HOME: api.dataDir, MEM_DATA_DIR: api.dataDir, ...stores }
    const { code, stderr } = await runCli(['migrate', 'embeddings', '-w', ws], { env })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    for (const memory of [id, late]) expect(await isReady(api, ws, memory)).toBe(true)
    expect(await models()).toEqual(['openai:bag-3000', 'openai:bag-3000'])
    const { results, embedding_pending } = await recall(api, ws, { query: 'a heron', mode: 'vector' })
    expect(results[0]).toMatchObject({ memory_id: late, vector_score: expect.closeTo(1, 5) })
    expect(embedding_pending).toBe(false)
  })
})

test('auto-link finds its neighbours in pgvector', async () => {
  const api = await start()
  const ws = await api.workspace({ embedding_model: 'openai:bag-64', auto_link_enabled: true })
  const old = await imprintReady(api, ws, 'the otter swims')
  const fresh = await imprintReady(api, ws, 'the otter swims home')
  const edges = async () => (await api.call('GET', `/workspaces/${ws}/memories/${fresh}/edges`)).body.edges
  await expect.poll(async () => (await edges()).length).toBe(1)
  expect((await edges())[0]).toMatchObject({ target_memory_id: old, edge_type: 'vector_neighbor' })
})

describe('a server that cannot serve pgvector stops the start', () => {
  test.skipIf(!hasPostgres)('without the extension, saying what to do', async () => {
    const { url, drop } = await createPostgresDatabase()
    onTestFinished(drop)
    const refused = startMemoryApi({ dialect: 'sqlite', env: { ...environment(), MEM_VECTOR_DSN: url } })
    await expect(refused).rejects.toMatchObject({
      name: 'ConfigError',
      message: expect.stringMatching(
        /storage\.vector_driver pgvector .*install it there.*storage\.vector_driver postgres/,
      ),
    })
  })

  test('memory#136 with a newer schema', async () => {
    await (await startMemoryApi({ dialect: 'sqlite', env: environment() })).stop()
    const db = openDatabase({ dialect: 'postgres', dsn: server.url, synchronous: 'normal' })
    await db.run(`UPDATE schema_migrations SET version = 99 WHERE service = 'memory-pgvector'`)
    await db.close()
    await expect(startMemoryApi({ dialect: 'sqlite', env: environment() })).rejects.toThrow(/version 99.*upgrade mem/)
  })
})
