import { randomBytes } from 'node:crypto'
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { systemClock, type Clock } from '../../base/clock.ts'
import { packageRoot } from '../../base/package-root.ts'
import type { Database } from '../../database/database.ts'
import { migrate, readMigrationStates, revertMigrations } from '../../database/migrate.ts'
import { openPostgres } from '../../database/postgres.ts'
import { returned } from '../../database/rows.ts'
import { openSqlite } from '../../database/sqlite.ts'
import { openMemory } from './memory.ts'

const SERVICE = 'kernel'
const TABLE = 'schema_migrations'
const FOLDER = join(packageRoot, 'migrations/kernel')

/** Where the kernel keeps everything. What is read and written are the named functions of this folder. */
export interface KernelStore {
  readonly database: Database
  /** Time of the store, in epoch ms: all processes on one store agree on when a lease ends. */
  now(): number
  /** Signs cursors, so that any process knows those of the others. */
  readonly cursorSecret: string
  /** Compares the clocks again: they drift. */
  synchronize(): Promise<void>
  /** Neither address nor credentials. */
  stats(): Promise<{ driver: 'sqlite' | 'postgres' | 'memory'; schemaVersion: number }>
  /** Reverts newer migrations, and what they hold; gives their versions. */
  rollbackTo(version: number): Promise<number[]>
  close(): Promise<void>
}

/**
 * Opens (and creates) a store in one file, which nobody else may read.
 * @throws MigrationError when the schema is newer than this program, or differs from it
 */
export function newSqliteStore(path: string, clock = systemClock): Promise<KernelStore> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  closeSync(openSync(path, 'a', 0o600))
  return openStore(openSqlite({ path, synchronous: 'full' }), 'sqlite', clock)
}

/** Of PostgreSQL: lower-case, as it is written into statements. */
const SCHEMA = /^[a-z_][a-z0-9_]{0,62}$/

/**
 * Opens a store in a schema of a PostgreSQL database, and creates the schema.
 * @throws MigrationError as `newSqliteStore`
 */
export async function newPostgresStore(
  dsn: string,
  { schema = 'kernel', clock = systemClock }: { schema?: string; clock?: Clock } = {},
): Promise<KernelStore> {
  if (!SCHEMA.test(schema)) throw new TypeError(`schema ${schema} must be a lower-case identifier`)
  const url = new URL(dsn)
  const options = url.searchParams.get('options')
  url.searchParams.set('options', [options, `-c search_path=${schema}`].filter(Boolean).join(' '))
  const database = openPostgres({ url: url.href })
  await closingOnFailure(database, () => createSchema(database, schema))
  return openStore(database, 'postgres', clock)
}

/** A store that is gone with the process: for tests. */
export const newMemoryStore = (clock = systemClock): Promise<KernelStore> => openStore(openMemory(), 'memory', clock)

async function openStore(
  database: Database,
  driver: 'sqlite' | 'postgres' | 'memory',
  clock: Clock,
): Promise<KernelStore> {
  const cursorSecret = await closingOnFailure(database, async () => {
    await migrate(database, SERVICE, FOLDER, clock.now())
    return readSecret(database)
  })
  let skew = await measureSkew(database)
  return {
    database,
    cursorSecret,
    now: () => clock.now() + skew,
    synchronize: async () => {
      skew = await measureSkew(database)
    },
    stats: async () => {
      const states = await readMigrationStates(database, SERVICE, FOLDER, TABLE)
      return { driver, schemaVersion: states.findLast(({ appliedAt }) => appliedAt !== undefined)?.version ?? 0 }
    },
    rollbackTo: (version) => revertMigrations(database, SERVICE, FOLDER, TABLE, version),
    close: () => database.close(),
  }
}

async function closingOnFailure<T>(database: Database, fn: () => Promise<T>): Promise<T> {
  try {
    return await fn()
  } catch (error) {
    await database.close()
    throw error
  }
}

/** Of two processes one creates it; who may not create schemas can use one that is there. */
const createSchema = (database: Database, schema: string): Promise<void> =>
  database.transaction(async (tx) => {
    await tx.run('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`kernel schema ${schema}`])
    const exists = await tx.get('SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1', [schema])
    if (!exists) await tx.run(`CREATE SCHEMA ${schema}`)
  })

/** Made by the first process. */
async function readSecret(database: Database): Promise<string> {
  const row = await database.transaction(async (tx) => {
    await tx.run(`INSERT INTO kernel_meta (name, value) VALUES ('cursor_key', $1) ON CONFLICT (name) DO NOTHING`, [
      randomBytes(32).toString('base64url'),
    ])
    return tx.get<{ value: string }>(`SELECT value FROM kernel_meta WHERE name = 'cursor_key'`)
  })
  return returned(row).value
}

/** How far the clock of a database server is ahead, in ms; less than asking took is no difference that can be told. */
async function measureSkew(database: Database): Promise<number> {
  if (database.dialect === 'sqlite') return 0
  const before = systemClock.now()
  const row = await database.get<{ now: number }>(
    'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now',
  )
  const after = systemClock.now()
  const skew = returned(row).now - Math.round((before + after) / 2)
  return Math.abs(skew) <= after - before + 1 ? 0 : skew
}
