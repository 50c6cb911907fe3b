import { canonicalJson } from '../base/canonical-json.ts'
import type { Clock } from '../base/clock.ts'
import { redact } from '../base/redact.ts'
import type { Database, Queryable } from '../database/database.ts'
import { optional } from '../database/rows.ts'
import type { Actor } from './access.ts'
import { auditProblem, GENESIS_HASH, type AuditRecord } from './audit-chain.ts'
import type { Logger } from '../platform/ports.ts'
import { Ticker } from './state/ticker.ts'
import {
  addPending,
  appendRecord,
  hasPending,
  listRecords,
  readChain,
  readRecords,
  takePending,
  type AuditFilter,
  type PendingRow,
} from './store/audit.ts'

export type Changes = NonNullable<AuditRecord['changes']>

/** What an act was done to. */
export interface Target {
  type: 'credential' | 'alias' | 'key' | 'settings' | 'metrics_token' | 'usage' | 'user' | 'organization'
  id: number | string
  name?: string | undefined
}

/** What the system does by itself. Contract: gateway.md 2.7. */
export type SystemAction =
  'fallback.used' | 'credential.rejected' | 'credential.cooling' | 'provider.error' | 'budget.exceeded'

export interface AuditVerification {
  organization_id: number
  records: number
  head: string
  ok: boolean
  first_bad_seq?: number
  reason?: string
}

const TICK_MS = 1000
const MINUTE_MS = 60_000
/** What a minute held is written so long after its end: by then every process has said what it saw. */
const GRACE_MS = 3000
const BATCH = 1000
const AGENT_MAX = 300

/** Who did what: a chain of hashes for each organization. Contract: gateway.md 2.7. */
export class Audit {
  readonly #database: Database
  readonly #clock: Clock
  readonly #isInitialized: () => Promise<boolean>
  readonly #ticker: Ticker
  #buffer = new Map<string, PendingRow>()

  /** @param isInitialized false before there is a store to write to */
  constructor(database: Database, clock: Clock, log: Logger, isInitialized: () => Promise<boolean>) {
    this.#database = database
    this.#clock = clock
    this.#isInitialized = isInitialized
    this.#ticker = new Ticker('writing the audit of the gateway', TICK_MS, () => this.flush(), log)
  }

  start(): void {
    this.#ticker.start()
  }

  close(): Promise<void> {
    return this.#ticker.finish()
  }

  /** Appends what a person did, within the transaction that does it. */
  async append(tx: Queryable, actor: Actor, action: string, target: Target, changes?: Changes): Promise<void> {
    await appendRecord(tx, {
      organization_id: actor.user.organization_id,
      at: this.#clock.now(),
      actor: { type: 'user', id: actor.user.id },
      action,
      target: { type: target.type, id: String(target.id), ...optional('name', target.name) },
      ...optional('changes', changes && redacted(changes)),
      request_id: redact(actor.requestId),
      ip: actor.address,
      ...optional('user_agent', actor.userAgent && redact(actor.userAgent).slice(0, AGENT_MAX)),
      count: 1,
    })
  }

  /** Counts what the system did, off the request path: one record for each minute, action and target. */
  system(organizationId: number, action: SystemAction, target: Target, changes?: Changes): void {
    const minute = Math.floor(this.#clock.now() / MINUTE_MS)
    const key = `${organizationId} ${minute} ${action} ${target.type} ${target.id}`
    const known = this.#buffer.get(key)
    if (known) known.count++
    else {
      this.#buffer.set(key, {
        organization_id: organizationId,
        minute,
        action,
        target_type: target.type,
        target_id: String(target.id),
        target_name: target.name ?? null,
        changes: changes ? JSON.stringify(redacted(changes)) : null,
        count: 1,
      })
    }
  }

  /** Writes down what was counted, and into the chains what minutes that are over have brought. */
  async flush(): Promise<void> {
    if (!(await this.#isInitialized())) return
    if (this.#buffer.size > 0) await this.#saveBuffer()
    const upTo = Math.floor((this.#clock.now() - GRACE_MS) / MINUTE_MS) - 1
    if (!(await hasPending(this.#database, upTo))) return
    await this.#database.transaction(async (tx) => {
      const rows = await takePending(tx, upTo)
      rows.sort((a, b) => a.organization_id - b.organization_id || a.minute - b.minute)
      for (const row of rows) await appendRecord(tx, systemEntry(row))
    })
  }

  async #saveBuffer(): Promise<void> {
    const taken = this.#buffer
    this.#buffer = new Map()
    try {
      await this.#database.transaction(async (tx) => {
        for (const [, row] of [...taken].sort(([a], [b]) => (a < b ? -1 : 1))) await addPending(tx, row)
      })
    } catch (error) {
      for (const [key, row] of taken) {
        const newer = this.#buffer.get(key)
        this.#buffer.set(key, { ...row, count: row.count + (newer?.count ?? 0) })
      }
      throw error
    }
  }

  list(
    organizationId: number,
    filter: AuditFilter,
    order: 'asc' | 'desc',
    after: number,
    limit: number,
  ): Promise<AuditRecord[]> {
    return listRecords(this.#database, organizationId, filter, order, after, limit)
  }

  /** All that match, the oldest first. */
  async *export(organizationId: number, filter: AuditFilter): AsyncGenerator<AuditRecord[]> {
    for (let after = 0; ;) {
      const records = await this.list(organizationId, filter, 'asc', after, BATCH)
      if (records.length > 0) yield records
      if (records.length < BATCH) return
      after = records.at(-1)?.id ?? after
    }
  }

  /** Recomputes the chain of an organization, and compares its end with where it should be. */
  async verify(organizationId: number): Promise<AuditVerification> {
    let seq = 0
    let hash = GENESIS_HASH
    const facts = (): Pick<AuditVerification, 'organization_id' | 'records' | 'head'> => ({
      organization_id: organizationId,
      records: seq,
      head: hash,
    })
    const bad = (at: number, reason: string): AuditVerification => ({
      ...facts(),
      ok: false,
      first_bad_seq: at,
      reason,
    })
    // Read before the records: what is written meanwhile lies behind it.
    const head = await readChain(this.#database, organizationId)
    let atHead = false
    for (let after: number | undefined; ; after = seq) {
      const records = await readRecords(this.#database, organizationId, after, BATCH)
      for (const record of records) {
        if (record.seq < 1) return bad(record.seq, 'a record stands before the first of the chain')
        const problem = auditProblem(record, seq + 1, hash)
        if (problem !== undefined) return bad(seq + 1, problem)
        seq = record.seq
        hash = record.hash
        if (seq === head?.seq) atHead = hash === head.hash
      }
      if (records.length < BATCH) break
    }
    if (!head) {
      const isYoung = seq === 0 || (await readChain(this.#database, organizationId)) !== undefined
      return isYoung ? { ...facts(), ok: true } : bad(seq, 'the head of the chain is missing')
    }
    if (seq < head.seq) return bad(seq + 1, `records ${seq + 1} to ${head.seq} are missing at the end`)
    return atHead ? { ...facts(), ok: true } : bad(head.seq, 'the last record is not the head of the chain')
  }
}

const systemEntry = (row: PendingRow) => ({
  organization_id: row.organization_id,
  at: row.minute * MINUTE_MS,
  actor: { type: 'system' as const },
  action: row.action,
  target: { type: row.target_type, id: row.target_id, ...optional('name', row.target_name) },
  ...(row.changes !== null && { changes: changesOf(row.changes) }),
  count: row.count,
})

const changesOf = (text: string): Changes => JSON.parse(text)

/** Text that looks like a credential is none of the audit's business. */
function redacted(changes: Changes): Changes {
  return Object.fromEntries(
    Object.entries(changes).map(([field, [before, after]]) => [field, [withoutTokens(before), withoutTokens(after)]]),
  )
}

function withoutTokens(value: unknown): unknown {
  if (typeof value === 'string') return redact(value)
  if (Array.isArray(value)) return value.map(withoutTokens)
  if (typeof value !== 'object' || value === null) return value ?? null
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [redact(key), withoutTokens(item)]))
}

/** What differs between two records, field by field; what is absent is null. */
export function difference(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): Changes {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)])
  const changed = [...fields].filter(
    (field) => canonicalJson(before[field] ?? null) !== canonicalJson(after[field] ?? null),
  )
  return Object.fromEntries(changed.map((field) => [field, [before[field] ?? null, after[field] ?? null]]))
}
