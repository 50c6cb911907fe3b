import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import type Pg from 'pg'
import type { Database, Param, Queryable } from './database.ts'

export interface PostgresOptions {
  url: string
  /** One connection, whose statements may take as long as they need: to build indexes with. */
  alone?: boolean
}

/** To connect, and to wait for a free connection: as long as a request may run. */
const CONNECT_TIMEOUT_MS = 30_000
const STATEMENT_TIMEOUT_MS = 60_000
/** serialization_failure, deadlock_detected: run again, the rows were only contended. */
const RETRYABLE = new Set(['40001', '40P01'])
const ATTEMPTS = 5

/** Loaded with the first database: it takes 30 ms, for which a server on SQLite has no use. */
const driver = (): typeof Pg => createRequire(import.meta.url)('pg')

/** Counts and millisecond times come as numbers, not as text: all of ours stay below 2^53. */
function customTypes({ types }: typeof Pg): Pg.CustomTypesConfig {
  const int8: number = types.builtins.INT8
  return {
    getTypeParser(oid: number, format?: 'text' | 'binary') {
      if (oid === int8) return Number
      return format === 'binary' ? types.getTypeParser(oid, 'binary') : types.getTypeParser(oid, 'text')
    },
  }
}

/** Opens a pool on a PostgreSQL server; connections are made when first needed. */
export function openPostgres(options: PostgresOptions): Database {
  return new PostgresDatabase(options)
}

/** A statement gets a name, so that each connection parses and plans it once. */
const statementNames = new Map<string, string>()
const statementName = (sql: string): string => {
  let name = statementNames.get(sql)
  if (!name) {
    name = `s${statementNames.size}`
    statementNames.set(sql, name)
  }
  return name
}

class Session implements Queryable {
  readonly dialect = 'postgres'
  readonly #client: Pg.Pool | Pg.PoolClient

  constructor(client: Pg.Pool | Pg.PoolClient) {
    this.#client = client
  }

  async get<T>(sql: string, params?: readonly Param[]): Promise<T | undefined> {
    return (await this.all<T>(sql, params))[0]
  }

  async all<T>(sql: string, params?: readonly Param[]): Promise<T[]> {
    return (await this.#query(sql, params)).rows as T[]
  }

  async run(sql: string, params?: readonly Param[]): Promise<number> {
    return (await this.#query(sql, params)).rowCount ?? 0
  }

  #query(sql: string, params: readonly Param[] = []): Promise<Pg.QueryResult> {
    if (params.length === 0) return this.#client.query(sql)
    return this.#client.query({ name: statementName(sql), text: sql, values: [...params] })
  }
}

class PostgresDatabase implements Database {
  readonly dialect = 'postgres'
  readonly location: string
  readonly #pool: Pg.Pool
  readonly #session: Session

  constructor(options: PostgresOptions) {
    const url = new URL(options.url)
    const pg = driver()
    this.location = `postgres://${url.host}${url.pathname}${url.search}`
    this.#pool = new pg.Pool({
      connectionString: options.url,
      max: options.alone ? 1 : 10,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      idleTimeoutMillis: 30_000,
      statement_timeout: options.alone ? 0 : STATEMENT_TIMEOUT_MS,
      idle_in_transaction_session_timeout: STATEMENT_TIMEOUT_MS,
      application_name: 'mem',
      types: customTypes(pg),
    })
    // A broken idle connection is dropped by the pool and the next query opens another one.
    this.#pool.on('error', () => undefined)
    this.#session = new Session(this.#pool)
  }

  get<T>(sql: string, params?: readonly Param[]): Promise<T | undefined> {
    return this.#session.get<T>(sql, params)
  }

  all<T>(sql: string, params?: readonly Param[]): Promise<T[]> {
    return this.#session.all<T>(sql, params)
  }

  run(sql: string, params?: readonly Param[]): Promise<number> {
    return this.#session.run(sql, params)
  }

  async transaction<T>(fn: (tx: Queryable) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#within('BEGIN', fn)
      } catch (error) {
        if (attempt === ATTEMPTS || !(error instanceof driver().DatabaseError) || !RETRYABLE.has(error.code ?? ''))
          throw error
        await sleep(attempt * 10)
      }
    }
  }

  snapshot<T>(fn: (view: Queryable) => Promise<T>): Promise<T> {
    return this.#within('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', fn)
  }

  async #within<T>(begin: string, fn: (tx: Queryable) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect()
    let broken: Error | undefined
    try {
      await client.query(begin)
      const result = await fn(new Session(client))
      await client.query('COMMIT')
      return result
    } catch (error) {
      await client.query('ROLLBACK').catch((failure: Error) => (broken = failure))
      throw error
    } finally {
      client.release(broken)
    }
  }

  version(): undefined {}

  async ping(): Promise<void> {
    await this.#pool.query('SELECT 1')
  }

  scrub(): void {
    // Vacuum frees deleted rows; there is nothing of ours to cut.
  }

  async close(): Promise<void> {
    await this.#pool.end()
  }
}
