import { parseWholeNumber } from '../../base/whole-number.ts'
import { invalidRequest } from '../errors.ts'
import type { RestRequest } from './route.ts'

const LIMIT = 100
const LIMIT_MAX = 200

/** What of a list is asked for: rows behind an id, so many at most. */
export interface Range {
  after: number
  limit: number
}

/** @throws invalid_request 400 when `limit` or `after_id` is none. Contract: git-host.md 2.1 */
export function rangeOf({ query }: Pick<RestRequest, 'query'>): Range {
  const limit = wholeNumber('limit', query('limit')) ?? LIMIT
  if (limit < 1 || limit > LIMIT_MAX) throw invalidRequest(`limit must be 1 to ${LIMIT_MAX}`, 'limit')
  return { limit, after: wholeNumber('after_id', query('after_id')) ?? 0 }
}

/** An empty value is as good as none: it is what the last page gave. @throws invalid_request 400 that names the parameter */
export function wholeNumber(name: string, text = ''): number | undefined {
  if (text === '') return undefined
  const value = parseWholeNumber(text)
  if (value === undefined) throw invalidRequest(`${name} must be a whole number`, name)
  return value
}

/** A page under its name, from rows read with one more than asked; `next_after_id` is empty at the end. */
export async function answerList<T>(
  name: string,
  request: Pick<RestRequest, 'query'>,
  read: (after: number, limit: number) => Promise<T[]>,
  idOf: (item: T) => number,
): Promise<Record<string, unknown>> {
  const { after, limit } = rangeOf(request)
  const rows = await read(after, limit + 1)
  const last = rows[limit - 1]
  return {
    [name]: rows.slice(0, limit),
    next_after_id: rows.length > limit && last !== undefined ? String(idOf(last)) : '',
  }
}
