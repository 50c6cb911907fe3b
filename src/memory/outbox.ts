import * as z from 'zod'
import type { Clock } from '../base/clock.ts'
import { errorText } from '../base/errors.ts'
import type { Database, Queryable } from '../database/database.ts'
import type { SeamDatabases } from './seams.ts'
import { edgeSchema, LEDGER_OPS } from './model.ts'
import { erase, erasureSchema } from './store/content/store.ts'
import { deleteEdge, deleteEdgesOf, insertEdge } from './store/edges.ts'
import { insertEntries, redactEntries, type LedgerRow } from './store/ledger.ts'
import { deleteOutbox, findOutbox, insertOutbox, releaseLease, takeLease } from './store/outbox.ts'
import type { OutboxRow, OutboxSeam } from './store/outbox.ts'
import type { Logger } from './ports.ts'

const BATCH = 200
const LEASE_MS = 30_000
/** How long a mutation waits for its own rows to arrive before it answers. */
const INLINE_MS = 1000
const RETRY_MS = { first: 500, most: 30_000 }

const text = z.string().nullable()
const ledgerRow = z.object({
  ledger_id: z.string(),
  workspace_id: z.string(),
  seq: z.number(),
  op: z.enum(LEDGER_OPS),
  agent_id: z.string(),
  ts: z.number(),
  target: text,
  watermark_before: text,
  watermark_after: text,
  request_id: z.string(),
  latency_ms: z.number(),
  api_key_id: text,
  user_id: text,
  metadata: text,
  ip: text,
  user_agent: text,
  redact_audit: z.number(),
  redacted_fields: text,
  salt: z
    .base64()
    .nullable()
    .transform((salt) => (salt === null ? null : Buffer.from(salt, 'base64'))),
  pii_digest: z.string(),
  prev_hash: z.string(),
  entry_hash: z.string(),
})

const redaction = z.object({ workspaceId: z.string(), target: z.string() })
const ofEdge = z.object({ edgeId: z.string() })
const ofMemory = z.object({ memoryId: z.string() })
const ofCells = z.object({ cellNos: z.array(z.number()), model: z.string().optional() })

/** Each may be applied twice, when a process dies between applying a row and deleting it. */
const APPLY: Record<string, (tx: Queryable, payload: unknown, databases: SeamDatabases) => Promise<unknown>> = {
  'ledger append': (tx, payload) => insertEntries(tx, [ledgerRow.parse(payload)]),
  'ledger redact': (tx, payload) => {
    const { workspaceId, target } = redaction.parse(payload)
    return redactEntries(tx, workspaceId, target)
  },
  'graph insert': (tx, payload) => insertEdge(tx, edgeSchema.parse(payload)),
  'graph delete': (tx, payload) => deleteEdge(tx, ofEdge.parse(payload).edgeId),
  'graph deleteOf': (tx, payload) => deleteEdgesOf(tx, ofMemory.parse(payload).memoryId),
  'vector delete': (tx, payload, { vectors }) => {
    const { cellNos, model } = ofCells.parse(payload)
    return vectors.delete(tx, cellNos, model)
  },
}

/** Carries rows to seams in other stores, in order, each with effect exactly once. Contract: memory.md 9.3.3-4. */
export class Outbox {
  readonly #databases: SeamDatabases
  readonly #metadata: Database
  readonly #targets = new Map<OutboxSeam, (rows: readonly OutboxRow[]) => Promise<unknown>>()
  readonly #clock: Clock
  readonly #holder: string
  readonly #log: Logger
  /** The last pass that was begun or will be. */
  #pass: Promise<void> = Promise.resolve()
  /** It, while it has not begun. */
  #next: Promise<void> | undefined
  #retry: NodeJS.Timeout | undefined
  #failures = 0
  #closed = false

  constructor(databases: SeamDatabases, clock: Clock, holder: string, log: Logger) {
    this.#databases = databases
    this.#metadata = databases.metadata
    for (const seam of ['ledger', 'graph', 'vector'] as const) {
      const target = databases[seam]
      if (target && target !== databases.metadata) this.#targets.set(seam, (rows) => this.#applyIn(target, rows))
    }
    const { ledgerFile, content } = databases
    if (ledgerFile) this.#targets.set('ledger', (rows) => ledgerFile.append(entriesOf(rows)))
    if (content) {
      this.#targets.set('content', async (rows) => {
        for (const { payload } of rows) await erase(content, erasureSchema.parse(JSON.parse(payload)))
      })
    }
    this.#clock = clock
    this.#holder = holder
    this.#log = log
  }

  append(tx: Queryable, seam: OutboxSeam, op: string, payload: unknown): Promise<void> {
    return insertOutbox(tx, seam, op, payload)
  }

  /**
   * Delivers what waits; resolves when all that was committed before the call has arrived, or after a second while delivery
   * goes on. Calls that come during a pass share the next one, so that many writers wait for few deliveries.
   */
  async deliver(): Promise<void> {
    if (this.#targets.size === 0 || this.#closed) return
    this.#next ??= this.#begin()
    let timer: NodeJS.Timeout | undefined
    await Promise.race([this.#next, new Promise((done) => (timer = setTimeout(done, INLINE_MS)))])
    clearTimeout(timer)
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#retry)
    await this.#pass
  }

  #begin(): Promise<void> {
    this.#pass = this.#pass.then(() => {
      this.#next = undefined
      return this.#drain()
    })
    return this.#pass
  }

  async #drain(): Promise<void> {
    clearTimeout(this.#retry)
    const outcomes = await Promise.allSettled([...this.#targets].map(([seam, apply]) => this.#drainSeam(seam, apply)))
    const failure = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failure) return this.#retryLater(failure.reason)
    this.#failures = 0
  }

  #retryLater(reason: unknown): void {
    this.#log.warn({ reason: errorText(reason) }, 'a seam in another store does not answer; its writes wait')
    if (this.#closed) return
    const delay = Math.min(RETRY_MS.first * 2 ** this.#failures++, RETRY_MS.most)
    this.#retry = setTimeout(() => void this.deliver(), delay).unref()
  }

  /** Under a lease that each batch renews: a file must not be written by two processes at once. */
  async #drainSeam(seam: OutboxSeam, apply: (rows: readonly OutboxRow[]) => Promise<unknown>): Promise<void> {
    const lease = `outbox ${seam}`
    if ((await findOutbox(this.#metadata, seam, 1)).length === 0) return
    try {
      for (let isLast = false; !isLast;) {
        const now = this.#clock.now()
        const mine = await this.#metadata.transaction((tx) => takeLease(tx, lease, this.#holder, now, now + LEASE_MS))
        if (!mine) throw new Error(`another process is delivering to ${seam}`)
        const rows = await findOutbox(this.#metadata, seam, BATCH)
        isLast = rows.length < BATCH
        await apply(rows)
        await this.#settle(rows, isLast ? lease : undefined)
      }
    } catch (error) {
      await this.#metadata.transaction((tx) => releaseLease(tx, lease, this.#holder))
      throw error
    }
  }

  async #settle(rows: readonly OutboxRow[], lease: string | undefined): Promise<void> {
    const done = rows.map((row) => row.outbox_no)
    await this.#metadata.transaction(async (tx) => {
      await deleteOutbox(tx, done)
      if (lease !== undefined) await releaseLease(tx, lease, this.#holder)
    })
  }

  async #applyIn(target: Database, rows: readonly OutboxRow[]): Promise<void> {
    await target.transaction(async (tx) => {
      for (const row of rows) await APPLY[`${row.seam} ${row.op}`]?.(tx, JSON.parse(row.payload), this.#databases)
    })
  }
}

/** The entries among what goes to the ledger. */
export const entriesOf = (rows: readonly OutboxRow[]): LedgerRow[] =>
  rows.flatMap((row) => (row.op === 'append' ? [ledgerRow.parse(JSON.parse(row.payload))] : []))
