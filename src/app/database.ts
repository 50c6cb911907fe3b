import type { Store } from '../config/dsn.ts'
import type { Config } from '../config/load.ts'
import type { DatabaseAddress } from '../database/open.ts'

/** Where a database store is. */
export const addressOf = (config: Config, store: Store<string>): DatabaseAddress => ({
  dialect: store.driver === 'sqlite' ? 'sqlite' : 'postgres',
  dsn: store.dsn,
  synchronous: config.storage.sqlite_synchronous,
})
