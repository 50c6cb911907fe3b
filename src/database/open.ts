import type { Database } from './database.ts'
import { openPostgres } from './postgres.ts'
import { openSqlite } from './sqlite.ts'

/** A database as configured: a file path or a `postgres://` URL. */
export interface DatabaseAddress {
  dialect: 'sqlite' | 'postgres'
  dsn: string
  /** SQLite only. */
  synchronous: 'full' | 'normal'
  readonly?: boolean
  /** PostgreSQL only: one connection, for statements of any length. */
  alone?: boolean
}

export const openDatabase = (address: DatabaseAddress): Database =>
  address.dialect === 'sqlite'
    ? openSqlite({ path: address.dsn, synchronous: address.synchronous, readonly: address.readonly ?? false })
    : openPostgres({ url: address.dsn, alone: address.alone ?? false })
