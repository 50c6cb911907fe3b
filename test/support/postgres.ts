import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'

/** A database of one test file's own. */
export interface PostgresDatabase {
  url: string
  drop(): Promise<void>
}

/** False where npm has no PostgreSQL for the machine: `describe.skipIf(!hasPostgres)`. */
export const hasPostgres = inject('postgresUrl') !== ''

/** Creates an empty database on the run's PostgreSQL. */
export async function createPostgresDatabase(): Promise<PostgresDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`
  await administer(`CREATE DATABASE ${name} STRATEGY wal_log`)
  const url = new URL(inject('postgresUrl'))
  url.pathname = `/${name}`
  return { url: url.href, drop: () => administer(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) }
}

async function administer(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject('postgresUrl') })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
