import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/database/open.ts'
import type { MigrationState } from '../../src/memory/migrate-embeddings.ts'
import type { MemoryWithCells, RecallAnswer } from '../../src/memory/model.ts'
import { runCli } from '../cli/run-cli.ts'
import { startEmbeddingProvider } from '../support/embedding-provider.ts'
import { describeOnBoth, startMemoryApi, type MemoryApi } from '../support/memory-api.ts'
import { spawnProgram } from '../support/program.ts'

const provider = await startEmbeddingProvider()
afterAll(() => provider.stop())
beforeEach(() => provider.recover())

const TEXTS = ['otters in the river', 'bread and salt', 'fog over the harbour']

/** Environment of a command that opens the server's stores beside it. */
const beside = ({ dialect, address, dataDir }: MemoryApi): Record<string, string> => ({
  HOME: dataDir,
  MEM_DATA_DIR: dataDir,
  OPENAI_BASE_URL: provider.url,
  ...(dialect === 'postgres' && {
    MEM_METADATA_DRIVER: 'postgres',
    MEM_METADATA_DSN: address.dsn,
    MEM_VECTOR_DRIVER: 'postgres',
    MEM_GRAPH_DRIVER: 'postgres',
    MEM_LEDGER_DRIVER: 'postgres',
  }),
})

async function migrate(api: MemoryApi, ws: string, ...flags: string[]) {
  const args = ['migrate', 'embeddings', '--workspace', ws, '--max-rate', '0', ...flags]
  const { code, stdout, stderr } = await runCli(args, { env: beside(api) })
  const states = stdout
    .split('\n')
    .filter(Boolean)
    .map((line): MigrationState => JSON.parse(line))
  return { code, states, last: states.at(-1), stderr }
}

const lookup = async (api: MemoryApi, ws: string, id: string): Promise<MemoryWithCells> =>
  (await api.call('GET', `/workspaces/${ws}/memories/${id}`)).body
const recall = async (api: MemoryApi, ws: string, query: string, mode: string): Promise<RecallAnswer> =>
  (await api.call('POST', `/workspaces/${ws}/recall`, { query, mode })).body
const changeModel = (api: MemoryApi, ws: string, model: string) =>
  api.call('PUT', `/workspaces/${ws}`, { name: 'changed', embedding_model: model })

/** A workspace whose Memories, in the order of `texts`, have vectors of another model than it now has. */
async function outdated(api: MemoryApi, texts = TEXTS, model = 'openai:bag-64') {
  const ws = await api.workspace({ embedding_model: 'noop:default' })
  const ids: string[] = []
  for (const text of texts) ids.push(await api.imprint(ws, text))
  await changeModel(api, ws, model)
  return { ws, ids }
}

/** Looks below the API: the models of the vectors of a workspace. */
async function models(api: MemoryApi, ws: string, address = api.address): Promise<Record<string, number>> {
  const [metadata, vector] = [openDatabase(api.address), openDatabase(address)]
  const cells = await metadata.all<{ cell_no: number }>('SELECT cell_no FROM cell WHERE workspace_id = $1', [ws])
  const known = new Set(cells.map((cell) => cell.cell_no))
  const rows = await vector.all<{ cell_no: number; model: string }>('SELECT cell_no, model FROM cell_vector')
  await metadata.close()
  await vector.close()
  const counts: Record<string, number> = {}
  for (const { cell_no: no, model } of rows) if (known.has(no)) counts[model] = (counts[model] ?? 0) + 1
  return counts
}

describeOnBoth(
  'migrate embeddings',
  (api) => {
    test('memory#92 migrate embeddings: recall_ready true, found by the running server in its next request', async () => {
      const { ws, ids } = await outdated(api())
      await api().imprint(ws, '   ')
      const edited = await api().imprint(ws, 'written by the new model')
      expect(await recall(api(), ws, 'otters', 'vector')).toMatchObject({ embedding_pending: true })

      const { code, states } = await migrate(api(), ws)
      expect({ code, states }).toEqual({
        code: 0,
        states: [{ event: 'complete', total: 5, migrated: 3, skipped: 2, errors: 0 }],
      })
      for (const [i, text] of TEXTS.entries()) {
        const { results, embedding_pending } = await recall(api(), ws, text, 'vector')
        expect(results[0]).toMatchObject({ memory_id: ids[i], text })
        expect(results[0]?.vector_score).toBeCloseTo(1, 5)
        expect(embedding_pending).toBe(false)
      }
      for (const id of [...ids, edited]) {
        const memory = await lookup(api(), ws, id)
        expect(memory.recall_ready).toBe(true)
        expect(memory.cells.map((cell) => cell.embedding_model)).toEqual(['openai:bag-64'])
      }
      expect(await models(api(), ws)).toEqual({ 'openai:bag-64': 4 })
      const { entries } = (await api().call('GET', `/workspaces/${ws}/ledger?op=migrate_embeddings`)).body
      expect(entries).toMatchObject([
        { target: ws, agent_id: 'agent_opaque_local', metadata: { total: 5, migrated: 3, errors: 0 } },
      ])
    })

    test('memory#92 a dry run writes nothing; a run that finds nothing to do leaves no entry', async () => {
      const { ws, ids } = await outdated(api())
      const dry = await migrate(api(), ws, '--dry-run')
      expect(dry).toMatchObject({ code: 0, last: { event: 'complete', total: 3, migrated: 3, skipped: 0 } })
      expect(await lookup(api(), ws, ids[0] ?? '')).toMatchObject({ recall_ready: false })
      expect(await models(api(), ws)).toEqual({ 'noop:default': 3 })
      await migrate(api(), ws)
      expect(await migrate(api(), ws)).toMatchObject({ code: 0, last: { total: 3, migrated: 0, skipped: 3 } })
      const { entries } = (await api().call('GET', `/workspaces/${ws}/ledger?op=migrate_embeddings`)).body
      expect(entries).toHaveLength(1)
    })

    test('migrate embeddings goes back to a model whose vectors are still there without asking for any', async () => {
      const { ws, ids } = await outdated(api())
      await changeModel(api(), ws, 'noop:default')
      const asked = provider.requests.length
      expect(await migrate(api(), ws)).toMatchObject({ code: 0, last: { migrated: 0, skipped: 3 } })
      expect(await lookup(api(), ws, ids[0] ?? '')).toMatchObject({ recall_ready: true })
      expect(provider.requests).toHaveLength(asked)
    })

    test('migrate embeddings passes over what the provider refuses, and takes it up in the next run', async () => {
      const { ws, ids } = await outdated(api())
      provider.behave = (texts) => (texts.some((text) => text.includes('bread')) ? 'fails' : 'works')
      const first = await migrate(api(), ws)
      expect(first).toMatchObject({
        code: 4,
        last: { event: 'complete', total: 3, migrated: 2, skipped: 0, errors: 1, resume_token: ids[1] },
      })
      expect(first.stderr).toContain('1 Memories could not be embedded')
      expect(await lookup(api(), ws, ids[1] ?? '')).toMatchObject({ recall_ready: false })
      provider.recover()
      expect(await migrate(api(), ws)).toMatchObject({ code: 0, last: { migrated: 1, skipped: 2, errors: 0 } })
    })

    test('migrate embeddings gives up on a provider that is down, and changes nothing', async () => {
      const { ws, ids } = await outdated(api(), [...TEXTS, 'four', 'five'])
      provider.behave = () => 'fails'
      expect(await migrate(api(), ws)).toMatchObject({
        code: 4,
        last: { event: 'interrupted', total: 5, migrated: 0, errors: 3, resume_token: ids[0] },
      })
      expect(await models(api(), ws)).toEqual({ 'noop:default': 5 })
    })

    test('migrate embeddings tells every 100 Memories how far it is', async () => {
      const { ws } = await outdated(
        api(),
        Array.from({ length: 230 }, (_, i) => `note ${i}`),
        'hash:default',
      )
      const { code, states } = await migrate(api(), ws)
      expect(code).toBe(0)
      expect(states.map(({ event, migrated }) => [event, migrated])).toEqual([
        ['progress', 100],
        ['progress', 200],
        ['complete', 230],
      ])
    })

    test('migrate embeddings: SIGINT ends it after the Memory at hand, exit 4; it can be run again', async () => {
      const { ws, ids } = await outdated(api())
      const args = ['migrate', 'embeddings', '-w', ws, '--max-rate', '1']
      const program = spawnProgram(args, { directory: api().dataDir, env: beside(api()) })
      onTestFinished(() => void program.kill('SIGKILL'))
      let output = ''
      program.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
      const ended = new Promise<number | null>((resolve) => program.on('close', resolve))
      const isReady = async () => (await lookup(api(), ws, ids[0] ?? '')).recall_ready
      await expect.poll(isReady).toBe(true)
      program.kill('SIGINT')
      expect(await ended).toBe(4)
      const last: MigrationState = JSON.parse(output)
      expect(last).toEqual({ event: 'interrupted', total: 3, migrated: 1, skipped: 0, errors: 0, resume_token: ids[1] })
      expect(await migrate(api(), ws)).toMatchObject({ code: 0, last: { migrated: 2, skipped: 1 } })
    })

    test('memory#92 a job of the old model that ends after migrate embeddings takes no Cell back', async () => {
      const slow = `openai:slow-${api().dialect}-16`
      const ws = await api().workspace({ embedding_model: slow })
      provider.behave = (_, model) => (slow.endsWith(model) ? 'hangs' : 'works')
      const id = await api().imprint(ws, 'an otter in flight')
      const isAsked = () => provider.requests.filter(({ model }) => slow.endsWith(model)).length
      await expect.poll(isAsked).toBe(2)
      await changeModel(api(), ws, 'openai:bag-64')
      expect(await migrate(api(), ws)).toMatchObject({ code: 0, last: { migrated: 1 } })

      // The queue takes one batch after the other: when the second is done, the first is.
      const next = await api().workspace({ embedding_model: slow })
      const after = await api().imprint(next, 'another one')
      provider.recover()
      await expect.poll(async () => (await lookup(api(), next, after)).recall_ready).toBe(true)
      expect(await models(api(), ws)).toEqual({ 'openai:bag-64': 1 })
      expect(await lookup(api(), ws, id)).toMatchObject({
        recall_ready: true,
        cells: [{ embedding_model: 'openai:bag-64' }],
      })
    })

    test('migrate embeddings refuses what it cannot work on', async () => {
      expect(await migrate(api(), 'ws_none')).toMatchObject({ code: 8, states: [] })
      expect(await migrate(api(), 'ws_none', '--max-rate=-1')).toMatchObject({ code: 1, states: [] })
      const env = beside(api())
      expect(await runCli(['migrate', 'embeddings'], { env })).toMatchObject({ code: 1, stdout: '' })
    })
  },
  { env: { OPENAI_BASE_URL: provider.url }, file: 'embedding: {inline_timeout: 0.3}' },
)

test('migrate embeddings works where vectors lie in a database of their own, and nowhere else', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'mem-test-migrate-'))
  const dsn = join(dataDir, 'vectors.db')
  const env = { OPENAI_BASE_URL: provider.url, MEM_VECTOR_DSN: dsn }
  const api = await startMemoryApi({ dialect: 'sqlite', dataDir, env })
  const { ws, ids } = await outdated(api)
  await expect.poll(async () => (await models(api, ws, { ...api.address, dsn }))['noop:default']).toBe(3)
  const args = ['migrate', 'embeddings', '-w', ws]
  expect(await runCli(args, { env: { ...beside(api), ...env } })).toMatchObject({ code: 0 })
  expect(await models(api, ws, { ...api.address, dsn })).toEqual({ 'openai:bag-64': 3 })
  expect((await recall(api, ws, TEXTS[2] ?? '', 'vector')).results[0]?.memory_id).toBe(ids[2])
  const elsewhere = { HOME: dataDir, MEM_DATA_DIR: join(dataDir, 'other') }
  expect(await runCli(args, { env: elsewhere })).toMatchObject({ code: 4, stdout: '' })
  await api.stop()
  rmSync(dataDir, { recursive: true, force: true })
})
