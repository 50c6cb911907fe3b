import type { Database } from '../database/database.ts'
import { entryProblem, verifyChain, type Verification } from './ledger.ts'
import { entriesOf } from './outbox.ts'
import type { SeamDatabases } from './seams.ts'
import { findChain, GENESIS_HASH, listChains } from './store/chains.ts'
import type { LedgerFile } from './store/ledger-file.ts'
import type { LedgerRow } from './store/ledger.ts'
import { findOutbox } from './store/outbox.ts'

const WAITING_MAX = 100_000

/** Verifies the chain of one workspace or, without one, every chain, those of deleted workspaces included. */
export async function verifyLedger(
  databases: Pick<SeamDatabases, 'metadata' | 'ledger' | 'ledgerFile'>,
  workspaceId?: string,
): Promise<Verification[]> {
  const { metadata, ledger, ledgerFile } = databases
  const chains = (await listChains(metadata)).filter(
    (chain) => (workspaceId ?? chain.workspaceId) === chain.workspaceId,
  )
  if (ledgerFile) return verifyLedgerFile(metadata, ledgerFile, chains)
  const outcomes: Verification[] = []
  for (const { workspaceId: id } of chains) {
    if (ledger) outcomes.push(await verifyChain(ledger, id, () => findChain(metadata, id)))
  }
  return outcomes
}

interface Head {
  workspaceId: string
  seq: number
  headHash: string
}

/**
 * Recomputes chains in one reading of the file and what was rotated out of it, then of the entries that wait to be written
 * to it: of all that was committed when the heads were read nothing may be missing. Contract: memory.md 9.4.
 */
async function verifyLedgerFile(metadata: Database, file: LedgerFile, heads: readonly Head[]): Promise<Verification[]> {
  // In this order an entry that is written meanwhile is seen twice and never not at all.
  const waiting = entriesOf(await findOutbox(metadata, 'ledger', WAITING_MAX))
  const checks = new Map(heads.map((head) => [head.workspaceId, new ChainCheck(head)]))
  for await (const row of file.entries()) checks.get(row.workspace_id)?.add(row)
  for (const row of waiting) checks.get(row.workspace_id)?.addWaiting(row)
  return [...checks.values()].map((check) => check.outcome())
}

class ChainCheck {
  readonly #head: Head
  #seq = 0
  #hash = GENESIS_HASH
  #hashAtHead: string | undefined
  #failure: { seq: number; reason: string } | undefined

  constructor(head: Head) {
    this.#head = head
    if (head.seq === 0) this.#hashAtHead = GENESIS_HASH
  }

  add(row: LedgerRow): void {
    if (this.#failure) return
    const seq = this.#seq + 1
    const redacted = row.redacted_fields === null ? undefined : 'a file holds no redacted entries'
    const reason = entryProblem(row, seq, this.#hash) ?? redacted
    if (reason !== undefined) {
      this.#failure = { seq, reason }
      return
    }
    this.#seq = seq
    this.#hash = row.entry_hash
    if (seq === this.#head.seq) this.#hashAtHead = row.entry_hash
  }

  /** It may have reached the file since. */
  addWaiting(row: LedgerRow): void {
    if (row.seq > this.#seq) this.add(row)
  }

  outcome(): Verification {
    const { workspaceId, seq, headHash } = this.#head
    const failure =
      this.#failure ??
      (this.#seq < seq
        ? { seq: this.#seq + 1, reason: `entries ${this.#seq + 1} to ${seq} are missing at the end` }
        : undefined) ??
      (this.#hashAtHead === headHash
        ? undefined
        : { seq, reason: 'the last entry is not the head that metadata holds' })
    return {
      workspace_id: workspaceId,
      entries: this.#seq,
      head: this.#hash,
      ok: failure === undefined,
      ...(failure && { first_bad_seq: failure.seq, reason: failure.reason }),
    }
  }
}
