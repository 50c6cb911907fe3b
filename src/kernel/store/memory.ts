import type Sqlite from 'better-sqlite3'
import type { Database, Param, Queryable } from '../../database/database.ts'
import { SqliteDriver } from '../../database/sqlite-driver.ts'

/** A database in the memory of this process, gone with it: for tests. Its one connection serves one after the other. */
export function openMemory(): Database {
  return new MemoryDatabase()
}

class MemoryDatabase implements Database {
  readonly dialect = 'sqlite'
  readonly location = ':memory:'
  readonly #raw = new SqliteDriver(':memory:')
  readonly #statements = new Map<string, Sqlite.Statement>()
  #turn: Promise<unknown> = Promise.resolve()

  constructor() {
    this.#raw.pragma('foreign_keys = ON')
  }

  get<T>(sql: string, params?: readonly Param[]): Promise<T | undefined> {
    return this.#inTurn((db) => db.get<T>(sql, params))
  }

  all<T>(sql: string, params?: readonly Param[]): Promise<T[]> {
    return this.#inTurn((db) => db.all<T>(sql, params))
  }

  run(sql: string, params?: readonly Param[]): Promise<number> {
    return this.#inTurn((db) => db.run(sql, params))
  }

  transaction<T>(fn: (tx: Queryable) => Promise<T>): Promise<T> {
    return this.#inTurn(async (db) => {
      this.#raw.exec('BEGIN')
      try {
        const result = await fn(db)
        this.#raw.exec('COMMIT')
        return result
      } catch (error) {
        if (this.#raw.inTransaction) this.#raw.exec('ROLLBACK')
        throw error
      }
    })
  }

  snapshot<T>(fn: (view: Queryable) => Promise<T>): Promise<T> {
    return this.#inTurn(fn)
  }

  version(): undefined {}

  async ping(): Promise<void> {
    await this.get('SELECT 1')
  }

  scrub(): void {
    // Nothing is written anywhere.
  }

  close(): Promise<void> {
    return this.#inTurn(async () => void this.#raw.close())
  }

  /** What a transaction has half done is seen by none but itself. */
  #inTurn<T>(fn: (db: Queryable) => Promise<T>): Promise<T> {
    const result = this.#turn.then(() => fn(this.#connection))
    this.#turn = result.catch(() => undefined)
    return result
  }

  readonly #connection: Queryable = {
    dialect: 'sqlite',
    get: async <T>(sql: string, params: readonly Param[] = []) => this.#prepare(sql).get(bind(params)) as T | undefined,
    all: async <T>(sql: string, params: readonly Param[] = []) => this.#prepare(sql).all(bind(params)) as T[],
    run: async (sql, params = []) => this.#prepare(sql).run(bind(params)).changes,
  }

  #prepare(sql: string): Sqlite.Statement {
    const statement = this.#statements.get(sql) ?? this.#raw.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }
}

const bind = (params: readonly Param[]): Record<string, Param> =>
  Object.fromEntries(params.map((param, i) => [i + 1, param]))
