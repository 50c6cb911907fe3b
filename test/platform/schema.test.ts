import { expect, test } from 'vitest'
import { createApp } from '../../src/app.ts'
import { withPlatform } from '../../src/app/platform.ts'
import type { Database } from '../../src/database/database.ts'
import { downgradeSchema, readSchema, upgradeSchema } from '../../src/platform/schema.ts'
import { describeInPlaces, initialize } from './support.ts'

const CORE = 20261020010000

/** Every table and column of the platform. */
async function shape(database: Database): Promise<unknown[]> {
  return database.dialect === 'sqlite'
    ? database.all(`SELECT name, sql FROM sqlite_master WHERE name LIKE 'platform%' ORDER BY name`)
    : database.all(
        `SELECT table_name, column_name, data_type FROM information_schema.columns
          WHERE table_name LIKE 'platform%' ORDER BY table_name, column_name`,
      )
}

describeInPlaces('the schema', (place) => {
  test('up, down and up again is the same schema, with the data gone', async () => {
    await initialize(place())
    const database = place().open()
    const before = await shape(database)
    const applied = (await readSchema(database)).map(({ version, appliedAt }) => [version, typeof appliedAt])
    expect(applied[0]).toEqual([CORE, 'number'])
    const versions = applied.map(([version]) => version)
    expect(await downgradeSchema(database, 0)).toEqual(versions.toReversed())
    expect(await downgradeSchema(database, 0)).toEqual([])
    expect((await readSchema(database)).every(({ appliedAt }) => appliedAt === undefined)).toBe(true)
    expect(await database.all('SELECT * FROM platform_schema_migrations')).toEqual([])
    await upgradeSchema(database, 1)
    await upgradeSchema(database, 2)
    expect(await shape(database)).toEqual(before)
    expect(await database.all('SELECT * FROM platform_organizations')).toEqual([])
    await database.close()
  })

  test('two processes that start at once apply it once', async () => {
    const [one, two] = [place().open(), place().open()]
    await downgradeSchema(one, 0)
    await Promise.all([upgradeSchema(one, 1), upgradeSchema(two, 2)])
    expect(await one.all('SELECT version FROM platform_schema_migrations WHERE version = $1', [CORE])).toHaveLength(1)
    await Promise.all([one.close(), two.close()])
  })

  test('a newer schema refuses to start', async () => {
    const database = place().open()
    await database.run(
      `INSERT INTO platform_schema_migrations (service, version, name, checksum, applied_at)
       VALUES ('platform', 29990101000000, 'later', 'x', 1)`,
    )
    const refusal = { name: 'ConfigError', message: expect.stringContaining('upgrade mem') }
    await expect(createApp(place().config())).rejects.toMatchObject(refusal)
    await database.run('DELETE FROM platform_schema_migrations WHERE version = 29990101000000')
    await database.close()
  })

  test('without auto_migrate an empty store stays empty, and what is there is used', async () => {
    const database = place().open()
    await downgradeSchema(database, 0)
    const config = place().config()
    const manual = { ...config, platform: { ...config.platform, auto_migrate: false } }
    const app = await createApp(manual)
    const url = await app.listen()
    expect((await fetch(`${url}/rest/v1/platform/me`)).status).toBe(503)
    expect((await readSchema(database))[0]?.appliedAt).toBeUndefined()
    await withPlatform(manual, { upgrade: true }, async () => {})
    expect((await fetch(`${url}/rest/v1/platform/me`)).status).toBe(503)
    await app.close()
    await database.close()
  })
})

describeInPlaces('a store that is only there in part', (place) => {
  test('a server that may not read a table of the gateway refuses to start, and names the store', async () => {
    await initialize(place())
    const database = place().open()
    await upgradeSchema(database, 1)
    await database.run('ALTER TABLE gateway_keys RENAME TO gateway_keys_away')
    const app = await createApp(place().config(), { services: ['platform', 'gateway'] })
    const refusal = { name: 'ConfigError', message: expect.stringMatching(/^storage\.metadata_dsn .*gateway_keys/) }
    await expect(app.listen()).rejects.toMatchObject(refusal)
    await app.close()
    await database.close()
  })
})
