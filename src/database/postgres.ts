import { createRequire } from 'node:module'
import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type Pg from 'pg'
import { backOff } from '../base/back-off.ts'
import type { Database, Param, Queryable } from './database.ts'

export interface PostgresOptions {
  url: string
  /** One connection, whose statements may take as long as they need: to build indexes with. */
  alone?: boolean
  pool?: PoolSize
  /** After which a connection without an answer is given up, ms. */
  answerTimeoutMs?: number
  /** Transactions keep no locks while they wait for the disk: others may see what is not on it yet. */
  locksBriefly?: boolean
}

/** How many connections there are, and how long. */
export interface PoolSize {
  maxOpen: number
  /** What a burst opened beyond these is closed soon after it. */
  maxIdle: number
  /** 0 is no bound. */
  maxLifetimeMs: number
  maxIdleTimeMs: number
}

const POOL: PoolSize = { maxOpen: 10, maxIdle: 10, maxLifetimeMs: 0, maxIdleTimeMs: 30_000 }
/** Connections beyond `maxIdle` that nobody needed for so long are closed. */
const TRIM_AFTER_MS = 1000

/** To connect, and to wait for a free connection: as long as a request may run. */
const CONNECT_TIMEOUT_MS = 30_000
const STATEMENT_TIMEOUT_MS = 60_000
/** For the answer: a server that has vanished, or stands still, ends no statement. */
const ANSWER_TIMEOUT_MS = STATEMENT_TIMEOUT_MS + 5000
/** serialization_failure, deadlock_detected: run again, the rows were only contended. */
const RETRYABLE = new Set(['40001', '40P01'])
const ATTEMPTS = 5
const FIRST_PAUSE_MS = 20
const MOST_PAUSE_MS = 500

const BEGIN_WITHOUT_FLUSH = 'BEGIN; SET LOCAL synchronous_commit = off'
/**
 * A commit that waits for the disk keeps its locks until then: transactions that lock the same row would come one to a flush. So
 * it commits without, and something that nobody reads right behind it with one, which takes all before it along.
 * https://www.postgresql.org/docs/current/wal-async-commit.html
 */
const COMMIT_THEN_FLUSH = `COMMIT; SELECT pg_logical_emit_message(true, 'mem', '')`

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

/** What is written in one turn of the event loop goes out at once: each write costs more than what most statements do. */
class GatheringSocket extends Socket {
  override uncork(): void {
    process.nextTick(() => super.uncork())
  }
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
  /** Sent, and not answered yet. */
  readonly #underWay = new Set<Promise<unknown>>()
  #wrote = false
  #isOver = false

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

  /** Whether there was any statement but SELECT, or one of which that is not known yet. */
  get wrote(): boolean {
    return this.#wrote || this.#underWay.size > 0
  }

  /** Its transaction ends: what a part of it still wanted to do then would be a transaction of its own. Gives what is under way. */
  end(): Promise<unknown>[] {
    this.#isOver = true
    return [...this.#underWay]
  }

  async #query(sql: string, params: readonly Param[] = []): Promise<Pg.QueryResult> {
    if (this.#isOver) throw new Error('the transaction is over')
    const sent =
      params.length === 0
        ? this.#client.query(sql)
        : this.#client.query({ name: statementName(sql), text: sql, values: [...params] })
    this.#underWay.add(sent)
    try {
      const result = await sent
      this.#wrote ||= result.command !== 'SELECT'
      return result
    } finally {
      this.#underWay.delete(sent)
    }
  }
}

/** What a commit of a failed transaction does, without an error. */
const isRolledBack = (results: Pg.QueryResult | Pg.QueryResult[]): boolean =>
  [results].flat().some(({ command }) => command === 'ROLLBACK')

class PostgresDatabase implements Database {
  readonly dialect = 'postgres'
  readonly location: string
  readonly #pool: Pg.Pool
  readonly #session: Session
  readonly #maxIdle: number
  /** Since the watch began. */
  #leastIdle = Infinity
  readonly #locksBriefly: boolean
  #trim: NodeJS.Timeout | undefined

  constructor(options: PostgresOptions) {
    const url = new URL(options.url)
    const pg = driver()
    const { maxOpen, maxIdle, maxLifetimeMs, maxIdleTimeMs } = options.pool ?? POOL
    this.location = `postgres://${url.host}${url.pathname}${url.search}`
    this.#pool = new pg.Pool({
      connectionString: options.url,
      max: options.alone ? 1 : maxOpen,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      idleTimeoutMillis: maxIdleTimeMs,
      maxLifetimeSeconds: maxLifetimeMs / 1000,
      statement_timeout: options.alone ? 0 : STATEMENT_TIMEOUT_MS,
      query_timeout: options.alone ? 0 : (options.answerTimeoutMs ?? ANSWER_TIMEOUT_MS),
      idle_in_transaction_session_timeout: STATEMENT_TIMEOUT_MS,
      application_name: 'mem',
      // Statements that a transaction makes at once are on their way together.
      pipeline: true,
      stream: () => new GatheringSocket(),
      types: customTypes(pg),
    })
    // A broken idle connection is dropped by the pool and the next query opens another one.
    this.#pool.on('error', () => undefined)
    // One that breaks between the statements of a transaction fails the next of them; unheard it would end the process.
    this.#pool.on('connect', (client) => void client.on('error', () => undefined))
    this.#maxIdle = maxIdle
    this.#pool.on('acquire', () => void (this.#leastIdle = Math.min(this.#leastIdle, this.#pool.idleCount)))
    this.#pool.on('release', () => {
      if (this.#pool.idleCount >= maxIdle) this.#watchIdle()
    })
    this.#session = new Session(this.#pool)
    this.#locksBriefly = options.locksBriefly ?? false
  }

  /** Counts from now on how many connections are never needed. */
  #watchIdle(): void {
    if (this.#trim) return
    this.#leastIdle = Infinity
    this.#trim = setTimeout(() => this.#trimIdle(), TRIM_AFTER_MS).unref()
  }

  #trimIdle(): void {
    this.#trim = undefined
    const unneeded = Math.min(this.#leastIdle, this.#pool.idleCount) - this.#maxIdle
    this.#closeIdle(unneeded).catch(() => undefined) // the pool ended meanwhile, and closed them itself
    if (this.#pool.idleCount > this.#maxIdle) this.#watchIdle()
  }

  async #closeIdle(count: number): Promise<void> {
    for (let i = 0; i < count && this.#pool.idleCount > this.#maxIdle && !this.#pool.ending; i++) {
      ;(await this.#pool.connect()).release(true)
    }
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
    const end = await this.#repeat(() => this.#within(this.#locksBriefly ? BEGIN_WITHOUT_FLUSH : 'BEGIN', fn))
    return end() // it may be committed: whatever fails here must not run it again
  }

  /** Again while rows are contended. */
  async #repeat<T>(run: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await run()
      } catch (error) {
        if (attempt === ATTEMPTS || !(error instanceof driver().DatabaseError) || !RETRYABLE.has(error.code ?? ''))
          throw error
        await sleep(backOff(attempt, FIRST_PAUSE_MS, MOST_PAUSE_MS))
      }
    }
  }

  async snapshot<T>(fn: (view: Queryable) => Promise<T>): Promise<T> {
    return (await this.#within('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', fn))()
  }

  /** Gives what gives the result, or throws why the commit failed. */
  async #within<T>(begin: string, fn: (tx: Queryable) => Promise<T>): Promise<() => T> {
    const client = await this.#pool.connect()
    const session = new Session(client)
    let broken: Error | undefined
    try {
      await client.query(begin)
      const result = await fn(session)
      const commit = this.#locksBriefly && session.wrote ? COMMIT_THEN_FLUSH : 'COMMIT'
      // Where one of those that are under way fails, the commit behind it is a rollback.
      const underWay = session.end()
      const [committed, ...ends] = await Promise.allSettled([client.query(commit), ...underWay])
      for (const end of ends) if (end.status === 'rejected') throw end.reason
      return () => {
        if (committed.status === 'rejected') throw committed.reason
        if (isRolledBack(committed.value))
          throw new Error('the transaction was rolled back: a statement of it failed unheard')
        return result
      }
    } catch (error) {
      void session.end()
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
    clearTimeout(this.#trim)
    await this.#pool.end()
  }
}
