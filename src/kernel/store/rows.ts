import type { Param, Queryable } from '../../database/database.ts'

/** Many rows as one parameter, in JSON, for PostgreSQL: the statement is the same for any number of them, and is planned once. */

/** `FROM` this come rows with columns of a table, which are given as members; an object is the text of its JSON. */
export const recordsOf = (param: string, table: string): string =>
  `json_populate_recordset(CAST(NULL AS ${table}), CAST(${param} AS json))`

/** The same for columns of any types; behind it stands the name of the rows. */
const rowsOf = (param: string, name: string, columns: Columns): string =>
  `json_to_recordset(CAST(${param} AS json)) AS ${name} (${Object.entries(columns)
    .map((column) => column.join(' '))
    .join(', ')})`

/** What its JSON cannot hold and its text can: NUL and halves of surrogate pairs, which models and services may send. */
const UNREADABLE = /\\u(?:0000|d[89a-f])/

/** The rows as one parameter: with such characters an object goes in as its own JSON text, which is what becomes of it anyway. */
export function textOf(rows: readonly object[]): string {
  const json = JSON.stringify(rows)
  return UNREADABLE.test(json) ? JSON.stringify(rows.map(withTexts)) : json
}

const withTexts = (row: object): object =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === 'object' ? toParam(value) : value]),
  )

/** What goes in besides bodies: PostgreSQL takes no half of a surrogate pair. */
export const wellFormed = <T>(value: T): T | string =>
  typeof value === 'string' && /\p{Surrogate}/u.test(value) ? Buffer.from(value).toString() : value

/** What a row holds, where it is a parameter by itself. */
export const toParam = (value: unknown): Param =>
  typeof value === 'string' || typeof value === 'number'
    ? value
    : (value ?? null) === null
      ? null
      : JSON.stringify(value)

type Columns = Record<string, 'TEXT' | 'BIGINT'>

type RowToWrite = { id: string } & Record<string, unknown>

/** How a row is written: `v` has what stands for the columns of the row, and `from` where they come from, if anywhere. */
type Writing = (v: Readonly<Record<string, string>>, from: string) => string

interface Gathered {
  rows: Map<string, object>
  /** Ids of those that were written. */
  written: Promise<ReadonlySet<string>>
}

const gathering = new WeakMap<Queryable, Map<string, Gathered>>()

/**
 * Writes one row in the scope $1; false where the statement wrote none. On PostgreSQL what one transaction writes by the same
 * statement at the same time goes in one. SQLite has no way to the server to save, and takes single values faster.
 * @param columns those of `table`, or with their types
 */
export async function writeRow(
  tx: Queryable,
  { scope, table, columns, row }: { scope: string; table: string; columns?: Columns; row: RowToWrite },
  writing: Writing,
): Promise<boolean> {
  const names = Object.keys(columns ?? row)
  if (tx.dialect === 'sqlite') {
    const v = Object.fromEntries(names.map((name, i) => [name, `$${i + 2}`]))
    return (await tx.run(writing(v, ''), [scope, ...names.map((name) => toParam(row[name]))])) === 1
  }
  const v = Object.fromEntries(names.map((name) => [name, `v.${name}`]))
  const rows = columns ? rowsOf('$2', 'v', columns) : `${recordsOf('$2', table)} v`
  const written = gather(tx, scope, `${writing(v, `FROM ${rows}`)} RETURNING ${table}.id`, row)
  return (await written).has(row.id)
}

/** A row that is there already is written by a statement of its own behind: what that finds tells whether it may. */
function gather(tx: Queryable, scope: string, sql: string, row: RowToWrite): Promise<ReadonlySet<string>> {
  const all = gathering.get(tx) ?? new Map<string, Gathered>()
  gathering.set(tx, all)
  const key = `${scope} ${sql}`
  let gathered = all.get(key)
  if (!gathered || gathered.rows.has(row.id)) {
    const rows = new Map<string, object>()
    const write = async (): Promise<ReadonlySet<string>> => {
      if (all.get(key)?.rows === rows) all.delete(key)
      const written = await tx.all<{ id: string }>(sql, [scope, textOf([...rows.values()])])
      return new Set(written.map(({ id }) => id))
    }
    gathered = { rows, written: Promise.resolve().then(write) }
    all.set(key, gathered)
  }
  gathered.rows.set(row.id, row)
  return gathered.written
}
