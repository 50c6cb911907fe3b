import { readFileSync, statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { newPostgresStore } from '../../src/kernel/store/store.ts'
import { createPostgresDatabase, hasPostgres } from '../support/postgres.ts'
import { createStorePlace, fixture, objectiveOf, standingClock } from './support.ts'
import { insertRecord, readRecord } from '../../src/kernel/store/records.ts'
import { objectives } from '../../src/kernel/store/objectives.ts'

const VERSIONS = [20261122020000, 20261122010000] as const
const [VERSION] = VERSIONS

test.each(['sqlite', ...(hasPostgres ? (['postgres'] as const) : [])] as const)(
  'kernel#87 %s: two servers on an empty store both start; what one writes the other reads, also after a restart',
  async (driver) => {
    const place = await createStorePlace(driver)
    const [one, two] = await Promise.all([place.open(), place.open()])
    expect(one.cursorSecret).toBe(two.cursorSecret)
    const objective = objectiveOf(fixture(place.clock), { scope: { kind: 'a', id: 'b' } })
    await one.database.transaction((tx) => insertRecord(tx, objectives, objective))
    expect(await readRecord(two.database, objectives, objective.scope, objective.id)).toEqual(objective)
    await Promise.all([one.close(), two.close()])
    const again = await place.open()
    expect(await readRecord(again.database, objectives, objective.scope, objective.id)).toEqual(objective)
    expect(again.cursorSecret).toBe(one.cursorSecret)
    await again.close()
    await place.remove()
  },
)

test.each(['sqlite', ...(hasPostgres ? (['postgres'] as const) : [])] as const)(
  'kernel#87 %s: a changed checksum or a newer schema refuses to open and writes nothing',
  async (driver) => {
    const place = await createStorePlace(driver)
    const store = await place.open()
    const rows = (): Promise<unknown[]> => store.database.all('SELECT * FROM schema_migrations ORDER BY version')
    const set = (sql: string): Promise<number> => store.database.run(sql)
    await set(`UPDATE schema_migrations SET checksum = 'x' || checksum`)
    const changed = await rows()
    await expect(place.open()).rejects.toThrow('differs from the one applied here')
    expect(await rows()).toEqual(changed)
    await set(`UPDATE schema_migrations SET checksum = substr(checksum, 2)`)
    await set(
      `INSERT INTO schema_migrations (service, version, name, checksum, applied_at) VALUES ('kernel', 29990101000000, 'later', 'x', 1)`,
    )
    const newer = await rows()
    await expect(place.open()).rejects.toThrow('newer than this program knows')
    expect(await rows()).toEqual(newer)
    await set('DELETE FROM schema_migrations WHERE version = 29990101000000')
    await (await place.open()).close()
    await store.close()
    await place.remove()
  },
)

test('kernel#87 a file that is refused stays as it is, to the byte', async () => {
  const place = await createStorePlace('sqlite')
  const store = await place.open()
  const { location } = store.database
  await store.database.run(`UPDATE schema_migrations SET checksum = 'x' || checksum`)
  await store.close()
  const before = readFileSync(location)
  await expect(place.open()).rejects.toThrow('differs from the one applied here')
  expect(readFileSync(location).equals(before)).toBe(true)
  await place.remove()
})

test.each(['memory', 'sqlite', ...(hasPostgres ? (['postgres'] as const) : [])] as const)(
  '%s: stats tell the driver and version, no address; rolling back is explicit and leaves nothing',
  async (driver) => {
    const place = await createStorePlace(driver)
    const store = await place.open()
    expect(await store.stats()).toEqual({ driver, schemaVersion: VERSION })
    expect(await store.rollbackTo(VERSION)).toEqual([])
    for (const unknown of [-1, 1, VERSION - 1, VERSION + 1, Number.NaN]) {
      await expect(store.rollbackTo(unknown)).rejects.toThrow(`the kernel schema has no version ${unknown}`)
    }
    expect(await store.stats()).toEqual({ driver, schemaVersion: VERSION })
    expect(await store.rollbackTo(0)).toEqual(VERSIONS)
    const tables = await store.database.all(
      store.database.dialect === 'sqlite'
        ? `SELECT name FROM sqlite_master WHERE name LIKE 'kernel%'`
        : `SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = 'kernel' AND tablename LIKE 'kernel%'`,
    )
    expect(tables).toEqual([])
    await store.close()
    await place.remove()
  },
)

test('what is no address of a PostgreSQL is refused, and not shown', async () => {
  await expect(newPostgresStore('host=here password=geheim')).rejects.toThrow(
    /^kernel store: dsn must be like postgres:\/\/user:password@host\/database$/,
  )
})

test('the file of a store is its owner’s alone', async () => {
  const place = await createStorePlace('sqlite')
  const store = await place.open()
  expect(statSync(store.database.location).mode & 0o777).toBe(0o600)
  await store.close()
  await place.remove()
})

test.skipIf(!hasPostgres)(
  'stores in two schemas of one database do not see each other; names are checked',
  async () => {
    const database = await createPostgresDatabase()
    const clock = standingClock()
    const [one, two] = await Promise.all(
      ['kernel', 'kernel_b'].map((schema) => newPostgresStore(database.url, { schema, clock })),
    )
    expect(one?.cursorSecret).not.toBe(two?.cursorSecret)
    await expect(newPostgresStore(database.url, { schema: 'Kernel"; DROP' })).rejects.toThrow('lower-case identifier')
    await Promise.all([one?.close(), two?.close()])
    await database.drop()
  },
)

test.skipIf(!hasPostgres)(
  'the time of a PostgreSQL store is that of the server, and follows the clock given',
  async () => {
    const place = await createStorePlace('postgres')
    const store = await place.open()
    await store.synchronize()
    expect(Math.abs(store.now() - place.clock.now())).toBeLessThan(100)
    const before = store.now()
    place.clock.advance(1000)
    expect(store.now()).toBe(before + 1000)
    await store.close()
    await place.remove()
  },
)
