import { recoverCalls } from '../actions/recover.ts'
import { claimAction } from '../actions/worker.ts'
import type { KernelContext } from '../context.ts'
import type { Hints } from '../hints.ts'
import type { Scope } from '../model/fields.ts'
import { saveWorker } from '../store/workers.ts'
import { Pool } from './pool.ts'
import type { WorkerLimit } from './worker-limit.ts'

export interface ActionPoolOptions {
  context: KernelContext
  scope: Scope
  concurrency: number
  leaseMs: number
  pollIntervalMs: number
  workerIdPrefix: string
  limit: WorkerLimit
  hints: Hints
  random: () => number
}

/** Calls of lost workers are looked for so often, however many claims there are. */
const SWEEP_MS = 1000
const NO_LIMITS = { agent: 0, owner: 0, objective: 0, concurrency_key: 0 }

/** Workers that make the calls of one scope. Contract: kernel-1.md 14.2 */
export class ActionPool {
  readonly scope: Scope
  readonly #options: ActionPoolOptions
  readonly #worker: string
  readonly #pool: Pool
  readonly #abandoned = new AbortController()
  #sweptAt = -Infinity

  constructor(options: ActionPoolOptions) {
    const { context, workerIdPrefix, ...pool } = options
    this.scope = options.scope
    this.#options = options
    this.#worker = `${workerIdPrefix}-${context.newId()}`
    this.#pool = new Pool({
      ...pool,
      log: context.log,
      claim: () => this.#claim(),
      register: (active) => this.#register(active),
    })
  }

  start(): void {
    this.#pool.start()
  }

  /** Ends when nothing is under way any more. */
  stop(): Promise<void> {
    return this.#pool.stop()
  }

  /** Gives back what was not sent, and leaves what was. */
  abandonAll(): void {
    this.#abandoned.abort()
  }

  async #claim(): Promise<(() => Promise<void>) | undefined> {
    const { context, scope, leaseMs } = this.#options
    const now = performance.now()
    if (now - this.#sweptAt >= SWEEP_MS) {
      this.#sweptAt = now
      await recoverCalls(context, scope)
    }
    const abandoned = this.#abandoned.signal
    return claimAction(context, { scope, id: this.#worker, leaseMs, heartbeatMs: leaseMs / 3, abandoned })
  }

  async #register(active: number): Promise<void> {
    const { context, scope, concurrency } = this.#options
    const lastSeenAt = context.store.now()
    const worker = { id: this.#worker, scope, kind: 'action' as const, runKinds: [], concurrency, active, lastSeenAt }
    await saveWorker(context.store.database, { ...worker, limits: NO_LIMITS })
  }
}
