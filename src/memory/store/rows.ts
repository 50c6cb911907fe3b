import type { Param, Queryable } from '../../database/database.ts'

/** An object as stored, or null. */
export const toJson = (value: object | undefined): string | null => (value === undefined ? null : JSON.stringify(value))

/** A JSON column as a free object; the key is left out where the column is null. */
export const fromJson = (text: string | null): Record<string, unknown> | undefined =>
  text === null ? undefined : (JSON.parse(text) as Record<string, unknown>)

/** The same for an object of texts. */
export const stringsFromJson = (text: string | null): Record<string, string> | undefined =>
  text === null ? undefined : (JSON.parse(text) as Record<string, string>)

export { optional } from '../../database/rows.ts'

/** Rows of one insert: 64 at a time, so that a statement text is prepared once and round trips are few. */
const CHUNK = 64
/** Of one row, as most inserts are, by its width. */
const onePlaces: string[] = []

/**
 * Inserts many rows in few statements; `columns` is the list as written in SQL.
 * With a `returning` clause it gives those columns of each new row, in no promised order.
 */
export async function insertMany<T = never>(
  tx: Queryable,
  table: string,
  columns: string,
  rows: readonly (readonly Param[])[],
  returning?: string,
): Promise<T[]> {
  const inserted: T[] = []
  for (let start = 0; start < rows.length; start += CHUNK) {
    const chunk = rows.slice(start, start + CHUNK)
    const sql = `INSERT INTO ${table} (${columns}) VALUES ${placesFor(chunk)}`
    if (returning === undefined) await tx.run(sql, chunk.flat())
    else inserted.push(...(await tx.all<T>(`${sql} ${returning}`, chunk.flat())))
  }
  return inserted
}

/** `($1, $2), ($3, $4)` for two rows of two columns. */
function placesFor(rows: readonly (readonly Param[])[]): string {
  if (rows.length > 1) return places(rows)
  return (onePlaces[rows[0]?.length ?? 0] ??= places(rows))
}

function places(rows: readonly (readonly Param[])[]): string {
  let next = 1
  return rows.map((row) => `(${row.map(() => `$${next++}`).join(', ')})`).join(', ')
}
