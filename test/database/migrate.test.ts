import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Database } from '../../src/database/database.ts'
import { migrate, type MigrationProgress } from '../../src/database/migrate.ts'
import { openPostgres } from '../../src/database/postgres.ts'
import { openSqlite } from '../../src/database/sqlite.ts'
import { createPostgresDatabase, hasPostgres } from '../support/postgres.ts'

describe.each(['sqlite', 'postgres'] as const)('migrations [%s]', (dialect) => {
  let folder = ''
  let database: Database | undefined
  let drop = async (): Promise<void> => {}
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'mem-test-migrate-'))
    mkdirSync(join(folder, dialect))
    if (dialect === 'sqlite') database = openSqlite({ path: join(folder, 'a.db'), synchronous: 'normal' })
    else if (hasPostgres) {
      const created = await createPostgresDatabase()
      drop = created.drop
      database = openPostgres({ url: created.url })
    }
  })
  afterEach(async () => {
    await database?.close()
    await drop()
    rmSync(folder, { recursive: true })
  })
  const write = (name: string, sql: string): void => writeFileSync(join(folder, dialect, `${name}.up.sql`), sql)

  test.skipIf(dialect === 'postgres' && !hasPostgres)(
    'each is told of as it begins and ends; one that fails leaves nothing, and those before it stay',
    async () => {
      if (!database) throw new Error('not open')
      write('1_one', 'CREATE TABLE one (id BIGINT);')
      write('2_two', 'CREATE TABLE two (id BIGINT);\nCREATE TABLE two (id BIGINT);')
      const seen = vi.fn<(progress: MigrationProgress) => void>()
      await expect(migrate(database, 'test', folder, 7, { observer: seen })).rejects.toThrow('two')
      const told = (): unknown[] => seen.mock.calls.map(([{ version, name, state }]) => [version, name, state])
      expect(told()).toEqual([
        [1, 'one', 'started'],
        [1, 'one', 'applied'],
        [2, 'two', 'started'],
        [2, 'two', 'failed'],
      ])
      const applied = await database.all('SELECT version, applied_at FROM schema_migrations')
      expect(applied).toEqual([{ version: 1, applied_at: 7 }])
      expect(await database.all('SELECT * FROM one')).toEqual([])
      await expect(database.all('SELECT * FROM two')).rejects.toThrow('two')

      seen.mockClear()
      write('2_two', 'CREATE TABLE two (id BIGINT);')
      await migrate(database, 'test', folder, 8, { observer: seen })
      expect(told()).toEqual([
        [2, 'two', 'started'],
        [2, 'two', 'applied'],
      ])
      await migrate(database, 'test', folder, 9, { observer: seen })
      expect(seen).toHaveBeenCalledTimes(2)
    },
  )
})
