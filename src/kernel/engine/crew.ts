import type { Logger } from 'pino'
import { errorText } from '../../base/errors.ts'
import type { Scope } from '../model/fields.ts'
import { scopeKey } from '../store/scope-key.ts'

/** Workers of one kind in one scope. */
export interface ScopedPool {
  readonly scope: Scope
  start(): void
  /** Takes on nothing more; ends when nothing is under way any more. */
  stop(): Promise<void>
  /** Gives up what is under way. */
  abandonAll(): void
}

/** Where there are workers: always the same scopes, or those that a source names, asked again and again. */
export type Scopes = { scopes: Scope[] } | { scopeSource: () => Scope[] | Promise<Scope[]>; reconcileMs?: number }

const RECONCILE_MS = 30_000

/** Workers of one kind, a pool in each scope. Contract: kernel-1.md 14.2 */
export class Crew {
  readonly #where: Scopes
  readonly #makePool: (scope: Scope) => ScopedPool
  readonly #log: Logger
  readonly #pools = new Map<string, ScopedPool>()
  /** Of scopes that are not served any more. */
  readonly #leaving = new Set<Promise<void>>()
  #timer: NodeJS.Timeout | undefined
  #reconciling: Promise<void> = Promise.resolve()

  constructor(where: Scopes, makePool: (scope: Scope) => ScopedPool, log: Logger) {
    this.#where = where
    this.#makePool = makePool
    this.#log = log
  }

  get scopes(): Scope[] {
    return [...this.#pools.values()].map(({ scope }) => scope)
  }

  async start(): Promise<void> {
    const where = this.#where
    if ('scopes' in where) return this.#serve(where.scopes)
    this.#serve(await where.scopeSource())
    this.#timer = setInterval(() => {
      this.#reconciling = this.#reconciling.then(() => this.#reconcile(where.scopeSource))
    }, where.reconcileMs ?? RECONCILE_MS)
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#reconciling
    await Promise.all([...[...this.#pools.values()].map((pool) => pool.stop()), ...this.#leaving])
  }

  abandonAll(): void {
    for (const pool of this.#pools.values()) pool.abandonAll()
  }

  async #reconcile(scopeSource: () => Scope[] | Promise<Scope[]>): Promise<void> {
    try {
      this.#serve(await scopeSource())
    } catch (error) {
      this.#log.warn({ err: error }, `scopes are not known: ${errorText(error)}`)
    }
  }

  #serve(scopes: readonly Scope[]): void {
    const wanted = new Map(scopes.map((scope) => [scopeKey(scope), scope]))
    for (const [key, pool] of this.#pools) {
      if (wanted.has(key)) continue
      this.#pools.delete(key)
      const leaving = pool.stop().finally(() => this.#leaving.delete(leaving))
      this.#leaving.add(leaving)
    }
    for (const [key, scope] of wanted) {
      if (this.#pools.has(key)) continue
      const pool = this.#makePool(scope)
      this.#pools.set(key, pool)
      pool.start()
    }
  }
}
