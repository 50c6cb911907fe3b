import { expect } from 'vitest'
import type { LedgerEntry } from '../../src/memory/model.ts'
import type { MemoryApi, Reply } from './memory-api.ts'

/** The statuses of replies that nothing puts in order. */
export const statusesOf = (replies: Reply[]): number[] => replies.map(({ status }) => status).toSorted((a, b) => a - b)

/** `<prefix>_` + ULID (memory.md 1.1). */
export const anId = (prefix: string): string => expect.stringMatching(new RegExp(`^${prefix}_[0-9A-HJKMNP-TV-Z]{26}$`))

/** RFC 3339 UTC with exactly three fraction digits (memory.md 1.1). */
export const aTime: string = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)

/** Expects success and gives the body. */
export function expectOk(reply: Reply, status = 200): Reply['body'] {
  expect({ status: reply.status, body: reply.body }).toMatchObject({ status })
  if (status === 204) expect(reply.body).toBeUndefined()
  return reply.body
}

/** Expects the error envelope of memory.md 2.4 with these details; the message names the field at fault. */
export function expectError(reply: Reply, status: number, code: string, details: Record<string, unknown> = {}): void {
  expect({ status: reply.status, body: reply.body }).toMatchObject({ status, body: { error_code: code, details } })
  expect(reply.body).toEqual({ error_code: code, message: expect.stringMatching(/./), details: expect.any(Object) })
  if (typeof details['field'] === 'string') expect(reply.body.message).toContain(details['field'])
}

export const expectInvalid = (reply: Reply, field: string): void => expectError(reply, 400, 'invalid_input', { field })

/** Every entry of the workspace's ledger that the query selects, oldest first. */
export async function ledgerOf(api: MemoryApi, ws: string, query = ''): Promise<LedgerEntry[]> {
  return expectOk(await api.call('GET', `/workspaces/${ws}/ledger?order=asc&limit=1000&${query}`)).entries
}

/** Runs what must not be recorded. */
export async function expectNoEntry(api: MemoryApi, ws: string, action: () => Promise<unknown>): Promise<void> {
  const before = await ledgerOf(api, ws)
  await action()
  expect(await ledgerOf(api, ws)).toEqual(before)
}

/** Every row of a list, page by page; each page but the last has a cursor. */
export async function readPages(api: MemoryApi, path: string, key: string, limit: number): Promise<Reply['body'][]> {
  const rows: Reply['body'][] = []
  for (let cursor = ''; ;) {
    const page = expectOk(await api.call('GET', `${path}${path.includes('?') ? '&' : '?'}limit=${limit}${cursor}`))
    expect(page[key].length).toBeLessThanOrEqual(limit)
    rows.push(...page[key])
    if (page.next_cursor === undefined) {
      expect(Object.keys(page)).not.toContain('next_cursor')
      return rows
    }
    expect(page[key]).toHaveLength(limit)
    cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`
  }
}
