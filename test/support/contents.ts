import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import { packageRoot } from '../../src/base/package-root.ts'
import { readS3, requireS3 } from '../../src/config/s3.ts'
import { migrate } from '../../src/database/migrate.ts'
import { openDatabase, type DatabaseAddress } from '../../src/database/open.ts'
import { openContent, type ContentAddress } from '../../src/memory/store/content/open.ts'
import type { ContentStore } from '../../src/memory/store/content/store.ts'
import { createPostgresDatabase, hasPostgres } from './postgres.ts'
import { startS3 } from './s3.ts'

export type ContentDriver = 'sqlite' | 'postgres' | 'file' | 's3'

/** A place for bodies, empty: how a server is told of it, and the store itself, to look into and to harm. */
export interface ContentPlace {
  env: Record<string, string>
  dsn: string
  store: ContentStore
  remove(): Promise<void>
}

export const CONTENT_DRIVERS = (['file', 's3', 'sqlite', 'postgres'] as const).filter(
  (driver) => driver !== 'postgres' || hasPostgres,
)

export async function createContentPlace(driver: ContentDriver): Promise<ContentPlace> {
  const { dsn, env = {}, remove } = await PLACES[driver]()
  const database = databaseOf(driver, dsn)
  const opened = database && openDatabase(database)
  if (opened) await migrate(opened, 'memory', join(packageRoot, 'migrations/memory'), 0)
  const store = openContent(addressOf(driver, dsn, env), systemClock, opened)
  return {
    env: { MEM_CONTENT_DRIVER: driver, MEM_CONTENT_DSN: dsn, ...env },
    dsn,
    store,
    remove: async () => {
      await opened?.close()
      await remove()
    },
  }
}

interface Place {
  dsn: string
  env?: Record<string, string>
  remove(): Promise<void>
}

async function createDirectory(name: string): Promise<Place> {
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-content-'))
  return { dsn: join(directory, name), remove: async () => rmSync(directory, { recursive: true, force: true }) }
}

const PLACES: Record<ContentDriver, () => Promise<Place>> = {
  file: () => createDirectory('bodies'),
  sqlite: () => createDirectory('bodies.db'),
  postgres: async () => {
    const { url, drop } = await createPostgresDatabase()
    return { dsn: url, remove: drop }
  },
  s3: async () => {
    const { dsn, env, stop } = await startS3()
    return { dsn, env, remove: stop }
  },
}

const databaseOf = (driver: ContentDriver, dsn: string): DatabaseAddress | undefined =>
  driver === 'sqlite' || driver === 'postgres' ? { dialect: driver, dsn, synchronous: 'full' } : undefined

function addressOf(driver: ContentDriver, dsn: string, env: Record<string, string>): ContentAddress {
  if (driver === 'file') return { driver, root: dsn }
  if (driver === 's3') return { driver, dsn, settings: requireS3(readS3(env)) }
  return { driver, database: { dialect: driver, dsn, synchronous: 'full' } }
}
