import pg from 'pg'
import { afterEach, describe, expect, test } from 'vitest'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'
import { createPostgresDatabase, hasPostgres, type PostgresDatabase } from '../support/postgres.ts'

const cleanUps: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp()
})

async function start(env: Record<string, string>): Promise<MemoryApi> {
  const api = await startMemoryApi({ dialect: 'sqlite', env })
  cleanUps.push(() => api.stop())
  return api
}

async function createDatabase(): Promise<PostgresDatabase> {
  const database = await createPostgresDatabase()
  cleanUps.push(() => database.drop())
  return database
}

/** One of everything, with what must be seen right after. */
async function expectWhole(api: MemoryApi): Promise<void> {
  const ws = await api.workspace()
  const bread = await api.imprint(ws, 'The keeper likes rye bread.', { tags: { topic: 'food' } })
  const lamp = await api.imprint(ws, 'The lamp is lit at dusk.')
  for (const id of [bread, lamp]) {
    const isReady = async () => (await api.call('GET', `/workspaces/${ws}/memories/${id}`)).body.recall_ready
    await expect.poll(isReady).toBe(true)
  }
  for (const mode of ['keyword', 'vector', 'hybrid']) {
    const { body } = await api.call('POST', `/workspaces/${ws}/recall`, { query: 'rye bread', mode, k: 1 })
    expect(body.results.map((hit: { memory_id: string }) => hit.memory_id)).toEqual([bread])
    expect(body.embedding_pending).toBe(false)
  }
  const appended = await api.call('POST', `/workspaces/${ws}/memories/${bread}:append`, { content: ' And tea.' })
  expect(appended.status).toBe(200)

  const edges = `/workspaces/${ws}/memories/${bread}/edges`
  const link = { target_memory_id: lamp, edge_type: 'mentions' }
  expect((await api.call('POST', edges, link)).status).toBe(201)
  expect((await api.call('POST', edges, link)).body.error_code).toBe('already_exists')
  expect((await api.call('GET', edges)).body.edges).toHaveLength(1)

  const forgotten = await api.call('DELETE', `/workspaces/${ws}/memories/${lamp}?redact_audit=true`)
  expect(forgotten.body).toMatchObject({ cascaded_edges: 1, redacted_entries: 2 })
  expect((await api.call('GET', edges)).body.edges).toEqual([])
  const recalled = await api.call('POST', `/workspaces/${ws}/recall`, { query: 'lamp at dusk' })
  expect(recalled.body.results.map((hit: { memory_id: string }) => hit.memory_id)).not.toContain(lamp)

  const ledger = await api.call('GET', `/workspaces/${ws}/ledger?order=asc`)
  expect(ledger.body.entries.map((entry: { op: string }) => entry.op)).toEqual([
    'workspace_create',
    'agent_register',
    'imprint',
    'imprint',
    'append',
    'link',
    'edge_cascade_forget',
    'forget',
  ])
  expect(ledger.body.entries.map((entry: { seq: number }) => entry.seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
}

describe('memory#136 seams in any combination of databases', () => {
  test('aliases of the embedded drivers', async () => {
    await expectWhole(await start({ MEM_VECTOR_DRIVER: 'sqlite-vec', MEM_GRAPH_DRIVER: 'sqlite_graph' }))
  })

  test('each seam in a file of its own', async () => {
    const { dataDir } = await start({})
    const file = (name: string): string => `${dataDir}/${name}.db`
    await expectWhole(
      await start({ MEM_VECTOR_DSN: file('vector'), MEM_GRAPH_DSN: file('graph'), MEM_LEDGER_DSN: file('ledger') }),
    )
  })

  test.skipIf(!hasPostgres)('metadata in PostgreSQL, the rest embedded', async () => {
    const { url } = await createDatabase()
    await expectWhole(await start({ MEM_METADATA_DRIVER: 'postgres', MEM_METADATA_DSN: url }))
  })

  test.skipIf(!hasPostgres)('metadata embedded, the rest in PostgreSQL', async () => {
    const { url } = await createDatabase()
    const seams = ['VECTOR', 'GRAPH', 'LEDGER'].flatMap((seam) => [
      [`MEM_${seam}_DRIVER`, 'postgres'],
      [`MEM_${seam}_DSN`, url],
    ])
    await expectWhole(await start(Object.fromEntries(seams)))
  })
})

test.skipIf(!hasPostgres)('memory#135 a ledger that is down delays entries and loses none', async () => {
  const { url } = await createDatabase()
  const api = await start({ MEM_LEDGER_DRIVER: 'postgres', MEM_LEDGER_DSN: url })
  const ws = await api.workspace()
  await setReachable(url, false)
  const ids: string[] = []
  for (const text of ['one', 'two', 'three']) ids.push(await api.imprint(ws, text))
  expect(ids.every((id) => id.startsWith('mem_'))).toBe(true)
  const ready = await api.call('GET', '//readyz')
  expect(ready.status).toBe(503)
  expect(ready.body.adapter.ledger).toMatch(/^down: /)
  await setReachable(url, true)
  const targets = async (): Promise<string[]> => {
    const { body } = await api.call('GET', `/workspaces/${ws}/ledger?op=imprint&order=asc`)
    return (body.entries ?? []).map((entry: { target: string }) => entry.target)
  }
  await expect.poll(targets, { timeout: 15_000 }).toEqual(ids)
})

/** Lets nobody connect to a database, as when its server were away, or everybody again. */
async function setReachable(url: string, reachable: boolean): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  const admin = new URL(url)
  admin.pathname = '/postgres'
  const client = new pg.Client({ connectionString: admin.href })
  await client.connect()
  await client.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS ${reachable}`)
  if (!reachable) {
    await client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [name])
  }
  await client.end()
}
