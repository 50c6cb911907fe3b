import type { IdSource } from '../base/ids.ts'
import { KeyedMutex } from '../base/keyed-mutex.ts'
import type { Clock } from '../base/clock.ts'
import { span } from '../base/trace.ts'
import type { Queryable } from '../database/database.ts'
import type { Caller, Idempotency } from './caller.ts'
import { MemoryError, notFound } from './errors.ts'
import { chainEntry, type UnchainedEntry } from './ledger-chain.ts'
import type { LedgerOp } from './model.ts'
import type { Seams } from './seams.ts'
import { insertChain, lockChain, lockCreations, saveChain, type Chain } from './store/chains.ts'
import { findAnswer, saveAnswer, type IdempotencyKey } from './store/idempotency.ts'
import { redactRow, type LedgerRow } from './store/ledger.ts'
import { toJson } from './store/rows.ts'
import { workspaceExists } from './store/workspaces.ts'

export const IDEMPOTENCY_TTL_MS = 24 * 3600 * 1000

/** A repeated request: thrown out of the mutation, so that nothing changes, with the first answer. */
export class IdempotentReplay extends Error {
  readonly answer: unknown

  constructor(answer: unknown) {
    super('replayed')
    this.answer = answer
  }
}

/** What an entry says beyond who and when. */
export interface EntryFields {
  target?: string
  before?: string
  after?: string
  metadata?: Record<string, unknown>
  /** Acts in place of the caller: auto-link. */
  agentId?: string
  redactAudit?: boolean
}

/** One mutation of one workspace: its transaction, its ledger entries, its change number. */
export interface Mutation {
  readonly tx: Queryable
  readonly now: number
  /** Appends an entry and gives its id. */
  record(op: LedgerOp, fields: EntryFields): string
  /** Redacts every entry about the target, those of this mutation included, and gives their number. */
  redact(target: string): Promise<number>
  /** The number of this change to what recall sees; the same one for the whole mutation. */
  changeSeq(): number
  /** Runs once the transaction is durable. */
  afterCommit(action: () => void): void
}

/** Runs mutations: one after the other in a workspace, each with its ledger entries in its own transaction. */
export class Mutations {
  readonly #seams: Seams
  readonly #clock: Clock
  readonly #ids: IdSource
  /** On PostgreSQL, so that of a workspace's writers in this process only one holds a connection to wait for the lock. */
  readonly #turns = new KeyedMutex()

  constructor(seams: Seams, clock: Clock, ids: IdSource) {
    this.#seams = seams
    this.#clock = clock
    this.#ids = ids
  }

  /**
   * Runs `fn` under the lock of the workspace, and stores its answer under the caller's idempotency key.
   * @throws IdempotentReplay when the key was answered before; not_found 404 when the workspace is gone.
   */
  run<T>(caller: Caller, workspaceId: string, fn: (mutation: Mutation) => Promise<T>): Promise<T> {
    const lock = async (tx: Queryable): Promise<Chain> => {
      const chain = await lockChain(tx, workspaceId)
      if (!chain || !(await workspaceExists(tx, workspaceId))) throw notFound('workspace', workspaceId)
      return chain
    }
    const transact = (): Promise<T> => this.#transact(caller, workspaceId, workspaceId, lock, fn)
    const isPostgres = this.#seams.metadata.dialect === 'postgres'
    return span('mutation', {}, () => (isPostgres ? this.#turns.run(workspaceId, transact) : transact()))
  }

  /** Runs the mutation that creates a workspace; creations happen one after the other. */
  create<T>(caller: Caller, workspaceId: string, fn: (mutation: Mutation) => Promise<T>): Promise<T> {
    const lock = async (tx: Queryable): Promise<Chain> => {
      await lockCreations(tx)
      return insertChain(tx, workspaceId)
    }
    return span('mutation', {}, () => this.#transact(caller, workspaceId, '', lock, fn))
  }

  async #transact<T>(
    caller: Caller,
    workspaceId: string,
    scope: string,
    lock: (tx: Queryable) => Promise<Chain>,
    fn: (mutation: Mutation) => Promise<T>,
  ): Promise<T> {
    const actions: (() => void)[] = []
    const result = await this.#seams.metadata.transaction(async (tx) => {
      actions.length = 0
      caller.signal.throwIfAborted()
      const chain = await lock(tx)
      const now = this.#clock.now()
      await refuseRepeat(tx, caller, scope, now)
      const entries: LedgerRow[] = []
      let changed = false
      const answer = await fn({
        tx,
        now,
        record: (op, fields) => {
          const entry = chainEntry(this.#entry(caller, workspaceId, op, fields, now), chain)
          chain.seq = entry.seq
          chain.headHash = entry.entry_hash
          entries.push(entry)
          return entry.ledger_id
        },
        redact: async (target) => {
          const stored = await this.#seams.redactEntries(tx, workspaceId, target)
          const mine = entries.filter((entry) => entry.target === target)
          for (const entry of mine) Object.assign(entry, redactRow(entry))
          return stored + mine.length
        },
        changeSeq: () => {
          if (!changed) chain.changeSeq += 1
          changed = true
          return chain.changeSeq
        },
        afterCommit: (action) => actions.push(action),
      })
      await this.#seams.appendEntries(tx, entries)
      if (entries.length > 0 || changed) await saveChain(tx, workspaceId, chain)
      if (caller.idempotency) {
        const { bodyHash } = caller.idempotency
        await saveAnswer(tx, keyOf(caller, caller.idempotency, scope), bodyHash, JSON.stringify(answer), now)
      }
      return answer
    })
    await this.#seams.deliver()
    for (const action of actions) action()
    return result
  }

  /**
   * Looks for the caller's key outside a mutation, before work is done twice; `scope` is the workspace, or empty.
   * @throws IdempotentReplay with the first answer; already_exists 409 when the key came with another body.
   */
  async refuseRepeat(caller: Caller, scope: string): Promise<void> {
    if (caller.idempotency) await refuseRepeat(this.#seams.metadata, caller, scope, this.#clock.now())
  }

  #entry(caller: Caller, workspaceId: string, op: LedgerOp, fields: EntryFields, now: number): UnchainedEntry {
    return {
      ledger_id: this.#ids('lg_'),
      workspace_id: workspaceId,
      op,
      agent_id: fields.agentId ?? caller.agentId,
      ts: now,
      target: fields.target ?? null,
      watermark_before: fields.before ?? null,
      watermark_after: fields.after ?? null,
      request_id: caller.requestId,
      latency_ms: elapsedMs(caller),
      api_key_id: caller.apiKeyId ?? null,
      user_id: caller.userId ?? null,
      metadata: toJson(fields.metadata),
      ip: caller.ip ?? null,
      user_agent: caller.userAgent ?? null,
      redact_audit: Number(fields.redactAudit ?? false),
    }
  }
}

async function refuseRepeat(db: Queryable, caller: Caller, scope: string, now: number): Promise<void> {
  if (!caller.idempotency) return
  const stored = await findAnswer(db, keyOf(caller, caller.idempotency, scope), now - IDEMPOTENCY_TTL_MS)
  if (!stored) return
  if (stored.body_hash === caller.idempotency.bodyHash) throw new IdempotentReplay(JSON.parse(stored.answer))
  throw new MemoryError('already_exists', 'this Idempotency-Key was used with another body: choose a new key', {
    reason: 'idempotency_key_reused',
  })
}

/** Since the request began, in ms to the microsecond. */
export const elapsedMs = ({ startedAt }: Pick<Caller, 'startedAt'>): number =>
  Math.round((performance.now() - startedAt) * 1000) / 1000

const keyOf = (caller: Caller, { route, key }: Idempotency, scope: string): IdempotencyKey => ({
  scope,
  route,
  agentId: caller.agentId,
  key,
})
