import * as z from 'zod'
import { pageLimit, type Page } from '../../base/pages.ts'

/** An answer that its caller did not size ends here: some 2,000 tokens of 4 characters. */
export const ANSWER_CHARACTERS = 7_500

export const pageArguments = { limit: z.int().optional(), cursor: z.string().optional() }

export const nextCursor = { next_cursor: z.string().optional() }

/** How many of the items a default answer has room for: at least one. */
function countFitting(items: readonly unknown[]): number {
  let room = ANSWER_CHARACTERS
  const end = items.findIndex((item) => (room -= JSON.stringify(item).length) < 0)
  return end < 0 ? items.length : Math.max(end, 1)
}

/** A page of a list; without a limit from the caller it also ends where a default answer does. */
export async function fittingPage<T>(
  asked: number | undefined,
  standard: number,
  maximum: number,
  list: (limit: number) => Promise<Page<T>>,
): Promise<{ items: T[]; rest: { next_cursor?: string } }> {
  const found = await list(pageLimit(asked, standard, maximum))
  const count = asked === undefined ? countFitting(found.items) : found.items.length
  const page = count < found.items.length ? await list(count) : found
  return { items: page.items, rest: page.nextCursor === undefined ? {} : { next_cursor: page.nextCursor } }
}
