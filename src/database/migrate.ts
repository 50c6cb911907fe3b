import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { sha256 } from '../base/hash.ts'
import type { Database, Queryable } from './database.ts'
import { optional } from './rows.ts'

/** The schema cannot be brought to this program's version; the message says what to do. */
export class MigrationError extends Error {}

interface Migration {
  version: number
  name: string
  sql: string
  checksum: string
}

/** The table that tells which migrations are applied. */
type Table = 'schema_migrations' | 'platform_schema_migrations'

const createTable = (table: Table): string => `
CREATE TABLE IF NOT EXISTS ${table} (
  service TEXT NOT NULL,
  version BIGINT NOT NULL,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL,
  applied_at BIGINT NOT NULL,
  PRIMARY KEY (service, version)
)`

/** How long a process waits for another one that changes the schema, and how often it looks. */
export interface MigrationLock {
  waitMs: number
  pollMs: number
}

/** A step of a migration; `elapsedMs` since it began. */
export interface MigrationProgress {
  version: number
  name: string
  state: 'started' | 'applied' | 'failed'
  elapsedMs: number
}

export interface MigrateOptions {
  table?: Table
  lock?: MigrationLock
  observer?: (progress: MigrationProgress) => void
}

const LOCK: MigrationLock = { waitMs: 60_000, pollMs: 100 }

/**
 * Applies `<folder>/<dialect>/<version>_<name>.up.sql` in order, each in one transaction, under a lock that a second
 * process waits for. Released files never change: their checksums are compared at every start.
 * @throws MigrationError when a file changed, the schema is newer than this program, or another process does not let go of
 * the lock. Contract: memory.md 9.2, kernel-1.md 15
 */
export async function migrate(
  db: Database,
  service: string,
  folder: string,
  now: number,
  { table = 'schema_migrations', lock = LOCK, observer }: MigrateOptions = {},
): Promise<void> {
  const known = await readMigrations(join(folder, db.dialect))
  const before = await readExisting(db, service, table)
  if (before) refuseForeign(service, before, known)
  if (before?.size === known.length) return // the usual start: nothing needs to be locked or written
  await locked(db, lock, (tx) => tx.run(createTable(table)))
  for (const migration of known) {
    await locked(db, lock, async (tx) => {
      const applied = await readApplied(tx, service, table)
      refuseForeign(service, applied, known)
      if (!applied.has(migration.version)) {
        await observed(migration, observer, () => apply(tx, service, migration, now, table))
      }
    })
  }
}

async function observed(
  { version, name }: Migration,
  observer: MigrateOptions['observer'],
  work: () => Promise<void>,
): Promise<void> {
  const start = performance.now()
  const tell = (state: MigrationProgress['state']): void =>
    observer?.({ version, name, state, elapsedMs: Math.round(performance.now() - start) })
  tell('started')
  try {
    await work()
  } catch (error) {
    tell('failed')
    throw error
  }
  tell('applied')
}

export interface MigrationState {
  version: number
  name: string
  /** Epoch ms; absent while it is not applied. */
  appliedAt?: number
}

/**
 * The migrations of this program, the oldest first, and which are applied.
 * @throws MigrationError as `migrate`
 */
export async function readMigrationStates(
  db: Database,
  service: string,
  folder: string,
  table: Table,
): Promise<MigrationState[]> {
  const known = await readMigrations(join(folder, db.dialect))
  const applied = (await readExisting(db, service, table)) ?? new Map<number, Applied>()
  refuseForeign(service, applied, known)
  return known.map(({ version, name }) => ({
    version,
    name,
    ...optional('appliedAt', applied.get(version)?.applied_at),
  }))
}

/**
 * Reverts every applied migration newer than `to`, the latest first, by its `.down.sql`, each in one transaction.
 * Gives the versions reverted.
 * @param to one of them, or 0 for none
 * @throws MigrationError as `migrate`, for a version that there is not, and where one has no way down
 */
export async function revertMigrations(
  db: Database,
  service: string,
  folder: string,
  table: Table,
  to: number,
): Promise<number[]> {
  const known = await readMigrations(join(folder, db.dialect))
  if (to !== 0 && !known.some(({ version }) => version === to)) {
    const versions = known.map(({ version }) => version).join(', ')
    throw new MigrationError(`the ${service} schema has no version ${to}: it has ${versions}, and 0 keeps nothing`)
  }
  const newer = known.filter(({ version }) => version > to).toReversed()
  const reverted: number[] = []
  if (!(await readExisting(db, service, table))) return reverted
  for (const { version, name } of newer) {
    const sql = await readFile(join(folder, db.dialect, `${version}_${name}.down.sql`), 'utf8').catch(() => {
      throw new MigrationError(`migration ${version} (${name}) of ${service} has no way down`)
    })
    const wasApplied = await locked(db, LOCK, async (tx) => {
      const applied = await readApplied(tx, service, table)
      refuseForeign(service, applied, known)
      if (!applied.has(version)) return false
      await runStatements(tx, sql)
      await tx.run(`DELETE FROM ${table} WHERE service = $1 AND version = $2`, [service, version])
      return true
    })
    if (wasApplied) reverted.push(version)
  }
  return reverted
}

/** What is applied; undefined before the first migration ever. */
async function readExisting(db: Database, service: string, table: Table): Promise<Map<number, Applied> | undefined> {
  const found = await db.get(
    db.dialect === 'sqlite'
      ? `SELECT 1 FROM sqlite_master WHERE name = $1`
      : `SELECT 1 FROM pg_catalog.pg_tables WHERE tablename = $1 AND schemaname = current_schema()`,
    [table],
  )
  return found ? readApplied(db, service, table) : undefined
}

/**
 * One transaction under the lock of the schema. Between looks nothing is held, so that no time limit of a statement or a
 * transaction ends the wait.
 */
async function locked<T>(
  db: Database,
  { waitMs, pollMs }: MigrationLock,
  fn: (tx: Queryable) => Promise<T>,
): Promise<T> {
  const end = performance.now() + waitMs
  for (;;) {
    const done = await db.transaction(async (tx) => ((await tryLock(tx)) ? { value: await fn(tx) } : undefined))
    if (done) return done.value
    if (performance.now() >= end) {
      throw new MigrationError(
        `another process has held the migration lock of this schema for ${waitMs} ms: start again when it is done`,
      )
    }
    await sleep(pollMs)
  }
}

/** The ASCII letters "mem", and the schema; SQLite's BEGIN IMMEDIATE is a lock already. */
async function tryLock(tx: Queryable): Promise<boolean> {
  if (tx.dialect === 'sqlite') return true
  const row = await tx.get<{ taken: boolean }>(
    'SELECT pg_try_advisory_xact_lock(7169389, hashtext(current_schema())) AS taken',
  )
  return row?.taken === true
}

async function readMigrations(folder: string): Promise<Migration[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.up.sql')).sort()
  return Promise.all(
    files.map(async (file) => {
      const sql = await readFile(join(folder, file), 'utf8')
      const [version = '', ...name] = file.slice(0, -'.up.sql'.length).split('_')
      return { version: Number(version), name: name.join('_'), sql, checksum: sha256(sql) }
    }),
  )
}

interface Applied {
  version: number
  name: string
  checksum: string
  applied_at: number
}

async function readApplied(db: Queryable, service: string, table: Table): Promise<Map<number, Applied>> {
  const rows = await db.all<Applied>(`SELECT version, name, checksum, applied_at FROM ${table} WHERE service = $1`, [
    service,
  ])
  return new Map(rows.map((row) => [row.version, row]))
}

function refuseForeign(service: string, applied: ReadonlyMap<number, Applied>, known: readonly Migration[]): void {
  const byVersion = new Map(known.map((migration) => [migration.version, migration]))
  for (const [version, { name, checksum }] of applied) {
    const migration = byVersion.get(version)
    if (!migration) {
      throw new MigrationError(
        `the ${service} schema is at version ${version} (${name}), newer than this program knows: upgrade mem`,
      )
    }
    if (migration.checksum !== checksum) {
      throw new MigrationError(
        `migration ${version} (${name}) of ${service} differs from the one applied here: restore the released file`,
      )
    }
  }
}

async function apply(tx: Queryable, service: string, migration: Migration, now: number, table: Table): Promise<void> {
  await runStatements(tx, migration.sql)
  await tx.run(`INSERT INTO ${table} (service, version, name, checksum, applied_at) VALUES ($1, $2, $3, $4, $5)`, [
    service,
    migration.version,
    migration.name,
    migration.checksum,
    now,
  ])
}

async function runStatements(tx: Queryable, sql: string): Promise<void> {
  for (const statement of sql.split(/;\s*$/m)) if (statement.trim()) await tx.run(statement)
}
