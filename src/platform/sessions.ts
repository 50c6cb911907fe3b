import { randomBytes } from 'node:crypto'
import { toTimestamp, type Clock } from '../base/clock.ts'
import { sha256 } from '../base/hash.ts'
import type { Database } from '../database/database.ts'
import type { Caller } from './caller.ts'
import { PlatformError } from './errors.ts'
import { LoginLimit } from './login-limit.ts'
import type { User } from './model.ts'
import type { Passwords } from './passwords.ts'
import { takeLock } from './store/locks.ts'
import { deleteAttempts } from './store/login-attempts.ts'
import { deleteSession, findSessionUser, insertSession } from './store/sessions.ts'
import { findUser, findUserByEmail, replacePasswordHash, toUser, type UserRow } from './store/users.ts'

/** A session as whoever logs in gets it; the token is shown this once. */
interface Session {
  token: string
  expires_at: string
  user: User
}

const TOKEN = /^mst_[\w-]{43}$/

/** Sessions of people: `mst_` tokens, of which only the SHA-256 is stored. Contract: git-host.md 2.3. */
export class Sessions {
  readonly #database: Database
  readonly #clock: Clock
  readonly #passwords: Passwords
  readonly #limit: LoginLimit
  readonly #lifetimeMs: number
  #ended = 0

  constructor(database: Database, clock: Clock, passwords: Passwords, lifetimeMs: number) {
    this.#database = database
    this.#clock = clock
    this.#passwords = passwords
    this.#limit = new LoginLimit(database, clock)
    this.#lifetimeMs = lifetimeMs
  }

  /** @throws unauthorized 401, the same for whatever is wrong; rate_limited 429 */
  login({ email: sent, password }: { email: string; password: string }, address: string): Promise<Session> {
    const email = sent.toLowerCase()
    return this.#limit.during(email, address, (attempt) => this.#login(email, password, attempt))
  }

  async #login(email: string, password: string, attempt: readonly number[]): Promise<Session> {
    const row = await findUserByEmail(this.#database, email)
    const isRight = await this.#verify(password, row, attempt)
    if (!row || !isRight || row.active !== 1) throw wrongLogin()
    const anew = this.#passwords.isCurrent(row.password_hash) ? undefined : await this.#passwords.hash(password)
    const token = `mst_${randomBytes(32).toString('base64url')}`
    const now = this.#clock.now()
    const expiresAt = now + this.#lifetimeMs
    await this.#database.transaction(async (tx) => {
      await takeLock(tx, `user ${row.id}`)
      const latest = await findUser(tx, row.organization_id, row.id)
      if (latest?.active !== 1 || latest.password_hash !== row.password_hash) throw wrongLogin()
      await deleteAttempts(tx, attempt)
      await insertSession(tx, { tokenHash: sha256(token), userId: row.id, now, expiresAt })
      if (anew !== undefined) await replacePasswordHash(tx, row.id, row.password_hash, anew)
    })
    return { token, expires_at: toTimestamp(expiresAt), user: toUser(row) }
  }

  /** A login that could not be tried is not one that failed. */
  async #verify(password: string, row: UserRow | undefined, attempt: readonly number[]): Promise<boolean> {
    try {
      return await this.#passwords.verify(password, row?.password_hash)
    } catch (error) {
      await this.#limit.forget(attempt)
      throw error
    }
  }

  /** The user of a session that is neither ended nor expired, nor of a user who is no longer active. */
  async find(token: string): Promise<Caller | undefined> {
    if (!TOKEN.test(token)) return undefined
    const tokenHash = sha256(token)
    const row = await findSessionUser(this.#database, tokenHash, this.#clock.now())
    return row && { user: toUser(row), tokenHash }
  }

  async logout({ tokenHash }: Caller): Promise<void> {
    await this.#database.transaction((tx) => deleteSession(tx, tokenHash))
    this.noteEnded()
  }

  /** Grows whenever sessions were ended here: whoever remembers one that it found before must look again. */
  get ended(): number {
    return this.#ended
  }

  /** Sessions were ended, and that is durable. */
  noteEnded(): void {
    this.#ended++
  }
}

const wrongLogin = (): PlatformError => new PlatformError('unauthorized', 'e-mail or password is wrong')
