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
  /** SQLite only. */
  flushesAtOnce?: boolean
  /** PostgreSQL only: one connection, for statements of any length. */
  alone?: boolean
}

export const openDatabase = ({ dialect, dsn, alone = false, ...options }: DatabaseAddress): Database =>
  dialect === 'sqlite' ? openSqlite({ path: dsn, ...options }) : openPostgres({ url: dsn, alone })
