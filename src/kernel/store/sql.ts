import { inList, type Param, type Queryable } from '../../database/database.ts'

/** What narrows a list: conditions that are all true, with their parameters. */
export class Conditions {
  readonly params: Param[] = []
  readonly #parts: string[] = []

  /** `?` stands for the next of `values`. */
  and(sql: string, ...values: readonly Param[]): this {
    let next = 0
    this.#parts.push(sql.replace(/\?/g, () => `$${this.params.push(values[next++] ?? null)}`))
    return this
  }

  /** Nothing where the value was not asked for. */
  equal(column: string, value: Param | undefined): this {
    return value === undefined ? this : this.and(`${column} = ?`, value)
  }

  /** One of these; anything where none was asked for. */
  among(column: string, values: readonly string[] | undefined): this {
    return values?.length ? this.and(`${column} IN (${values.map(() => '?').join(', ')})`, ...values) : this
  }

  get sql(): string {
    return this.#parts.join(' AND ')
  }
}

/**
 * `column` is among what a statement selects that finds few rows: they are looked up one by one. PostgreSQL would read the
 * table whole where it expects more of them.
 */
export const amongFew = (db: Queryable, column: string, select: string): string =>
  db.dialect === 'sqlite' ? `${column} IN (${select})` : `${column} = ANY (ARRAY(${select}))`

/** `column` is among a list of ids, as JSON in one parameter; they are looked up one by one. */
export const amongIds = (db: Queryable, column: string, param: string): string =>
  db.dialect === 'sqlite' ? `${column} IN ${inList(db, param)}` : `${column} = ANY (ARRAY${inList(db, param)})`

/** Takes the lock of the rows that a transaction will change; SQLite has one writer anyway. */
export const forUpdate = (db: Queryable, of = ''): string => (db.dialect === 'sqlite' ? '' : ` FOR UPDATE ${of}`)

/** The same, without those that another transaction works on. */
export const skipLocked = (db: Queryable, of = ''): string =>
  db.dialect === 'sqlite' ? '' : ` FOR UPDATE ${of} SKIP LOCKED`

/** Epoch milliseconds of a record's time. */
export const ms = (time: string): number => Date.parse(time)

export const msOrNull = (time: string | undefined): number | null => (time === undefined ? null : ms(time))
