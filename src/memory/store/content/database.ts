import type { Clock } from '../../../base/clock.ts'
import { errorText } from '../../../base/errors.ts'
import { inList, type Database } from '../../../database/database.ts'
import { ContentError, type ContentStore, type StoredObject } from './store.ts'

const PAGE = 1000

/** Bodies as rows of a table, in the metadata database or another one. */
export class DatabaseContent implements ContentStore {
  readonly location: string
  readonly #db: Database
  readonly #clock: Clock

  constructor(db: Database, clock: Clock) {
    this.location = db.location
    this.#db = db
    this.#clock = clock
  }

  async put(key: string, body: Uint8Array, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    await this.#told(
      this.#db.run(
        `INSERT INTO content (key, body, stored_at) VALUES ($1, $2, $3)
         ON CONFLICT (key) DO UPDATE SET body = excluded.body, stored_at = excluded.stored_at`,
        [key, body, this.#clock.now()],
      ),
    )
  }

  async get(keys: readonly string[], signal?: AbortSignal): Promise<Map<string, Uint8Array>> {
    signal?.throwIfAborted()
    const rows = await this.#told(
      this.#db.all<{ key: string; body: Uint8Array }>(
        `SELECT key, body FROM content WHERE key IN ${inList(this.#db, '$1')}`,
        [JSON.stringify(keys)],
      ),
    )
    return new Map(rows.map(({ key, body }) => [key, body]))
  }

  async delete(keys: readonly string[]): Promise<void> {
    await this.#told(this.#db.run(`DELETE FROM content WHERE key IN ${inList(this.#db, '$1')}`, [JSON.stringify(keys)]))
    this.#db.scrub()
  }

  async *list(prefix: string, after = prefix): AsyncGenerator<StoredObject[]> {
    // Behind `/` comes `0`: the first text that does not begin with the prefix.
    const end = `${prefix.slice(0, -1)}0`
    for (let last = after; ;) {
      const rows = await this.#told(
        this.#db.all<{ key: string; stored_at: number }>(
          'SELECT key, stored_at FROM content WHERE key > $1 AND key < $2 ORDER BY key LIMIT $3',
          [last, end, PAGE],
        ),
      )
      if (rows.length > 0) yield rows.map((row) => ({ key: row.key, storedAt: row.stored_at }))
      if (rows.length < PAGE) return
      last = rows.at(-1)?.key ?? end
    }
  }

  ping(): Promise<void> {
    return this.#told(this.#db.ping())
  }

  /** The database belongs to whoever opened it. */
  close(): Promise<void> {
    return Promise.resolve()
  }

  async #told<T>(work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (error) {
      throw new ContentError(`${this.location}: ${errorText(error)}`, { cause: error })
    }
  }
}

/** The schema that holds bodies is there. */
export async function hasContentTable(db: Database): Promise<boolean> {
  const table = {
    sqlite: "SELECT 1 FROM sqlite_master WHERE name = 'content'",
    postgres: "SELECT to_regclass('content') AS t",
  }
  const row = await db.get<{ t?: string | null }>(table[db.dialect])
  return row !== undefined && row.t !== null
}
