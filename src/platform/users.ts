import type { Clock } from '../base/clock.ts'
import type { Database, Queryable } from '../database/database.ts'
import type { Caller } from './caller.ts'
import { conflict, notFound } from './errors.ts'
import type { User, UserChanges, UserRequest } from './model.ts'
import type { Passwords } from './passwords.ts'
import type { UserWatch } from './ports.ts'
import type { Sessions } from './sessions.ts'
import { takeLock } from './store/locks.ts'
import { deleteSessionsOf } from './store/sessions.ts'
import {
  countActiveAdmins,
  findUser,
  findUserByEmail,
  insertUser,
  listUsers,
  toUser,
  updateUser,
  type UserRow,
} from './store/users.ts'

/** The people of an organization; its admins keep them. Contract: git-host.md 2.2, 2.5. */
export class Users {
  readonly #database: Database
  readonly #clock: Clock
  readonly #passwords: Passwords
  readonly #sessions: Sessions
  readonly #watch: UserWatch

  constructor(database: Database, clock: Clock, passwords: Passwords, sessions: Sessions, watch: UserWatch) {
    this.#database = database
    this.#clock = clock
    this.#passwords = passwords
    this.#sessions = sessions
    this.#watch = watch
  }

  async list({ user }: Caller, after: number, limit: number): Promise<User[]> {
    return (await listUsers(this.#database, user.organization_id, after, limit)).map(toUser)
  }

  /** @throws conflict 409 `email_taken` */
  async create({ user }: Caller, request: UserRequest): Promise<User> {
    const hash = await this.#passwords.hash(request.password)
    return this.#change(user.organization_id, (tx) =>
      addUser(tx, user.organization_id, request, hash, this.#clock.now()),
    )
  }

  /** @throws not_found 404 */
  async require({ user }: Caller, id: number): Promise<void> {
    if (!(await findUser(this.#database, user.organization_id, id))) throw notFound('user', id)
  }

  /**
   * Whoever is no longer active has no session any more; a new password ends the sessions but the one that set it.
   * @throws not_found 404; conflict 409 `email_taken`, or `last_admin` when nobody could undo it
   */
  async change({ user, tokenHash }: Caller, id: number, changes: UserChanges): Promise<User> {
    const organizationId = user.organization_id
    const hash = changes.password === undefined ? undefined : await this.#passwords.hash(changes.password)
    return this.#change(organizationId, async (tx) => {
      await takeLock(tx, `admins of ${organizationId}`)
      await takeLock(tx, `user ${id}`)
      const old = await findUser(tx, organizationId, id)
      if (!old) throw notFound('user', id)
      const changed = changedRow(old, changes, hash)
      if (changed.email !== old.email) await refuseTaken(tx, changed.email)
      const isLast = isActiveAdmin(old) && (await countActiveAdmins(tx, organizationId)) === 1
      if (isLast && !isActiveAdmin(changed)) throw conflict('last_admin', `user ${id} is the last active admin`)
      await updateUser(tx, organizationId, id, changed)
      if (changed.active === 0) await deleteSessionsOf(tx, id)
      else if (hash !== undefined) await deleteSessionsOf(tx, id, tokenHash)
      return toUser(changed)
    })
  }

  async #change(organizationId: number, work: (tx: Queryable) => Promise<User>): Promise<User> {
    const user = await this.#database.transaction(async (tx) => {
      const changed = await work(tx)
      await this.#watch.changing(tx, organizationId)
      return changed
    })
    this.#sessions.noteEnded()
    await this.#watch.changed(organizationId)
    return user
  }
}

/** Adds a user with a password already hashed. @throws conflict 409 `email_taken` */
export async function addUser(
  tx: Queryable,
  organizationId: number,
  { email, display_name, role, active }: Omit<UserRequest, 'password'>,
  hash: string,
  now: number,
): Promise<User> {
  await refuseTaken(tx, email)
  const values = {
    email,
    password_hash: hash,
    display_name: display_name ?? null,
    role: role ?? 'member',
    active: Number(active ?? true),
  }
  return toUser(await insertUser(tx, organizationId, values, now))
}

/** What is not named stays; null clears. */
function changedRow(old: UserRow, changes: UserChanges, hash: string | undefined): UserRow {
  const { email = old.email, display_name = old.display_name, role = old.role, active = old.active === 1 } = changes
  return { ...old, email, password_hash: hash ?? old.password_hash, display_name, role, active: Number(active) }
}

const isActiveAdmin = ({ role, active }: UserRow): boolean => role === 'admin' && active === 1

async function refuseTaken(tx: Queryable, email: string): Promise<void> {
  await takeLock(tx, `email ${email}`)
  if (await findUserByEmail(tx, email)) throw conflict('email_taken', `a user with the e-mail ${email} exists`)
}
