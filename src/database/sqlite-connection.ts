import type Sqlite from 'better-sqlite3'
import type { Param, Queryable } from './database.ts'
import { SqliteDriver } from './sqlite-driver.ts'

const BUSY_TIMEOUT_MS = 5000
/**
 * Of the log, before a commit brings them into the database where `Checkpoints` has not: 16 MB. SQLite finds up to 4062
 * pages of the log in one look.
 */
const CHECKPOINT_PAGES = 4000

/** Two processes that switch a new file at once are refused at once: SQLite does not wait where waiting could deadlock. */
function useWriteAheadLog(raw: Sqlite.Database, timeout: number): void {
  const end = performance.now() + timeout
  for (;;) {
    try {
      raw.pragma('journal_mode = WAL')
      return
    } catch (error) {
      if (!(error instanceof SqliteDriver.SqliteError) || error.code !== 'SQLITE_BUSY' || performance.now() > end)
        throw error
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
    }
  }
}

/** One connection with its prepared statements. Promises are already settled: awaiting them costs a microtask. */
export class Connection implements Queryable {
  readonly dialect = 'sqlite'
  readonly raw: Sqlite.Database
  readonly #statements = new Map<string, Statement>()

  /** @param timeout how long another process that writes is waited for, ms */
  constructor(path: string, readonly: boolean, timeout = BUSY_TIMEOUT_MS) {
    this.raw = new SqliteDriver(path, { timeout, readonly })
    if (!readonly) {
      useWriteAheadLog(this.raw, timeout)
      // `full` is made of this and a flush after each commit.
      this.raw.pragma('synchronous = NORMAL')
      this.raw.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`)
      this.raw.pragma('secure_delete = ON')
      this.raw.pragma('foreign_keys = ON')
    }
    this.raw.pragma('cache_size = -16000')
  }

  async get<T>(sql: string, params: readonly Param[] = []): Promise<T | undefined> {
    const statement = this.#prepare(sql)
    return statement.prepared.get(bind(statement, params)) as T | undefined
  }

  async all<T>(sql: string, params: readonly Param[] = []): Promise<T[]> {
    const statement = this.#prepare(sql)
    return statement.prepared.all(bind(statement, params)) as T[]
  }

  async run(sql: string, params: readonly Param[] = []): Promise<number> {
    const statement = this.#prepare(sql)
    return statement.prepared.run(bind(statement, params)).changes
  }

  /** Of the commits of all others: a connection that only reads sees every one. */
  version(): number {
    return this.#prepare('PRAGMA data_version').prepared.pluck().get() as number
  }

  #prepare(sql: string): Statement {
    let statement = this.#statements.get(sql)
    if (!statement) {
      const names = sql.match(PARAM) ?? []
      const isInOrder = names.every((name, i) => name === `$${i + 1}`)
      const prepared = this.raw.prepare(isInOrder ? sql.replace(PARAM, '?') : sql)
      statement = { prepared, isInOrder }
      this.#statements.set(sql, statement)
    }
    return statement
  }
}

interface Statement {
  readonly prepared: Sqlite.Statement
  /** Whether `$1`, `$2`, … stand once each in their order: as `?` they are bound by place, which is faster. */
  readonly isInOrder: boolean
}

const PARAM = /\$\d+/g

/** `$1` is a named parameter to SQLite, so a list is bound by its positions. */
function bind({ isInOrder }: Statement, params: readonly Param[]): readonly Param[] | Record<string, Param> {
  if (isInOrder) return params
  const named: Record<string, Param> = {}
  for (let i = 0; i < params.length; i++) named[i + 1] = params[i] ?? null
  return named
}
