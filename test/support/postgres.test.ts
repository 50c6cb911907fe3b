import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { createPostgresDatabase, hasPostgres } from './postgres.ts'

describe.skipIf(!hasPostgres)('createPostgresDatabase', () => {
  it('gives each caller an empty UTF-8 database that drops even while it is connected', async () => {
    const [one, two] = await Promise.all([createPostgresDatabase(), createPostgresDatabase()])
    expect(one.url).not.toBe(two.url)
    const client = new pg.Client({ connectionString: one.url })
    const lost = new Promise((resolve) => client.on('error', resolve))
    await client.connect()
    const { rows } = await client.query('SELECT $1::text AS echo, current_setting($2) AS encoding', [
      'é😀',
      'server_encoding',
    ])
    expect(rows).toEqual([{ echo: 'é😀', encoding: 'UTF8' }])
    await Promise.all([one.drop(), two.drop()])
    await lost
    const gone = new pg.Client({ connectionString: one.url })
    await expect(gone.connect()).rejects.toThrow('does not exist')
  })
})
