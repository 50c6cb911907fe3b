import type { Database } from '../database/database.ts'
import { invalidInput, MemoryError } from './errors.ts'
import { entryHash, piiDigest } from './ledger-chain.ts'
import type { LedgerEntry } from './model.ts'
import { GENESIS_HASH } from './store/chains.ts'
import {
  findEntrySeq,
  hasRedactingForget,
  queryEntries,
  readChain,
  toLedgerEntry,
  type LedgerFilter,
  type LedgerRow,
} from './store/ledger.ts'

export interface LedgerPage {
  entries: LedgerEntry[]
  next_cursor?: string
}

/**
 * A page of the workspace's ledger in `seq` order; the cursor is the id of the last entry shown.
 * @throws invalid_input 400 when the cursor is not an entry of the workspace; capability_unavailable 501 when the ledger is
 * a file. Contract: memory.md 3.6.
 */
export async function queryLedger(
  ledger: Database | undefined,
  workspaceId: string,
  filter: LedgerFilter,
  order: 'asc' | 'desc',
  limit: number,
  since: string | undefined,
): Promise<LedgerPage> {
  const db = requireLedger(ledger)
  const afterSeq = since === undefined ? undefined : await findEntrySeq(db, workspaceId, since)
  if (since !== undefined && afterSeq === undefined) {
    throw invalidInput(`since_ledger_id ${since} is not an entry of this workspace`, 'since_ledger_id')
  }
  const rows = await queryEntries(db, workspaceId, filter, order, afterSeq, limit + 1)
  const entries = rows.slice(0, limit).map(toLedgerEntry)
  const last = entries.at(-1)
  return rows.length > limit && last ? { entries, next_cursor: last.ledger_id } : { entries }
}

/** The database of the ledger. @throws capability_unavailable 501 when the ledger is a file. */
export function requireLedger(ledger: Database | undefined): Database {
  if (ledger) return ledger
  throw new MemoryError(
    'capability_unavailable',
    'a ledger in a file cannot be queried: read the file, or choose another storage.ledger_driver',
    { seam: 'ledger', driver: 'file' },
  )
}

/** The outcome of verifying one chain, as printed. */
export interface Verification {
  workspace_id: string
  entries: number
  head: string
  ok: boolean
  first_bad_seq?: number
  reason?: string
}

const BATCH = 2000

/**
 * Recomputes the chain of a workspace and compares it with the head that the metadata store holds. The head is read
 * behind the entries, so that a ledger which is being written verifies too. Contract: memory.md 9.4.
 */
export async function verifyChain(
  ledger: Database,
  workspaceId: string,
  readHead: () => Promise<{ seq: number; headHash: string } | undefined>,
): Promise<Verification> {
  let seq = 0
  let hash = GENESIS_HASH
  const fail = (badSeq: number, reason: string): Verification => ({
    workspace_id: workspaceId,
    entries: seq,
    head: hash,
    ok: false,
    first_bad_seq: badSeq,
    reason,
  })
  for (;;) {
    const rows = await readChain(ledger, workspaceId, seq, BATCH)
    for (const row of rows) {
      const problem = entryProblem(row, seq + 1, hash) ?? (await redactionProblem(ledger, row))
      if (problem !== undefined) return fail(row.seq === seq + 1 ? row.seq : seq + 1, problem)
      seq = row.seq
      hash = row.entry_hash
    }
    if (rows.length === BATCH) continue
    const head = await readHead()
    if (head && seq < head.seq) {
      // Written since, unless nothing follows.
      if ((await readChain(ledger, workspaceId, seq, 1)).length > 0) continue
      return fail(seq + 1, `entries ${seq + 1} to ${head.seq} are missing at the end`)
    }
    if (seq !== head?.seq || hash !== head.headHash)
      return fail(seq, 'the last entry is not the head that metadata holds')
    return { workspace_id: workspaceId, entries: seq, head: hash, ok: true }
  }
}

/** What is wrong with an entry that should have this place behind that hash. */
export function entryProblem(row: LedgerRow, seq: number, prevHash: string): string | undefined {
  if (row.seq !== seq) return `entry ${seq} is missing`
  if (row.prev_hash !== prevHash) return 'prev_hash is not the hash of the entry before'
  if (row.entry_hash !== entryHash(row)) return 'a field was changed after the entry was written'
  if (row.redacted_fields !== null) return undefined
  if (!row.salt || row.pii_digest !== piiDigest(row, row.salt)) return 'metadata, ip or user_agent was changed'
  return undefined
}

/** Only a forget that asked for it may have redacted an entry. */
async function redactionProblem(ledger: Database, row: LedgerRow): Promise<string | undefined> {
  if (row.redacted_fields === null) return undefined
  if (row.target !== null && (await hasRedactingForget(ledger, row.workspace_id, row.target))) return undefined
  return 'redacted without a forget that asked for it'
}
