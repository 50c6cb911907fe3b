import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock, type Clock } from '../base/clock.ts'
import { makeDirectorySync } from '../base/directory.ts'
import { errorText } from '../base/errors.ts'
import { createLogger } from '../base/log.ts'
import { packageRoot } from '../base/package-root.ts'
import { maskPassword, type Store } from '../config/dsn.ts'
import { ConfigError } from '../config/errors.ts'
import type { Config } from '../config/load.ts'
import { requireS3 } from '../config/s3.ts'
import type { Database } from '../database/database.ts'
import { migrate, MigrationError, readMigrationStates } from '../database/migrate.ts'
import { openDatabase } from '../database/open.ts'
import type { Logger } from '../memory/ports.ts'
import type { SeamDatabases } from '../memory/seams.ts'
import { hasContentTable } from '../memory/store/content/database.ts'
import { openContent, type ContentAddress } from '../memory/store/content/open.ts'
import { emptyContent, type ContentStore } from '../memory/store/content/store.ts'
import { LedgerFile } from '../memory/store/ledger-file.ts'
import { vectorStore } from '../memory/store/vector/index.ts'
import { buildVectorIndexes } from '../memory/store/vector/pgvector-indexes.ts'
import { requirePgvector } from '../memory/store/vector/pgvector-setup.ts'
import { addressOf } from './database.ts'

/** The databases of the memory service, each opened and migrated once, however many seams are in it. */
export async function openStores(
  config: Config,
  clock: Clock = systemClock,
  log: Logger = createLogger(config.telemetry.log_level, config.telemetry.log_format),
  flushesAtOnce = false,
): Promise<{ databases: SeamDatabases; close(): Promise<void> }> {
  const opened = new Map<string, Promise<Database>>()
  const open = (seam: string, store: Store<string>): Promise<Database> => {
    const known = opened.get(store.dsn) ?? openMigrated(config, seam, store, flushesAtOnce)
    opened.set(store.dsn, known)
    return known
  }
  makeDataDir(config)
  const { metadata, vector, graph, ledger, content } = config.stores
  const metadataDatabase = await open('metadata', metadata)
  const ledgerFile = ledger.driver === 'file' ? new LedgerFile(ledger.dsn, clock, log) : undefined
  const contentDatabase = content && isDatabase(content) ? await open('content', content) : undefined
  return {
    databases: {
      metadata: metadataDatabase,
      vector: vector.driver === 'pgvector' ? await preparePgvector(open, vector) : await open('vector', vector),
      vectors: vectorStore(vector.driver),
      graph: graph && (await open('graph', graph)),
      ledger: ledgerFile ? undefined : await open('ledger', ledger),
      ledgerFile,
      content: content && openContent(contentAddress(config, content), clock, contentDatabase),
    },
    close: async () => {
      await ledgerFile?.close()
      for (const database of opened.values()) await (await database).close()
    },
  }
}

/** @throws ConfigError */
function makeDataDir({ storage: { data_dir: path } }: Config): void {
  try {
    makeDirectorySync(path)
  } catch (error) {
    throw new ConfigError('storage.data_dir', `storage.data_dir ${path} cannot be made: ${errorText(error)}`)
  }
}

/**
 * The content store of a configuration beside those of the service, for moving bodies into it. Only reading, it makes
 * nothing: what is not there yet is as empty. @throws ConfigError
 */
export async function openContentStore(
  config: Config,
  metadata: Database,
  readonly: boolean,
): Promise<{ store: ContentStore; close(): Promise<void> }> {
  const { content } = config.stores
  if (!content) throw new ConfigError('storage.content_driver', 'storage.content_driver none keeps no bodies apart')
  const nothing = { store: emptyContent(maskPassword(content.dsn)), close: () => Promise.resolve() }
  const address = contentAddress(config, content)
  if (!isDatabase(content)) return { ...nothing, store: openContent(address, systemClock, undefined) }
  if (content.dsn === config.stores.metadata.dsn) {
    return { ...nothing, store: openContent(address, systemClock, metadata) }
  }
  if (readonly && content.driver === 'sqlite' && !existsSync(content.dsn)) return nothing
  const database = readonly
    ? openDatabase({ ...addressOf(config, content), readonly })
    : await openMigrated(config, 'content', content)
  const store = openContent(address, systemClock, database)
  const close = (): Promise<void> => database.close()
  return readonly && !(await hasContentTable(database)) ? { store: nothing.store, close } : { store, close }
}

type ContentConfig = NonNullable<Config['stores']['content']>

const isDatabase = ({ driver }: ContentConfig): boolean => driver === 'sqlite' || driver === 'postgres'

/** Where bodies are, for this process and for its workers. */
export function contentAddress(config: Config, store: ContentConfig): ContentAddress {
  if (store.driver === 'file') return { driver: 'file', root: store.dsn }
  if (store.driver === 's3') return { driver: 's3', dsn: store.dsn, settings: requireS3(config.s3) }
  return { driver: store.driver, database: addressOf(config, store) }
}

/** Builds the indexes that a database searches vectors with, over connections of its own. */
export const vectorIndexBuilder =
  (config: Config, database: Database) =>
  (signal: AbortSignal): Promise<void> => {
    const open = () => openDatabase({ ...addressOf(config, config.stores.vector), alone: true })
    return buildVectorIndexes(database, open, signal)
  }

async function preparePgvector(
  open: (seam: string, store: Store<string>) => Promise<Database>,
  store: Store<string>,
): Promise<Database> {
  const database = await open('vector', store)
  try {
    await requirePgvector(database)
    await migrate(database, 'memory-pgvector', join(packageRoot, 'migrations/memory-pgvector'), systemClock.now())
    return database
  } catch (error) {
    const reason = maskPassword(errorText(error))
    throw new ConfigError('storage.vector_driver', `storage.vector_driver pgvector cannot be used: ${reason}`)
  }
}

const SERVICE = 'memory'
const MIGRATIONS = join(packageRoot, 'migrations/memory')

/** Changes nothing. @throws MigrationError where a start would refuse the schema */
export async function requireKnownSchema(database: Database): Promise<void> {
  await readMigrationStates(database, SERVICE, MIGRATIONS, 'schema_migrations')
}

async function openMigrated(
  config: Config,
  seam: string,
  store: Store<string>,
  flushesAtOnce = false,
): Promise<Database> {
  const key = `storage.${seam}_dsn`
  try {
    const database = openDatabase({ ...addressOf(config, store), flushesAtOnce })
    await migrate(database, SERVICE, MIGRATIONS, systemClock.now())
    return database
  } catch (error) {
    if (error instanceof MigrationError) throw new ConfigError(key, `${maskPassword(store.dsn)}: ${error.message}`)
    throw new ConfigError(key, `${key} ${maskPassword(store.dsn)} cannot be used: ${maskPassword(errorText(error))}`)
  }
}
