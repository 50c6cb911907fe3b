import { existsSync } from 'node:fs'
import { systemClock, type Clock } from '../base/clock.ts'
import { makeDirectorySync } from '../base/directory.ts'
import { errorText } from '../base/errors.ts'
import { createIdSource, type IdSource } from '../base/ids.ts'
import { createLogger } from '../base/log.ts'
import { maskPassword } from '../config/dsn.ts'
import { ConfigError } from '../config/errors.ts'
import type { Config } from '../config/load.ts'
import type { Database } from '../database/database.ts'
import { openDatabase } from '../database/open.ts'
import type { ScryptParameters } from '../platform/passwords.ts'
import type { Logger, RepositoryLinks, UserWatch } from '../platform/ports.ts'
import { readSchema, upgradeSchema } from '../platform/schema.ts'
import { Platform } from '../platform/service.ts'
import { addressOf } from './database.ts'

interface Surroundings {
  /** Who keeps users in mind, if anybody does. */
  userWatch?: UserWatch

  clock: Clock
  ids: IdSource
  log: Logger
  /** For new password hashes; a test may make them cheap. */
  scrypt?: ScryptParameters | undefined
}

/** No service links repositories yet. */
const NO_LINKS: RepositoryLinks = { exists: async () => false }

/** The platform over an open database; its schema is left as it is. */
const platformOver = (config: Config, database: Database, surroundings: Surroundings): Platform =>
  new Platform({
    ...surroundings,
    database,
    keyFile: config.platform.key_file,
    sessionTtlMs: config.platform.session_ttl,
    links: NO_LINKS,
  })

/** Opens the metadata database for the platform alone. @throws ConfigError when it cannot be used */
export const openMetadata = (config: Config): Promise<Database> =>
  explained(config, async () => {
    makeDirectorySync(config.storage.data_dir)
    const database = openDatabase(addressOf(config, config.stores.metadata))
    try {
      await database.ping()
      return database
    } catch (error) {
      await database.close()
      throw error
    }
  })

/**
 * The platform of a server: brings its schema up to date where `platform.auto_migrate` says so.
 * @throws ConfigError when the store, its schema or the key file cannot be used
 */
export async function createPlatform(
  config: Config,
  database: Database,
  surroundings: Surroundings,
): Promise<Platform> {
  const platform = platformOver(config, database, surroundings)
  await explained(config, () =>
    config.platform.auto_migrate ? upgradeSchema(database, surroundings.clock.now()) : requireSchema(database),
  )
  await readKeys(config, platform)
  return platform
}

/** Whether there is an organization. @throws ConfigError when there is one, or a key file, and the file cannot be used */
async function readKeys({ platform: { key_file } }: Config, { organizations, sealer }: Platform): Promise<boolean> {
  const isInitialized = await organizations.isInitialized()
  if (isInitialized || existsSync(key_file)) sealer.keys()
  return isInitialized
}

/** Refuses what `createPlatform` would, and changes nothing; whether there is an organization. @throws ConfigError */
export async function examinePlatform(config: Config, surroundings: Surroundings): Promise<boolean> {
  const database = openDatabase({ ...addressOf(config, config.stores.metadata), readonly: true })
  try {
    await explained(config, async () => {
      await (config.platform.auto_migrate ? readSchema(database) : requireSchema(database))
    })
    return await readKeys(config, platformOver(config, database, surroundings))
  } finally {
    await database.close()
  }
}

/** @throws ConfigError for a schema that is there, but behind this program */
async function requireSchema(database: Database): Promise<void> {
  const states = await readSchema(database)
  const missing = states.filter(({ appliedAt }) => appliedAt === undefined)
  if (missing.length === 0 || missing.length === states.length) return
  const versions = missing.map(({ version }) => version).join(', ')
  throw new ConfigError(
    'platform.auto_migrate',
    `the platform schema lacks ${versions}: run \`mem platform migrate up\`; with platform.auto_migrate the server does it when it starts`,
  )
}

/**
 * Works on the store itself, beside a running server or without one.
 * @throws ConfigError when the store or its schema cannot be used
 */
export async function withPlatform<T>(
  config: Config,
  { upgrade, scrypt }: { upgrade: boolean; scrypt?: ScryptParameters },
  work: (platform: Platform) => Promise<T>,
): Promise<T> {
  const log = createLogger(config.telemetry.log_level, config.telemetry.log_format)
  const database = await openMetadata(config)
  try {
    await explained(config, () => (upgrade ? upgradeSchema(database, systemClock.now()) : requireSchema(database)))
    const surroundings = { clock: systemClock, ids: createIdSource(systemClock), log, scrypt }
    return await work(platformOver(config, database, surroundings))
  } finally {
    await database.close()
  }
}

/** What a database or its schema fails with, under the name of its setting. */
export async function explained<T>(config: Config, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ConfigError) throw error
    const key = 'storage.metadata_dsn'
    const place = maskPassword(config.stores.metadata.dsn)
    throw new ConfigError(key, `${key} ${place} cannot be used: ${maskPassword(errorText(error))}`)
  }
}
