import type { Logger } from 'pino'
import { errorText } from '../../base/errors.ts'
import type { Hints } from '../hints.ts'
import type { Scope } from '../model/fields.ts'
import type { WorkerLimit } from './worker-limit.ts'

export interface PoolOptions {
  scope: Scope
  /** Pieces of work at once. */
  concurrency: number
  pollIntervalMs: number
  limit: WorkerLimit
  hints: Hints
  log: Logger
  random: () => number
  /** Takes what is next; undefined where there is nothing. It is called by several workers at once. */
  claim: () => Promise<(() => Promise<void>) | undefined>
  /** Shows itself to others: a pool that is silent for 30 s counts as gone. */
  register: (active: number) => Promise<void>
}

const REGISTER_MS = 10_000
const MAX_POLL_MS = 5000
const JITTER = 0.2

/**
 * Workers of one scope that claim and work. While there is nothing to do one of them looks again with each hint and poll; one
 * that finds something wakes the next, so that a burst is met by all. Contract: kernel-1.md 14.1, 14.2
 */
export class Pool {
  readonly #options: PoolOptions
  readonly #workers: Promise<void>[] = []
  readonly #idle: (() => void)[] = []
  #active = 0
  /** Claims in a row that threw. */
  #failures = 0
  /** Counts what may have brought work, so that none is missed while a claim looks. */
  #hints = 0
  #poll: NodeJS.Timeout | undefined
  #registration: NodeJS.Timeout | undefined
  #unlisten: (() => void) | undefined
  #isStopped = false

  constructor(options: PoolOptions) {
    this.#options = options
  }

  start(): void {
    const { concurrency, hints, scope } = this.#options
    this.#unlisten = hints.listen(scope, () => this.#wakeOne())
    this.#register()
    this.#registration = setInterval(() => this.#register(), REGISTER_MS)
    for (let i = 0; i < concurrency; i++) this.#workers.push(this.#work(i > 0))
    this.#schedulePoll()
  }

  /** Claims nothing more; resolves when all that is under way has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#unlisten?.()
    clearInterval(this.#registration)
    clearTimeout(this.#poll)
    for (const wake of this.#idle.splice(0)) wake()
    await Promise.all(this.#workers)
  }

  async #work(isSpare: boolean): Promise<void> {
    const { limit } = this.#options
    if (isSpare) await this.#wait()
    while (!this.#isStopped) {
      await limit.take()
      const seen = this.#hints
      let found = false
      try {
        found = await this.#claimAndWork()
      } finally {
        limit.give()
      }
      if (!found && seen === this.#hints && !this.#isStopped) await this.#wait()
    }
  }

  #wait(): Promise<void> {
    return new Promise((wake) => this.#idle.push(wake))
  }

  async #claimAndWork(): Promise<boolean> {
    const { log, scope } = this.#options
    if (this.#isStopped) return false
    let work: (() => Promise<void>) | undefined
    try {
      work = await this.#options.claim()
      this.#failures = 0
    } catch (error) {
      this.#failures++
      log.warn({ scope, err: error }, `claim failed: ${errorText(error)}`)
    }
    if (!work) return false
    this.#idle.shift()?.()
    this.#active++
    try {
      await work()
    } catch (error) {
      log.error({ scope, err: error }, `work was left: ${errorText(error)}`)
    }
    this.#active--
    return true
  }

  #wakeOne(): void {
    this.#hints++
    this.#idle.shift()?.()
  }

  #schedulePoll(): void {
    const { pollIntervalMs, random } = this.#options
    const interval = Math.min(pollIntervalMs * 2 ** Math.min(this.#failures, 10), Math.max(pollIntervalMs, MAX_POLL_MS))
    this.#poll = setTimeout(
      () => {
        this.#wakeOne()
        this.#schedulePoll()
      },
      interval * (1 + JITTER * (2 * random() - 1)),
    )
  }

  #register(): void {
    const { log, scope } = this.#options
    this.#options
      .register(this.#active)
      .catch((error: unknown) => log.warn({ scope, err: error }, `pool could not register: ${errorText(error)}`))
  }
}
