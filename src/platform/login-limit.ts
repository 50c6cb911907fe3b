import type { Clock } from '../base/clock.ts'
import { sha256 } from '../base/hash.ts'
import { networkOf } from '../base/network.ts'
import type { Database } from '../database/database.ts'
import { rateLimited } from './errors.ts'
import { takeLock } from './store/locks.ts'
import { deleteAttempts, insertAttempt, purgeAttempts, readAttempts } from './store/login-attempts.ts'

const FAILURES_MAX = 10
const WINDOW_MS = 15 * 60_000

/**
 * Ten failed logins in 15 minutes per e-mail and per address, over all processes. An attempt counts as failed from its
 * beginning until it has succeeded, so that many at once get no more tries. Contract: git-host.md 2.3.
 */
export class LoginLimit {
  readonly #database: Database
  readonly #clock: Clock

  constructor(database: Database, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  /** Counts an attempt; gives what `deleteAttempts` takes to take it back. @throws rate_limited 429 */
  begin(email: string, address: string): Promise<number[]> {
    const now = this.#clock.now()
    // Clocks of other processes may be ahead; what lies further on is of a time before this clock was set back.
    const span = { after: now - WINDOW_MS, before: now + WINDOW_MS }
    const subjects = [`email ${email}`, `address ${networkOf(address)}`].map(sha256).sort()
    return this.#database.transaction(async (tx) => {
      for (const subject of subjects) await takeLock(tx, subject)
      await purgeAttempts(tx, span.after)
      for (const subject of subjects) {
        const tenth = (await readAttempts(tx, subject, span, FAILURES_MAX))[FAILURES_MAX - 1]
        if (tenth !== undefined)
          throw rateLimited('too many failed logins; wait before the next', tenth + WINDOW_MS - now)
      }
      const ids: number[] = []
      for (const subject of subjects) ids.push(await insertAttempt(tx, subject, now))
      return ids
    })
  }

  /** What was begun was no failure. */
  async forget(attempt: readonly number[]): Promise<void> {
    await this.#database.transaction((tx) => deleteAttempts(tx, attempt))
  }
}
