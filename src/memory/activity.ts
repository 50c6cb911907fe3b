import { encodeTime } from 'ulid'
import type { Database } from '../database/database.ts'
import type { LedgerPage } from './ledger.ts'
import type { LedgerEntry } from './model.ts'
import { listLatest } from './store/activity.ts'
import { toLedgerEntry, type LedgerFilter, type LedgerRow } from './store/ledger.ts'

const BATCH = 500
/** A page reads no more rows than this, however few match: 10 ms on SQLite. */
const SCAN_MAX = 2000
/** Above every ledger id. */
const END = 'lg_~'
/** An id is made within the transaction, `ts` is its begin: they are never further apart (ms). */
const SLACK_MS = 60_000
/** Entries that a follower sees at once. */
const FOLLOWED = 100

/**
 * The newest entries of all workspaces, newest first; the cursor is the id of the last one looked at. A page may be short,
 * or empty, and still have a cursor: it looks at a bounded number of entries.
 */
export async function recentEntries(
  ledger: Database,
  filter: LedgerFilter,
  limit: number,
  before = END,
): Promise<LedgerPage> {
  const entries: LedgerEntry[] = []
  let cursor = filter.until === undefined ? before : earlier(before, firstIdOf(filter.until + SLACK_MS))
  for (let scanned = 0; scanned < SCAN_MAX; scanned += BATCH) {
    const rows = await listLatest(ledger, cursor, BATCH)
    for (const row of rows) {
      if (filter.since !== undefined && row.ts < filter.since - SLACK_MS) return { entries }
      if (entries.length === limit) return { entries, next_cursor: cursor }
      cursor = row.ledger_id
      if (matches(row, filter)) entries.push(toLedgerEntry(row))
    }
    if (rows.length < BATCH) return { entries }
  }
  return { entries, next_cursor: cursor }
}

/**
 * Follows the ledgers of all workspaces from the first call on: each call gives what was not given before, oldest first,
 * and of a burst the newest. A ledger in a file gives nothing. A look at the last entries finds also one that another process committed late.
 */
export function followEntries(ledger: Database | undefined): () => Promise<LedgerEntry[]> {
  if (!ledger) return () => Promise.resolve([])
  let seen: Set<string> | undefined
  return async () => {
    const rows = await listLatest(ledger, END, FOLLOWED)
    const fresh = rows.filter((row) => seen && !seen.has(row.ledger_id)).toReversed()
    seen = new Set(rows.map((row) => row.ledger_id))
    return fresh.map(toLedgerEntry)
  }
}

const firstIdOf = (ms: number): string => `lg_${encodeTime(Math.max(ms, 0), 10)}`

const earlier = (a: string, b: string): string => (a < b ? a : b)

/** As the query of one ledger filters. */
const matches = (row: LedgerRow, { agentId, actor, memoryId, edgeId, ops, since, until }: LedgerFilter): boolean =>
  (since === undefined || row.ts >= since) &&
  (until === undefined || row.ts <= until) &&
  (agentId === undefined || row.agent_id === agentId) &&
  (actor === undefined || row.api_key_id === actor || row.user_id === actor) &&
  (memoryId === undefined || row.target === memoryId) &&
  (edgeId === undefined || row.target === edgeId || (row.op === 'graph_link' && isOfEdge(row, edgeId))) &&
  (ops === undefined || ops.includes(row.op))

const isOfEdge = (row: LedgerRow, edgeId: string): boolean => toLedgerEntry(row).metadata?.['edge_id'] === edgeId
