import * as z from 'zod'
import type { Clock } from '../base/clock.ts'
import { errorText } from '../base/errors.ts'
import type { Database, Queryable } from '../database/database.ts'
import type { SeamDatabases } from './seams.ts'
import { edgeSchema, LEDGER_OPS } from './model.ts'
import { deleteVectors } from './store/cells.ts'
import { deleteEdge, deleteEdgesOf, insertEdge } from './store/edges.ts'
import { insertEntries, redactEntries } from './store/ledger.ts'
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

/** Each may be applied twice, when a process dies between applying a row and deleting it. */
const APPLY: Record<string, (tx: Queryable, payload: unknown) => Promise<unknown>> = {
  'ledger append': (tx, payload) => insertEntries(tx, [ledgerRow.parse(payload)]),
  'ledger redact': (tx, payload) => {
    const { workspaceId, target } = z.object({ workspaceId: z.string(), target: z.string() }).parse(payload)
    return redactEntries(tx, workspaceId, target)
  },
  'graph insert': (tx, payload) => insertEdge(tx, edgeSchema.parse(payload)),
  'graph delete': (tx, payload) => deleteEdge(tx, z.object({ edgeId: z.string() }).parse(payload).edgeId),
  'graph deleteOf': (tx, payload) => deleteEdgesOf(tx, z.object({ memoryId: z.string() }).parse(payload).memoryId),
  'vector delete': (tx, payload) =>
    deleteVectors(tx, z.object({ cellNos: z.array(z.number()) }).parse(payload).cellNos),
}

/** Carries rows to seams in other databases, in order, each with effect exactly once. Contract: memory.md 9.3.3-4. */
export class Outbox {
  readonly #metadata: Database
  readonly #targets = new Map<OutboxSeam, Database>()
  readonly #clock: Clock
  readonly #holder: string
  readonly #log: Logger
  #running: Promise<void> | undefined
  #again = false
  #retry: NodeJS.Timeout | undefined
  #failures = 0
  #closed = false

  constructor(databases: SeamDatabases, clock: Clock, holder: string, log: Logger) {
    this.#metadata = databases.metadata
    for (const seam of ['ledger', 'graph', 'vector'] as const) {
      const target = databases[seam]
      if (target && target !== databases.metadata) this.#targets.set(seam, target)
    }
    this.#clock = clock
    this.#holder = holder
    this.#log = log
  }

  append(tx: Queryable, seam: OutboxSeam, op: string, payload: unknown): Promise<void> {
    return insertOutbox(tx, seam, op, payload)
  }

  /** Delivers what waits; resolves when it is done, or after a second while delivery goes on. */
  async deliver(): Promise<void> {
    if (this.#targets.size === 0 || this.#closed) return
    this.#again = true
    this.#running ??= this.#drain().finally(() => (this.#running = undefined))
    let timer: NodeJS.Timeout | undefined
    await Promise.race([this.#running, new Promise((done) => (timer = setTimeout(done, INLINE_MS)))])
    clearTimeout(timer)
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#retry)
    await this.#running
  }

  async #drain(): Promise<void> {
    clearTimeout(this.#retry)
    while (this.#again) {
      this.#again = false
      const outcomes = await Promise.allSettled(
        [...this.#targets].map(([seam, target]) => this.#drainSeam(seam, target)),
      )
      const failure = outcomes.find((outcome) => outcome.status === 'rejected')
      if (failure) return this.#retryLater(failure.reason)
    }
    this.#failures = 0
  }

  #retryLater(reason: unknown): void {
    this.#log.warn({ reason: errorText(reason) }, 'a seam in another database does not answer; its writes wait')
    if (this.#closed) return
    const delay = Math.min(RETRY_MS.first * 2 ** this.#failures++, RETRY_MS.most)
    this.#retry = setTimeout(() => void this.deliver(), delay).unref()
  }

  async #drainSeam(seam: OutboxSeam, target: Database): Promise<void> {
    const lease = `outbox ${seam}`
    const now = this.#clock.now()
    if (!(await findOutbox(this.#metadata, seam, 1)).length) return
    const mine = await this.#metadata.transaction((tx) => takeLease(tx, lease, this.#holder, now, now + LEASE_MS))
    if (!mine) throw new Error(`another process is delivering to ${seam}`)
    try {
      for (let rows = await findOutbox(this.#metadata, seam, BATCH); rows.length > 0;) {
        await this.#apply(target, rows)
        rows = await findOutbox(this.#metadata, seam, BATCH)
      }
    } finally {
      await this.#metadata.transaction((tx) => releaseLease(tx, lease, this.#holder))
    }
  }

  async #apply(target: Database, rows: readonly OutboxRow[]): Promise<void> {
    await target.transaction(async (tx) => {
      for (const row of rows) await APPLY[`${row.seam} ${row.op}`]?.(tx, JSON.parse(row.payload))
    })
    await this.#metadata.transaction((tx) =>
      deleteOutbox(
        tx,
        rows.map((row) => row.outbox_no),
      ),
    )
  }
}
