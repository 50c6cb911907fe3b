import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { describe, expect, test, vi } from 'vitest'
import { BY_KERNEL, makeChange } from '../../src/kernel/change.ts'
import { MigrationError, type MigrationProgress } from '../../src/database/migrate.ts'
import { createRun } from '../../src/kernel/runs/create.ts'
import { newPostgresStore, newSqliteStore } from '../../src/kernel/store/store.ts'
import { createPostgresDatabase, hasPostgres } from '../support/postgres.ts'
import { contextOf, fixture } from './support.ts'

/** The lock of the schema that a URL of this search path changes, held by another process. */
async function holdMigrationLock(url: string, schema: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('SELECT pg_advisory_lock(7169389, hashtext($1))', [schema])
  return () => client.end()
}

describe.skipIf(!hasPostgres)('a PostgreSQL store', () => {
  test('kernel#87 while another process migrates the schema a server waits; then it says why it does not start', async () => {
    const database = await createPostgresDatabase()
    const release = await holdMigrationLock(database.url, 'kernel')
    const open = (waitMs: number) =>
      newPostgresStore(database.url, { migrationLock: { waitMs, pollMs: 5 }, migrationObserver: seen })
    const seen = vi.fn<(progress: MigrationProgress) => void>()
    await expect(open(20)).rejects.toThrow(
      new MigrationError(
        'another process has held the migration lock of this schema for 20 ms: start again when it is done',
      ),
    )
    expect(seen).not.toHaveBeenCalled()
    const other = await newPostgresStore(database.url, { schema: 'kernel_b', migrationLock: { waitMs: 20 } })
    await other.close()
    const waiting = open(60_000)
    await release()
    const store = await waiting
    const told = seen.mock.calls.map(([{ version, state }]) => ({ version, state }))
    const applied = [...new Set(told.map(({ version }) => version))]
    expect(seen.mock.calls[0]).toEqual([expect.objectContaining({ name: 'initial', elapsedMs: expect.any(Number) })])
    expect(applied.at(-1)).toBe((await store.stats()).schemaVersion)
    const each = applied.flatMap((version) => ['started', 'applied'].map((state) => ({ version, state })))
    expect(told).toEqual(each)
    await store.close()
    await database.drop()
  })

  test('kernel#87 eight servers on an empty schema at once: one migrates it, all start', async () => {
    const database = await createPostgresDatabase()
    const seen = vi.fn<(progress: MigrationProgress) => void>()
    const stores = await Promise.all(
      Array.from({ length: 8 }, () => newPostgresStore(database.url, { migrationObserver: seen })),
    )
    const applied = seen.mock.calls.flatMap(([{ version, state }]) => (state === 'applied' ? [version] : []))
    expect(applied).toEqual([...new Set(applied)])
    expect(applied.at(-1)).toBe((await stores[0]?.stats())?.schemaVersion)
    expect(new Set(stores.map(({ cursorSecret }) => cursorSecret)).size).toBe(1)
    for (const store of stores) await store.close()
    await database.drop()
  })

  test('its pool opens no more connections than it may, and keeps no more than it may', async () => {
    const database = await createPostgresDatabase()
    const store = await newPostgresStore(database.url, { pool: { maxOpen: 6, maxIdle: 2 } })
    const watcher = new pg.Client({ connectionString: database.url })
    await watcher.connect()
    const connections = async (): Promise<number> => {
      const { rows } = await watcher.query(
        `SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
            AND backend_type = 'client backend'`,
      )
      return rows[0].n
    }
    const burst = Array.from({ length: 20 }, () =>
      store.database.get<{ pid: number }>('SELECT pg_backend_pid() AS pid, pg_sleep(0.05)'),
    )
    const pids = new Set((await Promise.all(burst)).map((row) => row?.pid))
    expect(pids.size).toBeGreaterThan(2)
    expect(pids.size).toBeLessThanOrEqual(6)
    await vi.waitFor(async () => expect(await connections()).toBe(2), { timeout: 10_000, interval: 50 })
    expect(await store.database.get('SELECT 1 AS one')).toEqual({ one: 1 })
    await store.close()
    await watcher.end()
    await database.drop()
  })

  test('options that do not fit are refused before anything is opened', async () => {
    const open = (options: object) => newPostgresStore('postgres://nobody@127.0.0.1:1/none', options)
    await expect(open({ pool: { maxOpen: 1025 } })).rejects.toThrow(TypeError)
    await expect(open({ pool: { maxOpen: 0 } })).rejects.toThrow('pool.maxOpen')
    await expect(open({ migrationLock: { waitMs: 600_001 } })).rejects.toThrow('migrationLock.waitMs')
    await expect(open({ schema: 'x'.repeat(64) })).rejects.toThrow('schema')
    await expect(open({ poll: {} })).rejects.toThrow('poll')
  })
})

test('kernel#88 a backup under load is consistent: each run with its event, each scope without gaps', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-kernel-backup-'))
  const open = fixture()
  const { clock } = open.place
  const store = await newSqliteStore(join(directory, 'kernel.db'), { clock })
  const context = contextOf({ ...open, store })
  const scopes = Array.from({ length: 4 }, () => open.scope())
  let isLoaded = true
  let written = 0
  const writers = scopes.map(async (scope) => {
    while (isLoaded) {
      await makeChange(context, scope, BY_KERNEL, (change) =>
        createRun(change, { owner: { type: 'agent', id: 'ana' }, goal: 'Count the stars '.repeat(100) }),
      )
      written++
    }
  })
  while (written < 2000) await new Promise((resolve) => setImmediate(resolve))
  const before = written
  const target = join(directory, 'copy.db')
  await store.backup(target)
  const after = written
  isLoaded = false
  await Promise.all(writers)
  expect(after).toBeGreaterThan(before)
  expect(statSync(target).mode & 0o777).toBe(0o600)
  await expect(store.backup(target)).rejects.toThrow('nothing is overwritten')

  const copy = await newSqliteStore(target, { clock })
  const { database } = copy
  expect(await database.get('PRAGMA integrity_check')).toEqual({ integrity_check: 'ok' })
  expect(await database.all('PRAGMA foreign_key_check')).toEqual([])
  const counts = await database.all<{ runs: number; events: number; last: number; counter: number }>(
    `SELECT (SELECT count(*) FROM kernel_runs r WHERE r.scope = c.scope) AS runs, c.value AS counter,
            (SELECT count(*) FROM kernel_events e WHERE e.scope = c.scope) AS events,
            (SELECT max(position) FROM kernel_events e WHERE e.scope = c.scope) AS last
       FROM (SELECT scope, max(value) AS value FROM kernel_counters GROUP BY scope) c`,
  )
  expect(counts).toHaveLength(scopes.length)
  for (const { runs, events, last, counter } of counts) {
    expect(runs).toBeGreaterThan(0)
    expect({ events, last, counter }).toEqual({ events: runs, last: runs, counter: runs })
  }
  const copied = counts.reduce((sum, { runs }) => sum + runs, 0)
  expect(copied).toBeGreaterThanOrEqual(before)
  expect(copied).toBeLessThanOrEqual(after + scopes.length)
  await copy.close()
  await store.close()
  rmSync(directory, { recursive: true })
})

test('options of a store in a file are checked', async () => {
  const misspelt = { busyTimeoutMs: 1, busy: 1 }
  await expect(newSqliteStore('/nowhere/kernel.db', { busyTimeoutMs: 0 })).rejects.toThrow('busyTimeoutMs')
  await expect(newSqliteStore('/nowhere/kernel.db', misspelt)).rejects.toThrow('busy')
  await expect(newSqliteStore(':memory:')).rejects.toThrow('path must be a file')
})
