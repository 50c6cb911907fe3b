import pg from 'pg'
import { afterEach, expect, test } from 'vitest'
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
  await expect.poll(targets).toEqual(ids)
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
