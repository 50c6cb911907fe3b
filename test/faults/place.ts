import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe } from 'vitest'
import type { Database } from '../../src/database/database.ts'
import { openDatabase, type DatabaseAddress } from '../../src/database/open.ts'
import { createPostgresDatabase, hasPostgres } from '../support/postgres.ts'
import { type RunningServer, startServer } from '../support/server.ts'

export type Dialect = 'sqlite' | 'postgres'

/** Rounds of each fault; `npm run test:faults` asks for many. */
export const ROUNDS = Number(process.env['FAULT_ROUNDS'] ?? 20)

/** Where servers keep their data: one may die and another go on, or two may share it. */
export interface Place {
  dialect: Dialect
  /** Working directory of its servers, with mem.yaml; a fault test may read all that is in it. */
  directory: string
  /** Of its metadata database. */
  address: DatabaseAddress
  /** Tells a program of it, beside mem.yaml. */
  env: Record<string, string>
  /** With more in its environment, if told so. */
  start(more?: Record<string, string>): Promise<RunningServer>
  /** The stores themselves, for reading, once no statement of a dead server runs any more. */
  open(): Promise<Database>
  remove(): Promise<void>
}

export async function createPlace(dialect: Dialect, config = ''): Promise<Place> {
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-faults-'))
  writeFileSync(join(directory, 'mem.yaml'), `telemetry: { log_level: warn }\n${config}`)
  const postgres = dialect === 'postgres' ? await createPostgresDatabase() : undefined
  const seams = ['METADATA', 'VECTOR', 'GRAPH', 'LEDGER']
  const env = postgres && {
    MEM_METADATA_DSN: postgres.url,
    ...Object.fromEntries(seams.map((seam) => [`MEM_${seam}_DRIVER`, 'postgres'])),
  }
  const address: DatabaseAddress = {
    dialect,
    dsn: postgres?.url ?? join(directory, 'data/mem.db'),
    synchronous: 'full',
  }
  return {
    dialect,
    directory,
    address,
    env: env ?? {},
    start: (more) => startServer({ directory, env: { ...env, ...more } }),
    open: async () => {
      const stores = openDatabase({ ...address, readonly: true })
      await untilIdle(stores)
      return stores
    },
    remove: async () => {
      await postgres?.drop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/** PostgreSQL may still be at the last statement of a client that was killed. */
async function untilIdle(stores: Database): Promise<void> {
  if (stores.dialect === 'sqlite') return
  const others = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
  while (await stores.get(others)) await stores.get('SELECT pg_sleep(0.01)')
}

export function describeOnBothDatabases(name: string, define: (dialect: Dialect) => void): void {
  for (const dialect of ['sqlite', 'postgres'] as const) {
    describe.skipIf(dialect === 'postgres' && !hasPostgres)(`${name} [${dialect}]`, () => {
      define(dialect)
    })
  }
}
