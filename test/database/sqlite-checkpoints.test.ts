import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Checkpoints } from '../../src/database/sqlite-checkpoints.ts'
import { SqliteDriver } from '../../src/database/sqlite-driver.ts'
import { openSqlite } from '../../src/database/sqlite.ts'

/** A row for a page. */
const PAGE = 'x'.repeat(3000)

let directory: string
let path: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'mem-sqlite-'))
  path = join(directory, 'mem.db')
})

afterEach(() => rmSync(directory, { recursive: true }))

describe('checkpoints of SQLite', () => {
  let writer: Sqlite.Database
  let checkpoints: Checkpoints

  beforeEach(() => {
    writer = new SqliteDriver(path)
    writer.pragma('journal_mode = WAL')
    writer.pragma('wal_autocheckpoint = 0')
    writer.exec('CREATE TABLE note (text TEXT NOT NULL)')
    checkpoints = new Checkpoints(writer)
  })

  afterEach(async () => {
    await checkpoints.close()
    writer.close()
  })

  const commit = (pages: number): void => {
    const insert = writer.prepare('INSERT INTO note (text) VALUES (?)')
    writer.transaction(() => {
      for (let page = 0; page < pages; page++) insert.run(PAGE)
    })()
    checkpoints.committed()
  }

  const log = () => writer.prepare<[], { log: number; checkpointed: number }>('PRAGMA wal_checkpoint(NOOP)').get()

  test('a log of 12 MB goes into the database in another thread, with what is committed meanwhile, and begins anew', async () => {
    const here = vi.spyOn(writer, 'pragma')
    commit(2500)
    expect(log()).toMatchObject({ checkpointed: 0 })
    commit(600)
    commit(10)
    const whole = log()?.log
    await vi.waitFor(() => expect(log()).toMatchObject({ log: whole, checkpointed: whole }))
    commit(1)
    expect(log()?.log).toBeLessThan(5)
    commit(3000)
    await vi.waitFor(() => expect(log()?.checkpointed).toBeGreaterThan(3000))
    expect(here).not.toHaveBeenCalled()
  })

  test('an older reader keeps what it sees, and the log waits for it', async () => {
    const reader = new SqliteDriver(path, { readonly: true })
    const count = reader.prepare('SELECT count(*) FROM note').pluck()
    commit(10)
    reader.exec('BEGIN')
    expect(count.get()).toBe(10)
    commit(3100)
    await vi.waitFor(() => expect(log()?.checkpointed).toBeGreaterThan(0))
    expect(log()?.checkpointed).toBeLessThan(20)
    expect(count.get()).toBe(10)
    reader.exec('COMMIT')
    reader.close()
    commit(1)
    await vi.waitFor(() => expect(log()?.checkpointed).toBeGreaterThan(3100))
  })
})

test('a database that is written to without a pause has a bounded log, and leaves none behind', async () => {
  const db = openSqlite({ path, synchronous: 'normal' })
  await db.run('CREATE TABLE note (text TEXT NOT NULL)')
  const PAGES = 30_000
  for (let page = 0; page < PAGES; page += 50) {
    await db.transaction(async (tx) => {
      for (let i = 0; i < 50; i++) await tx.run('INSERT INTO note (text) VALUES ($1)', [PAGE])
    })
  }
  expect(statSync(`${path}-wal`).size).toBeLessThan(100e6)
  await db.close()
  expect(existsSync(`${path}-wal`)).toBe(false)
  const written = new SqliteDriver(path, { readonly: true })
  expect(written.prepare('SELECT count(*) FROM note').pluck().get()).toBe(PAGES)
  expect(written.pragma('integrity_check', { simple: true })).toBe('ok')
  written.close()
})
