import * as z from 'zod'
import { encodeCursor, pageLimit, type Page } from '../../base/pages.ts'
import { cursorKey } from '../routes/lists.ts'

/** An answer that its caller did not size ends here: some 2,000 tokens of 4 characters, with room for what stands around it. */
const ANSWER_CHARACTERS = 7_200

export const cursorArgument = { cursor: z.string().optional() }
export const pageArguments = { limit: z.int().optional(), ...cursorArgument }
export const nextCursor = { next_cursor: z.string().optional() }

/** What there is of an answer, and how to get on. */
export interface Part<T> {
  items: T[]
  rest: { next_cursor?: string }
}

const sizeOf = (value: unknown): number => JSON.stringify(value).length

export const isShort = (json: string): boolean => json.length <= ANSWER_CHARACTERS
export const fits = (answer: object): boolean => isShort(JSON.stringify(answer))

/** How many of the items a default answer has room for: at least one. */
function countFitting(items: readonly unknown[]): number {
  let room = ANSWER_CHARACTERS
  const end = items.findIndex((item) => (room -= sizeOf(item)) < 0)
  return end < 0 ? items.length : Math.max(end, 1)
}

/** The beginning of a text that a default answer has room for beside `rest`, whole characters; at least some of it. */
export function fittingText(text: string, rest: unknown): string {
  const room = Math.max(ANSWER_CHARACTERS - sizeOf(rest), ANSWER_CHARACTERS / 4)
  let part = text.slice(0, room)
  while (sizeOf(part) > room) part = part.slice(0, Math.floor((part.length * room) / sizeOf(part)))
  return /[\ud800-\udbff]$/.test(part) ? part.slice(0, -1) : part
}

/** A page of a list; without a limit from the caller it also ends where a default answer does. */
export async function fittingPage<T>(
  asked: number | undefined,
  standard: number,
  maximum: number,
  list: (limit: number) => Promise<Page<T>>,
): Promise<Part<T>> {
  const found = await list(pageLimit(asked, standard, maximum))
  const count = asked === undefined ? countFitting(found.items) : found.items.length
  const page = count < found.items.length ? await list(count) : found
  return { items: page.items, rest: page.nextCursor === undefined ? {} : { next_cursor: page.nextCursor } }
}

/** Of items that are worked out anew for each call, those from the cursor on: as many as fit, or all when the caller sized them. */
export function fittingPart<T>(all: readonly T[], cursor: string | undefined, isSized: boolean): Part<T> {
  const [start] = cursorKey(cursor, [0] as const) ?? [0]
  const items = all.slice(start)
  const count = isSized ? items.length : countFitting(items)
  return {
    items: items.slice(0, count),
    rest: count < items.length ? { next_cursor: encodeCursor([start + count]) } : {},
  }
}
