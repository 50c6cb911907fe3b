import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { systemClock, type Clock } from '../../base/clock.ts'
import { packageRoot } from '../../base/package-root.ts'
import { backupFile } from '../../database/backup.ts'
import type { Database } from '../../database/database.ts'
import { migrate, readMigrationStates, revertMigrations, type MigrateOptions } from '../../database/migrate.ts'
import { openPostgres } from '../../database/postgres.ts'
import { returned } from '../../database/rows.ts'
import { openSqlite } from '../../database/sqlite.ts'
import { openMemory } from './memory.ts'
import {
  checkStoreOptions,
  postgresOptions,
  sqliteOptions,
  type PostgresStoreOptions,
  type SqliteStoreOptions,
} from './store-options.ts'

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
  /** Reverts newer migrations, and what they hold; gives their versions. @throws MigrationError for a version that there is not */
  rollbackTo(version: number): Promise<number[]>
  close(): Promise<void>
}

/** A store in one file. */
export interface SqliteStore extends KernelStore {
  /**
   * Copies the file as it is at this moment, while servers work on it.
   * @throws BackupError when there is something at `target`
   */
  backup(target: string): Promise<void>
}

/**
 * Opens (and creates) a store in one file, which nobody else may read.
 * @throws TypeError for an option that does not fit; MigrationError when the schema is newer than this program, or differs
 * from it
 */
export async function newSqliteStore(path: string, options: SqliteStoreOptions = {}): Promise<SqliteStore> {
  const { busyTimeoutMs, clock } = checkStoreOptions(sqliteOptions, options)
  if (path === ':memory:')
    throw new TypeError('kernel store: path must be a file; an engine without store works in memory')
  const store = await openStore(openSqlite({ path, synchronous: 'full', busyTimeoutMs }), 'sqlite', clock)
  return { ...store, backup: (target) => backupFile(path, target) }
}

/**
 * Opens a store in a schema of a PostgreSQL database, and creates the schema.
 * @throws as `newSqliteStore`; MigrationError too when another process does not end its migration in time
 */
export async function newPostgresStore(dsn: string, options: PostgresStoreOptions = {}): Promise<KernelStore> {
  const { schema, pool, migrationLock, migrationObserver, clock } = checkStoreOptions(postgresOptions, options)
  const database = openPostgres({ url: within(dsn, schema), pool, locksBriefly: true })
  await closingOnFailure(database, () => createSchema(database, schema))
  const observer = migrationObserver && { observer: migrationObserver }
  return openStore(database, 'postgres', clock, { lock: migrationLock, ...observer })
}

/** Each statement has an index. A plan that reads a table whole while that is small would be kept while it fills. */
const PLANNING = ['enable_seqscan=off', 'enable_hashjoin=off', 'enable_mergejoin=off']

/** The DSN whose connections see a schema first. @throws TypeError for what is no address */
function within(dsn: string, schema: string): string {
  if (!URL.canParse(dsn)) throw new TypeError('kernel store: dsn must be like postgres://user:password@host/database')
  const url = new URL(dsn)
  const parameters = url.searchParams.get('options')
  const settings = [`search_path=${schema}`, ...PLANNING].map((setting) => `-c ${setting}`)
  url.searchParams.set('options', [parameters, ...settings].filter(Boolean).join(' '))
  return url.href
}

/**
 * The version of the schema of a store, 0 before its first start; nothing is made or changed.
 * @throws MigrationError when it is newer than this program, or differs from it
 */
export async function readSchemaVersion(
  place: { driver: 'sqlite'; path: string } | { driver: 'postgres'; dsn: string; schema: string },
): Promise<number> {
  const database =
    place.driver === 'sqlite'
      ? openSqlite({ path: place.path, synchronous: 'full', readonly: true })
      : openPostgres({ url: within(place.dsn, place.schema), alone: true })
  try {
    return await schemaVersion(database)
  } finally {
    await database.close()
  }
}

async function schemaVersion(database: Database): Promise<number> {
  const states = await readMigrationStates(database, SERVICE, FOLDER, TABLE)
  return states.findLast(({ appliedAt }) => appliedAt !== undefined)?.version ?? 0
}

/** A store that is gone with the process: for tests. */
export const newMemoryStore = (clock = systemClock): Promise<KernelStore> => openStore(openMemory(), 'memory', clock)

async function openStore(
  database: Database,
  driver: 'sqlite' | 'postgres' | 'memory',
  clock: Clock,
  options?: MigrateOptions,
): Promise<KernelStore> {
  const cursorSecret = await closingOnFailure(database, async () => {
    await migrate(database, SERVICE, FOLDER, clock.now(), options)
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
    stats: async () => ({ driver, schemaVersion: await schemaVersion(database) }),
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
