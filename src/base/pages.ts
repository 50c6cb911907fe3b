/** One page of a list; `nextCursor` only when more rows exist. */
export interface Page<T> {
  items: T[]
  nextCursor?: string
}

type Key = readonly (string | number)[]

/** The page size in force: absent or not positive gives the default, above the maximum gives the maximum. */
export const pageLimit = (asked: number | undefined, standard: number, maximum: number): number =>
  asked === undefined || asked <= 0 ? standard : Math.min(asked, maximum)

/** An opaque cursor: the key of the last row shown, so rows added or removed meanwhile never repeat or hide others. */
export const encodeCursor = (key: Key): string => Buffer.from(JSON.stringify(key)).toString('base64url')

/** The key in a cursor of this many parts and these types (those of `shape`), or undefined when it is not one of ours. */
export function decodeCursor<K extends Key>(cursor: string, shape: K): K | undefined {
  try {
    const key: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    return matches(key, shape) && encodeCursor(key) === cursor ? key : undefined
  } catch {
    return undefined
  }
}

const matches = <K extends Key>(key: unknown, shape: K): key is K =>
  Array.isArray(key) && key.length === shape.length && key.every((part, i) => typeof part === typeof shape[i])

/** Cuts a result fetched with one row more than asked into a page. */
export function toPage<Row, T>(rows: Row[], limit: number, keyOf: (row: Row) => Key, map: (row: Row) => T): Page<T> {
  const items = rows.slice(0, limit).map(map)
  const last = rows[limit - 1]
  return rows.length > limit && last !== undefined ? { items, nextCursor: encodeCursor(keyOf(last)) } : { items }
}
