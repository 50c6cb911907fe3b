import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { sha256 } from '../base/hash.ts'
import type { Database, Queryable } from './database.ts'

/** The schema cannot be brought to this program's version; the message says what to do. */
export class MigrationError extends Error {}

interface Migration {
  version: number
  name: string
  sql: string
  checksum: string
}

const TABLE = `
CREATE TABLE IF NOT EXISTS schema_migrations (
  service TEXT NOT NULL,
  version INTEGER NOT NULL,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL,
  applied_at BIGINT NOT NULL,
  PRIMARY KEY (service, version)
)`

/**
 * Applies `<folder>/<dialect>/<version>_<name>.up.sql` in order, each in one transaction, under a lock that a second
 * process waits for. Released files never change: their checksums are compared at every start.
 * @throws MigrationError when a file changed or the schema is newer than this program. Contract: memory.md 9.2.
 */
export async function migrate(db: Database, service: string, folder: string, now: number): Promise<void> {
  const known = await readMigrations(join(folder, db.dialect))
  if (await isCurrent(db, service, known)) return
  await db.transaction(async (tx) => {
    await lock(tx)
    await tx.run(TABLE)
  })
  for (const migration of known) {
    await db.transaction(async (tx) => {
      await lock(tx)
      const applied = await readApplied(tx, service)
      refuseForeign(service, applied, known)
      if (!applied.has(migration.version)) await apply(tx, service, migration, now)
    })
  }
}

/** The usual start: everything is applied, and nothing needs to be locked or written. */
async function isCurrent(db: Database, service: string, known: readonly Migration[]): Promise<boolean> {
  const table = await db.get(
    db.dialect === 'sqlite'
      ? `SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'`
      : `SELECT 1 FROM pg_catalog.pg_tables WHERE tablename = 'schema_migrations' AND schemaname = current_schema()`,
  )
  if (!table) return false
  const applied = await readApplied(db, service)
  refuseForeign(service, applied, known)
  return applied.size === known.length
}

/** `pg_advisory_xact_lock` of the ASCII letters "mem"; SQLite's BEGIN IMMEDIATE is a lock already. */
async function lock(tx: Queryable): Promise<void> {
  if (tx.dialect === 'postgres') await tx.run('SELECT pg_advisory_xact_lock(7169389)')
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

async function readApplied(db: Queryable, service: string): Promise<Map<number, { name: string; checksum: string }>> {
  const rows = await db.all<{ version: number; name: string; checksum: string }>(
    'SELECT version, name, checksum FROM schema_migrations WHERE service = $1',
    [service],
  )
  return new Map(rows.map((row) => [row.version, row]))
}

function refuseForeign(
  service: string,
  applied: ReadonlyMap<number, { name: string; checksum: string }>,
  known: readonly Migration[],
): void {
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

async function apply(tx: Queryable, service: string, migration: Migration, now: number): Promise<void> {
  for (const statement of migration.sql.split(/;\s*$/m)) if (statement.trim()) await tx.run(statement)
  await tx.run(
    'INSERT INTO schema_migrations (service, version, name, checksum, applied_at) VALUES ($1, $2, $3, $4, $5)',
    [service, migration.version, migration.name, migration.checksum, now],
  )
}
