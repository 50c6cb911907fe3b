import { encodeTime } from 'ulid'
import type { Database } from '../database/database.ts'
import type { LedgerPage } from './ledger.ts'
import type { LedgerEntry } from './model.ts'
import { listAfter, listLatest } from './store/activity.ts'
import { toLedgerEntry, type LedgerFilter } from './store/ledger.ts'

const BATCH = 500
/** A page reads no more rows than this, however few match: 10 ms on SQLite. */
const SCAN_MAX = 2000
/** Above every ledger id. */
const END = 'lg_~'
/** Two processes may commit in another order than that of their ids, but never this far apart (ms). */
const OVERTAKING_MS = 5000

export type ActivityFilter = Pick<LedgerFilter, 'agentId' | 'ops' | 'since' | 'until'>

/**
 * The newest entries of all workspaces, newest first; the cursor is the id of the last one looked at. A page may be short,
 * or empty, and still have a cursor: it looks at a bounded number of entries.
 */
export async function recentEntries(
  ledger: Database,
  filter: ActivityFilter,
  limit: number,
  before = END,
): Promise<LedgerPage> {
  const entries: LedgerEntry[] = []
  let cursor = filter.until === undefined ? before : earlier(before, firstIdOf(filter.until + 1))
  for (let scanned = 0; scanned < SCAN_MAX; scanned += BATCH) {
    const rows = await listLatest(ledger, cursor, BATCH)
    for (const row of rows) {
      if (filter.since !== undefined && row.ts < filter.since) return { entries }
      if (entries.length === limit) return { entries, next_cursor: cursor }
      cursor = row.ledger_id
      const entry = toLedgerEntry(row)
      if (matches(entry, filter)) entries.push(entry)
    }
    if (rows.length < BATCH) return { entries }
  }
  return { entries, next_cursor: cursor }
}

/** Follows the ledgers of all workspaces from now on: each call gives what was not given before, oldest first. */
export function followEntries(ledger: Database, now: number): (now: number) => Promise<LedgerEntry[]> {
  const given = new Set<string>()
  let isFirst = true
  return async (later = now) => {
    const rows = await listAfter(ledger, firstIdOf(later - OVERTAKING_MS), BATCH)
    const fresh = rows.filter((row) => !given.has(row.ledger_id))
    given.clear()
    for (const row of rows) given.add(row.ledger_id)
    if (isFirst) {
      isFirst = false
      return []
    }
    return fresh.map(toLedgerEntry)
  }
}

const firstIdOf = (ms: number): string => `lg_${encodeTime(Math.max(ms, 0), 10)}`

const earlier = (a: string, b: string): string => (a < b ? a : b)

const matches = (entry: LedgerEntry, { agentId, ops }: ActivityFilter): boolean =>
  (agentId === undefined || entry.agent_id === agentId) && (ops === undefined || ops.includes(entry.op))
