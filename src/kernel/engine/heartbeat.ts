import type { Logger } from 'pino'
import { errorText } from '../../base/errors.ts'
import type { KernelContext } from '../context.ts'
import type { Hints } from '../hints.ts'
import type { Scope } from '../model/fields.ts'
import { findRecord } from '../store/records.ts'
import { renewLease } from '../store/run-leases.ts'
import { readRevisions, runs } from '../store/runs.ts'
import type { Held } from './held.ts'

/** Of hints that come one after the other, one look is enough. */
const LOOK_AFTER_MS = 50

/**
 * Keeps the leases of the runs of one pool, and notices what becomes of them: a model is not waited for in vain. One timer for
 * all; leases have their own rows and raise no revision. Contract: kernel-1.md 14.2, 14.3
 */
export class Heartbeat {
  readonly #context: KernelContext
  readonly #scope: Scope
  readonly #leaseMs: number
  readonly #log: Logger
  readonly #held = new Set<Held>()
  #timer: NodeJS.Timeout | undefined
  #look: NodeJS.Timeout | undefined
  #unlisten: (() => void) | undefined

  constructor(context: KernelContext, scope: Scope, leaseMs: number) {
    this.#context = context
    this.#scope = scope
    this.#leaseMs = leaseMs
    this.#log = context.log
  }

  start(hints: Hints): void {
    this.#timer = setInterval(() => this.#beat(), this.#leaseMs / 3)
    this.#unlisten = hints.listen(this.#scope, () => {
      if (this.#held.size > 0) this.#look ??= setTimeout(() => this.#lookSoon(), LOOK_AFTER_MS)
    })
  }

  stop(): void {
    this.#unlisten?.()
    clearInterval(this.#timer)
    clearTimeout(this.#look)
  }

  /** Keeps a run while `work` is at it. */
  async keep<T>(held: Held, work: () => Promise<T>): Promise<T> {
    this.#held.add(held)
    try {
      return await work()
    } finally {
      this.#held.delete(held)
    }
  }

  /** What is held is dropped: the engine ends. */
  abandonAll(): void {
    for (const held of this.#held) held.abort('engine_stopped')
  }

  #beat(): void {
    this.#renew()
      .then(() => this.#notice())
      .catch((error: unknown) => this.#log.warn({ err: error }, `leases were not renewed: ${errorText(error)}`))
  }

  #lookSoon(): void {
    this.#look = undefined
    this.#notice().catch((error: unknown) => this.#log.warn({ err: error }, `runs were not read: ${errorText(error)}`))
  }

  async #renew(): Promise<void> {
    const { store } = this.#context
    const leaseMs = this.#leaseMs
    for (const held of Array.from(this.#held)) {
      const now = store.now()
      if (now - held.renewedAt < leaseMs / 4) continue
      const { fencingToken, run } = held
      const isRenewed = await renewLease(store.database, this.#scope, run.id, { fencingToken, now, leaseMs })
      if (isRenewed) held.renewedAt = now
      else await this.#read(held)
    }
  }

  async #notice(): Promise<void> {
    const working = new Map([...this.#held].map((held) => [held.run.id, held]))
    if (working.size === 0) return
    for (const { id, revision } of await readRevisions(this.#context.store.database, this.#scope, [
      ...working.keys(),
    ])) {
      const held = working.get(id)
      if (held && this.#held.has(held) && held.run.revision !== revision) await this.#read(held)
    }
  }

  async #read(held: Held): Promise<void> {
    const run = await findRecord(this.#context.store.database, runs, this.#scope, held.run.id)
    if (run && this.#held.has(held)) held.notice(run)
  }
}
