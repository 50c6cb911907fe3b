import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { openDatabase } from '../../src/database/open.ts'
import type { LedgerEntry, MemoryWithCells, RecallAnswer } from '../../src/memory/model.ts'
import { fromBytes } from '../../src/memory/store/vector/bytes.ts'
import { startEmbeddingProvider } from '../support/embedding-provider.ts'
import { describeOnBoth, startMemoryApi, type Reply } from '../support/memory-api.ts'
import { createPostgresDatabase, hasPostgres } from '../support/postgres.ts'
import { startServer } from '../support/server.ts'

const provider = await startEmbeddingProvider()
afterAll(() => provider.stop())
beforeEach(() => provider.recover())

const localDir = mkdtempSync(join(tmpdir(), 'mem-test-models-'))
mkdirSync(join(localDir, 'mini'))
afterAll(() => rmSync(localDir, { recursive: true, force: true }))

const file = 'embedding: {inline_timeout: 0.3, timeout: 5s, batch_size: 8}'

describeOnBoth(
  'embedding',
  (api) => {
    const imprint = (ws: string, content: string, fields: object = {}): Promise<Reply> =>
      api().call('POST', `/workspaces/${ws}/memories`, { content, ...fields })
    const lookup = async (ws: string, id: string): Promise<MemoryWithCells> =>
      (await api().call('GET', `/workspaces/${ws}/memories/${id}`)).body
    const recall = async (ws: string, request: object): Promise<RecallAnswer> =>
      (await api().call('POST', `/workspaces/${ws}/recall`, request)).body
    const ids = async (ws: string, request: object): Promise<string[]> =>
      (await recall(ws, request)).results.map((hit) => hit.memory_id)
    const failures = async (ws: string): Promise<LedgerEntry[]> =>
      (await api().call('GET', `/workspaces/${ws}/ledger?op=embed_failed`)).body.entries
    /** Looks below the API, on a connection of its own. */
    const sql = async <T>(statement: string, params: (string | number)[] = []): Promise<T[]> => {
      const database = openDatabase(api().address)
      try {
        if (statement.startsWith('SELECT')) return await database.all<T>(statement, params)
        await database.run(statement, params)
        return []
      } finally {
        await database.close()
      }
    }
    const job = async (id: string): Promise<{ attempts: number; next_at: number } | undefined> =>
      (await sql<{ attempts: number; next_at: number }>('SELECT * FROM embed_job WHERE memory_id = $1', [id]))[0]
    /** Waits for the n-th failure and gives the delay until the next try in seconds. */
    const delayAfter = async (id: string, failed: number): Promise<number> => {
      await expect.poll(async () => (await job(id))?.attempts).toBe(failed)
      return Math.round((((await job(id))?.next_at ?? 0) - Date.now()) / 1000)
    }
    /** Makes the jobs due now; a write wakes the queue. */
    const hurry = async (id: string): Promise<void> => {
      await sql('UPDATE embed_job SET next_at = 0 WHERE memory_id = $1', [id])
      await imprint(await api().workspace(), '')
    }

    test('memory#88 hash:default: 1024 values, unit length, nothing for text without features', async () => {
      const ws = await api().workspace()
      const made = (await imprint(ws, 'The keeper bakes rye bread.\n')).body
      const empty = (await imprint(ws, '!!! --- ???')).body
      expect(made).toMatchObject({ recall_ready: true, cells_created: 1 })
      const vectors = await sql<{ memory_id: string; model: string; vector: Buffer }>(
        'SELECT memory_id, model, vector FROM cell_vector JOIN cell USING (cell_no) WHERE workspace_id = $1 ORDER BY cell_no',
        [ws],
      )
      expect(vectors.map(({ memory_id, model }) => [memory_id, model])).toEqual([
        [made.memory_id, 'hash:default'],
        [empty.memory_id, 'hash:default'],
      ])
      const [full, zero] = vectors.map(({ vector }) => fromBytes(vector))
      expect([full?.length, zero?.length]).toEqual([1024, 1024])
      expect(Math.hypot(...(full ?? []))).toBeCloseTo(1, 6)
      expect(zero?.every((value) => value === 0)).toBe(true)
      expect(await ids(ws, { query: 'rye bread', mode: 'vector' })).toEqual([made.memory_id])
      expect(await ids(ws, { query: '?!', mode: 'vector' })).toEqual([])
    })

    test('changed Cells go in batches, equal texts once; a write waits no longer than inline_timeout', async () => {
      const model = `batch-${api().dialect}-16`
      const ws = await api().workspace({ embedding_model: `openai:${model}`, chunker_id: 'csv' })
      const rows = Array.from({ length: 20 }, (_, i) => `row ${i}`)
      const asked = (): number[] =>
        provider.requests.filter((request) => request.model === model).map(({ texts }) => texts.length)
      const made = await imprint(ws, ['h', ...rows, ...rows].join('\n'))
      expect(made).toMatchObject({ status: 201, body: { cells_created: 40, recall_ready: true } })
      expect(asked()).toEqual([8, 8, 4])
      const changed = ['h', ...rows, 'row 20', ...rows.slice(1)].join('\n')
      const path = `/workspaces/${ws}/memories/${made.body.memory_id}`
      await api().call('PUT', path, { content: changed, expected_watermark: made.body.watermark })
      expect(asked()).toEqual([8, 8, 4, 1])

      provider.behave = () => 'hangs'
      const waited = await imprint(ws, 'h\nslow')
      expect(waited).toMatchObject({ status: 201, body: { cells_created: 1, recall_ready: false } })
      const { cells } = await lookup(ws, waited.body.memory_id)
      expect(cells[0]).not.toHaveProperty('vector_key')
      expect(cells[0]).not.toHaveProperty('embedding_model')
    })

    test('memory#89 provider fails twice, then works: recall_ready turns true unasked', async () => {
      const ws = await api().workspace({ embedding_model: 'openai:twice-16' })
      let refusals = 2
      provider.behave = (_, model) => (model === 'twice-16' && refusals-- > 0 ? 'fails' : 'works')
      const { status, body } = await imprint(ws, 'The otter waits for a vector.')
      expect({ status, body }).toMatchObject({ status: 201, body: { recall_ready: false } })
      expect(await delayAfter(body.memory_id, 1)).toBe(2)
      expect(await ids(ws, { query: 'otter', mode: 'keyword' })).toEqual([body.memory_id])
      expect(await ids(ws, { query: 'otter', mode: 'vector' })).toEqual([])
      refusals = 1
      await hurry(body.memory_id)
      expect(await delayAfter(body.memory_id, 2)).toBe(4)
      await hurry(body.memory_id)
      await expect.poll(async () => (await lookup(ws, body.memory_id)).recall_ready).toBe(true)
      const { cells, head_watermark, updated_at, created_at } = await lookup(ws, body.memory_id)
      expect(cells).toMatchObject([{ embedding_model: 'openai:twice-16', vector_key: cells[0]?.cell_id }])
      expect([head_watermark, updated_at]).toEqual([body.watermark, created_at])
      expect(await recall(ws, { query: 'otter', mode: 'vector' })).toMatchObject({
        results: [{ memory_id: body.memory_id }],
        embedding_pending: false,
      })
      expect(await job(body.memory_id)).toBeUndefined()
      expect(await failures(ws)).toEqual([])
    })

    test('memory#90 three failures: one embed_failed per Cell; later recovery completes', async () => {
      const ws = await api().workspace({ embedding_model: 'openai:never-16', chunker_id: 'jsonl' })
      provider.behave = (_, model) => (model === 'never-16' ? 'fails' : 'works')
      const { body } = await imprint(ws, '"one"\n"two"\n"three"')
      const { cells } = await lookup(ws, body.memory_id)
      expect(await delayAfter(body.memory_id, 1)).toBe(2)
      await hurry(body.memory_id)
      expect(await delayAfter(body.memory_id, 2)).toBe(4)
      expect(await failures(ws)).toEqual([])
      await hurry(body.memory_id)
      expect(await delayAfter(body.memory_id, 3)).toBe(8)
      await expect.poll(async () => (await failures(ws)).length).toBe(3)
      const told = await failures(ws)
      expect(new Set(told.map(({ metadata }) => metadata?.['cell_id']))).toEqual(
        new Set(cells.map((cell) => cell.cell_id)),
      )
      for (const entry of told) {
        expect(entry).toMatchObject({
          op: 'embed_failed',
          agent_id: 'agent_system',
          target: body.memory_id,
          metadata: { attempts: 3, error: expect.stringContaining('503') },
        })
      }
      await hurry(body.memory_id)
      expect(await delayAfter(body.memory_id, 4)).toBe(16)
      await sql('UPDATE embed_job SET attempts = 30 WHERE memory_id = $1', [body.memory_id])
      await hurry(body.memory_id)
      expect(await delayAfter(body.memory_id, 31)).toBe(15 * 60)
      expect(await failures(ws)).toHaveLength(3)
      provider.recover()
      await hurry(body.memory_id)
      await expect.poll(async () => (await lookup(ws, body.memory_id)).recall_ready).toBe(true)
      expect(await failures(ws)).toHaveLength(3)
      expect(await ids(ws, { query: 'two', mode: 'vector' })).toEqual([body.memory_id])
    })

    test('a job ends with its Cell', async () => {
      const ws = await api().workspace({ embedding_model: 'openai:gone-16' })
      provider.behave = (_, model) => (model === 'gone-16' ? 'fails' : 'works')
      const [edited, forgotten] = [(await imprint(ws, 'first text')).body, (await imprint(ws, 'other text')).body]
      expect(await delayAfter(edited.memory_id, 1)).toBe(2)
      await api().call('DELETE', `/workspaces/${ws}/memories/${forgotten.memory_id}`)
      expect(await job(forgotten.memory_id)).toBeUndefined()
      provider.recover()
      const path = `/workspaces/${ws}/memories/${edited.memory_id}`
      await api().call('PUT', path, { content: 'second text', expected_watermark: edited.watermark })
      expect(await lookup(ws, edited.memory_id)).toMatchObject({ recall_ready: true })
      expect(await job(edited.memory_id)).toBeUndefined()
      const left = await sql<{ n: number }>('SELECT count(*) AS n FROM embed_job WHERE workspace_id = $1', [ws])
      expect(Number(left[0]?.n)).toBe(0)
    })

    test('memory#92 two workspaces of different dimension both recall right; model change: recall_ready false', async () => {
      const small = await api().workspace({ embedding_model: 'openai:bag-16' })
      const large = await api().workspace({ embedding_model: 'openai:bag-64' })
      const texts = ['otters in the river', 'bread and salt', 'fog over the harbour']
      for (const ws of [small, large]) {
        const made = await Promise.all(texts.map(async (text) => (await imprint(ws, text)).body.memory_id))
        for (const [i, text] of texts.entries()) {
          for (const mode of ['vector', 'hybrid']) {
            const [hit] = (await recall(ws, { query: text, mode })).results
            expect(hit).toMatchObject({ memory_id: made[i], text })
            expect(hit?.vector_score).toBeCloseTo(1, 5)
          }
        }
      }

      const old = (await imprint(small, 'an otter of old')).body.memory_id
      const changed = await api().call('PUT', `/workspaces/${small}`, {
        name: 'changed',
        embedding_model: 'openai:bag-64',
      })
      expect(changed.body.embedding_model).toBe('openai:bag-64')
      expect(await lookup(small, old)).toMatchObject({ recall_ready: false })
      const { memories } = (await api().call('GET', `/workspaces/${small}/memories`)).body
      expect(memories.map(({ recall_ready }: MemoryWithCells) => recall_ready)).toEqual([false, false, false, false])
      expect(await recall(small, { query: 'otter of old', mode: 'vector' })).toMatchObject({
        results: [],
        embedding_pending: true,
      })
      expect(await ids(small, { query: 'otter of old', mode: 'keyword' })).toContain(old)
      expect((await recall(small, { query: 'otter of old' })).results[0]).toMatchObject({ memory_id: old })
      const fresh = (await imprint(small, 'an otter of today')).body
      expect(fresh.recall_ready).toBe(true)
      expect(await ids(small, { query: 'otter', mode: 'vector' })).toEqual([fresh.memory_id])

      // Back to the old model: its vectors are still there, those of the other are not of it.
      await api().call('PUT', `/workspaces/${small}`, { name: 'back', embedding_model: 'openai:bag-16' })
      expect([(await lookup(small, old)).recall_ready, (await lookup(small, fresh.memory_id)).recall_ready]).toEqual([
        true,
        false,
      ])
      expect((await ids(small, { query: 'an otter of old', mode: 'vector' }))[0]).toBe(old)
    })

    test('memory#93 local: path escaping its root: 400', async () => {
      const ws = await api().workspace()
      for (const embedding_model of [
        'local:../other',
        'local:mini/../../x',
        'local:/etc',
        'local:..',
        `local:${localDir}-evil`,
        'local:',
      ]) {
        for (const [method, path] of [
          ['POST', '/workspaces'],
          ['PUT', `/workspaces/${ws}`],
        ] as const) {
          expect(await api().call(method, path, { name: 'x', embedding_model })).toMatchObject({
            status: 400,
            body: { error_code: 'invalid_input', details: { field: 'embedding_model' } },
          })
        }
      }
      const inside = await api().workspace({ embedding_model: 'local:mini' })
      expect(await imprint(inside, 'x')).toMatchObject({ status: 201, body: { recall_ready: false } })
      expect(await recall(inside, { query: 'x' })).toMatchObject({
        results: [{ text: 'x' }],
        warnings: ['vector_unavailable'],
      })
    })
  },
  { file, env: { OPENAI_BASE_URL: provider.url, MEM_MODEL_DIR: localDir } },
)

describe.each(['sqlite', 'postgres'] as const)('memory#91 [%s]', (dialect) => {
  test.skipIf(dialect === 'postgres' && !hasPostgres)(
    'memory#91 kill with pending jobs: restart finishes them',
    async () => {
      const directory = mkdtempSync(join(tmpdir(), 'mem-test-kill-'))
      const database = dialect === 'postgres' ? await createPostgresDatabase() : undefined
      const drivers = ['METADATA', 'VECTOR', 'GRAPH', 'LEDGER'].map((seam) => [`MEM_${seam}_DRIVER`, dialect])
      const env = {
        OPENAI_BASE_URL: provider.url,
        MEM_EMBEDDING_MODEL: 'openai:kill-16',
        ...(database && { ...Object.fromEntries(drivers), MEM_METADATA_DSN: database.url }),
      }
      writeFileSync(join(directory, 'mem.yaml'), 'embedding: {inline_timeout: 0}')
      provider.behave = () => 'fails'
      const first = await startServer({ directory, env })
      const post = async (url: string, body: object): Promise<Record<string, string>> => {
        const headers = { 'Mem-Agent-Id': 'agent_test' }
        const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
        expect(response.status).toBeLessThan(300)
        return response.json() as Promise<Record<string, string>>
      }
      const ws = (await post(`${first.url}/v1/workspaces`, { name: 'x' }))['id']
      const texts = Array.from({ length: 30 }, (_, i) => `Otter number ${i}.`)
      const made = await Promise.all(
        texts.map(
          async (content) => (await post(`${first.url}/v1/workspaces/${ws}/memories`, { content }))['memory_id'],
        ),
      )
      await first.kill()
      provider.recover()
      const second = await startServer({ directory, env })
      const isReady = async (): Promise<boolean[]> => {
        const response = await fetch(`${second.url}/v1/workspaces/${ws}/memories?include_content=false`)
        const { memories } = (await response.json()) as { memories: MemoryWithCells[] }
        return [...new Set(memories.map(({ recall_ready }) => recall_ready))]
      }
      await expect.poll(isReady, { timeout: 40_000, interval: 50 }).toEqual([true])
      const found = await post(`${second.url}/v1/workspaces/${ws}/recall`, {
        query: texts[7] ?? '',
        mode: 'vector',
        k: 1,
      })
      expect(found).toMatchObject({ results: [{ memory_id: made[7] }], embedding_pending: false })
      await second.stop()
      rmSync(directory, { recursive: true, force: true })
      await database?.drop()
    },
  )
})

test('memory#92 a change of the server model leaves Memories to keyword search', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'mem-test-model-'))
  const before = await startMemoryApi({ dialect: 'sqlite', dataDir })
  const ws = await before.workspace()
  const own = await before.workspace({ embedding_model: 'hash:default' })
  const [id, kept] = [await before.imprint(ws, 'An otter.'), await before.imprint(own, 'An otter.')]
  await before.stop()
  const after = await startMemoryApi({ dialect: 'sqlite', dataDir, env: { MEM_EMBEDDING_MODEL: 'noop:default' } })
  const get = async (workspace: string, memory: string): Promise<unknown> =>
    (await after.call('GET', `/workspaces/${workspace}/memories/${memory}`)).body.recall_ready
  expect([await get(ws, id), await get(own, kept)]).toEqual([false, true])
  const ids = async (mode: string): Promise<string[]> => {
    const { body } = await after.call('POST', `/workspaces/${ws}/recall`, { query: 'otter', mode })
    return body.results.map(({ memory_id }: { memory_id: string }) => memory_id)
  }
  expect([await ids('vector'), await ids('keyword')]).toEqual([[], [id]])
  const fresh = await after.imprint(ws, 'An otter.')
  expect(await get(ws, fresh)).toBe(true)
  expect(await ids('vector')).toEqual([fresh])
  await after.stop()
  rmSync(dataDir, { recursive: true, force: true })
})
