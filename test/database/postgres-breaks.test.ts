import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Database } from '../../src/database/database.ts'
import { openPostgres } from '../../src/database/postgres.ts'
import { createPostgresDatabase, hasPostgres, type PostgresDatabase } from '../support/postgres.ts'

describe.skipIf(!hasPostgres)('connections and transactions that break', () => {
  let place: PostgresDatabase | undefined
  let database: Database | undefined
  beforeAll(async () => {
    place = await createPostgresDatabase()
    database = openPostgres({ url: place.url })
  })
  afterAll(async () => {
    await database?.close()
    await place?.drop()
  })
  const opened = (): Database => {
    if (!database) throw new Error('the database is not open yet')
    return database
  }

  test('between the statements of a transaction: it fails, the process lives, the next one works', async () => {
    const broken = opened().transaction(async (tx) => {
      const own = await tx.get<{ pid: number }>('SELECT pg_backend_pid() AS pid')
      await opened().get('SELECT pg_terminate_backend($1)', [own?.pid ?? 0])
      // Nothing is asked meanwhile: it is the connection that says so.
      const isThere = `SELECT 1 FROM pg_stat_activity WHERE pid = $1`
      while (await opened().get(isThere, [own?.pid ?? 0])) continue
      await setImmediate()
      await tx.get('SELECT 1')
    })
    await expect(broken).rejects.toThrow(/connection|terminat/i)
    expect(await opened().transaction((tx) => tx.get('SELECT 1 AS one'))).toEqual({ one: 1 })
  })

  test('a statement whose failure nobody heard: the transaction fails, for its commit would be a rollback', async () => {
    const deaf = opened().transaction((tx) => tx.run('SELECT 1 / 0').catch(() => 0))
    await expect(deaf).rejects.toThrow('rolled back')
  })

  test('a server that does not answer: the statement and its transaction end, and others get new connections', async () => {
    const impatient = openPostgres({ url: place?.url ?? '', answerTimeoutMs: 100 })
    const silent = impatient.transaction(async (tx) => {
      await tx.get('SELECT 1')
      await tx.get('SELECT pg_sleep(600)')
    })
    await expect(silent).rejects.toThrow('timeout')
    expect(await impatient.transaction((tx) => tx.get('SELECT 1 AS one'))).toEqual({ one: 1 })
    await impatient.close()
  })
})
