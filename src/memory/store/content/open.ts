import type { Clock } from '../../../base/clock.ts'
import type { Database } from '../../../database/database.ts'
import type { DatabaseAddress } from '../../../database/open.ts'
import { DatabaseContent } from './database.ts'
import { FileContent } from './file.ts'
import { S3Content, type S3Settings } from './s3.ts'
import type { ContentStore } from './store.ts'

/** Where a content store is; plain data, so that a worker can open its own. */
export type ContentAddress =
  | { driver: 'sqlite' | 'postgres'; database: DatabaseAddress }
  | { driver: 'file'; root: string }
  | { driver: 's3'; dsn: string; settings: S3Settings }

/** Gives the driver, which touches nothing yet. `database` is that of the address, opened by who closes it. */
export function openContent(address: ContentAddress, clock: Clock, database: Database | undefined): ContentStore {
  if (address.driver === 'file') return new FileContent(address.root)
  if (address.driver === 's3') return new S3Content(address.dsn, address.settings)
  if (!database) throw new Error(`the content driver ${address.driver} needs a database`)
  return new DatabaseContent(database, clock)
}
