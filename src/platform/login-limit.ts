import type { Clock } from '../base/clock.ts'
import { sha256 } from '../base/hash.ts'
import { KeyedMutex } from '../base/keyed-mutex.ts'
import { networkOf } from '../base/network.ts'
import type { Database } from '../database/database.ts'
import { rateLimited } from './errors.ts'
import { takeLock } from './store/locks.ts'
import { deleteAttempts, insertAttempt, purgeAttempts, readAttempts } from './store/login-attempts.ts'

const FAILURES_MAX = 10
const WINDOW_MS = 15 * 60_000
/** What is behind them all must still be answered in time: a password takes half a second of a busy machine. */
const WAITING_MAX = 20

/** The rows of an attempt, or which subject has no more and for how long. */
type Begun = { ids: number[] } | { full: string; waitMs: number }

/**
 * Ten failed logins in 15 minutes per e-mail and per address, over all processes. An attempt counts as failed from its
 * beginning until it has succeeded, so that many at once get no more tries; who comes while some are open waits for what
 * becomes of those of this process. Contract: git-host.md 2.3.
 */
export class LoginLimit {
  readonly #database: Database
  readonly #clock: Clock
  /** How many attempts of this process are open, by subject. */
  readonly #open = new Map<string, number>()
  readonly #lines = new KeyedMutex()
  /** Those at the head of a line; an attempt that ends lets them look again. */
  readonly #heads: (() => void)[] = []
  #waiting = 0
  #ended = 0

  constructor(database: Database, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  /**
   * Runs a login, which takes its attempt back when it succeeds, as what `deleteAttempts` takes.
   * @throws rate_limited 429
   */
  async during<T>(email: string, address: string, login: (attempt: readonly number[]) => Promise<T>): Promise<T> {
    const subjects = [`email ${email}`, `address ${networkOf(address)}`].map(sha256).sort()
    const attempt = await this.#begin(subjects)
    try {
      return await login(attempt)
    } finally {
      this.#end(subjects)
    }
  }

  /** What was begun was no failure. */
  async forget(attempt: readonly number[]): Promise<void> {
    await this.#database.transaction((tx) => deleteAttempts(tx, attempt))
  }

  async #begin(subjects: readonly string[]): Promise<number[]> {
    const begun = await this.#tryToBegin(subjects)
    if ('ids' in begun) return begun.ids
    if (this.#waiting >= WAITING_MAX) throw rateLimited('too many logins at once', 1000)
    this.#waiting++
    try {
      return await this.#lines.run(begun.full, () => this.#beginInTurn(subjects))
    } finally {
      this.#waiting--
    }
  }

  async #beginInTurn(subjects: readonly string[]): Promise<number[]> {
    for (;;) {
      const ended = this.#ended
      const begun = await this.#tryToBegin(subjects)
      if ('ids' in begun) return begun.ids
      if (ended !== this.#ended) continue
      if (!this.#open.has(begun.full)) throw rateLimited('too many failed logins; wait before the next', begun.waitMs)
      await new Promise<void>((resolve) => this.#heads.push(resolve))
    }
  }

  async #tryToBegin(subjects: readonly string[]): Promise<Begun> {
    const now = this.#clock.now()
    // Clocks of other processes may be ahead; what lies further on is of a time before this clock was set back.
    const span = { after: now - WINDOW_MS, before: now + WINDOW_MS }
    let isOpen = false
    let begun: Begun | undefined
    try {
      begun = await this.#database.transaction(async (tx) => {
        for (const subject of subjects) await takeLock(tx, subject)
        await purgeAttempts(tx, span.after)
        for (const subject of subjects) {
          const tenth = (await readAttempts(tx, subject, span, FAILURES_MAX))[FAILURES_MAX - 1]
          if (tenth !== undefined) return { full: subject, waitMs: tenth + WINDOW_MS - now }
        }
        const ids: number[] = []
        for (const subject of subjects) ids.push(await insertAttempt(tx, subject, now))
        // Before anybody sees the rows; the transaction may run again.
        if (!isOpen) for (const subject of subjects) this.#open.set(subject, (this.#open.get(subject) ?? 0) + 1)
        isOpen = true
        return { ids }
      })
      return begun
    } finally {
      if (isOpen && !(begun && 'ids' in begun)) this.#end(subjects)
    }
  }

  #end(subjects: readonly string[]): void {
    for (const subject of subjects) {
      const left = (this.#open.get(subject) ?? 0) - 1
      if (left > 0) this.#open.set(subject, left)
      else this.#open.delete(subject)
    }
    this.#ended++
    for (const lookAgain of this.#heads.splice(0)) lookAgain()
  }
}
