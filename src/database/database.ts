/** A value bound to `$1`, `$2`, … Booleans are stored as 0/1 and times as epoch milliseconds in both dialects. */
export type Param = string | number | null | Uint8Array

/** What a column gives back. */
export type Row = Record<string, unknown>

/** Statements in one SQL text for both dialects; `$n` may be used more than once. */
export interface Queryable {
  readonly dialect: 'sqlite' | 'postgres'
  /** First row, or undefined. */
  get<T = Row>(sql: string, params?: readonly Param[]): Promise<T | undefined>
  all<T = Row>(sql: string, params?: readonly Param[]): Promise<T[]>
  /** Number of rows changed. */
  run(sql: string, params?: readonly Param[]): Promise<number>
}

export interface Database extends Queryable {
  /** Where it is, without credentials: for messages, and to tell whether two seams share one database. */
  readonly location: string
  /**
   * Runs `fn` as one transaction and resolves once it is durable; a throw rolls back.
   * `fn` awaits nothing but its own statements, and may run again after a serialization failure. On PostgreSQL the commit goes
   * right behind statements that it did not wait for: where one of them fails, so does the transaction.
   */
  transaction<T>(fn: (tx: Queryable) => Promise<T>): Promise<T>
  /** Runs `fn` over one consistent state, whatever is committed meanwhile. `fn` awaits nothing but its own statements. */
  snapshot<T>(fn: (view: Queryable) => Promise<T>): Promise<T>
  /**
   * A number that stays as long as nobody commits anything, in any process. Undefined where that is not known for nothing
   * (PostgreSQL).
   */
  version(): number | undefined
  /** Rejects with the reason when the database does not answer. */
  ping(): Promise<void>
  /** Overwrites what deleted rows left in log files, where the engine keeps such (SQLite); soon, not at once. */
  scrub(): void
  close(): Promise<void>
}

/** A list of strings as one JSON parameter: `column IN ${inList(db, '$2')}`. */
export const inList = (db: Queryable, param: string): string =>
  db.dialect === 'sqlite'
    ? `(SELECT value FROM json_each(${param}))`
    : `(SELECT json_array_elements_text(${param}::json) AS value)`

/** Like `inList`, for whole numbers. */
export const inNumbers = (db: Queryable, param: string): string =>
  db.dialect === 'sqlite'
    ? `(SELECT value FROM json_each(${param}))`
    : `(SELECT json_array_elements_text(${param}::json)::bigint)`
