import { decodeCursor, pageLimit, type Page } from '../../base/pages.ts'
import { invalidInput } from '../errors.ts'
import type { RouteRequest } from './route.ts'

type Query = Pick<RouteRequest, 'query'>

/** @throws invalid_input 400 when `limit` is not a whole number. */
export function limitOf(request: Query, standard: number, maximum: number): number {
  const asked = request.query('limit')
  if (asked !== undefined && !/^[+-]?\d+$/.test(asked)) throw invalidInput('limit must be a whole number', 'limit')
  return pageLimit(asked === undefined ? undefined : Number(asked), standard, maximum)
}

export const cursorOf = <K extends readonly (string | number)[]>(request: Query, shape: K): K | undefined =>
  cursorKey(request.query('cursor'), shape)

/** The key that the cursor holds. @throws invalid_input 400 when it is not one of this list. */
export function cursorKey<K extends readonly (string | number)[]>(cursor: string | undefined, shape: K): K | undefined {
  if (cursor === undefined) return undefined
  const key = decodeCursor(cursor, shape)
  if (!key?.every(isStorable)) throw invalidInput('cursor is not one that this list gave', 'cursor')
  return key
}

/** A page under its name. */
export const answerPage = <T>(name: string, page: Page<T>): Record<string, unknown> => ({
  [name]: page.items,
  ...(page.nextCursor !== undefined && { next_cursor: page.nextCursor }),
})

/** PostgreSQL takes neither fractions where it counts nor U+0000 in a text. */
const isStorable = (part: string | number): boolean =>
  typeof part === 'number' ? Number.isSafeInteger(part) : !part.includes('\0')
