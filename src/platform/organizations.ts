import type { Clock } from '../base/clock.ts'
import type { Database, Queryable } from '../database/database.ts'
import { conflict, PlatformError } from './errors.ts'
import type { Organization, OrganizationRequest, User } from './model.ts'
import type { Passwords } from './passwords.ts'
import { createKeyFile } from './sealing/key-file.ts'
import type { Sealer } from './sealing/sealer.ts'
import { takeLock } from './store/locks.ts'
import { findOrganization, hasOrganizations, insertOrganization, listOrganizations } from './store/organizations.ts'
import { addUser } from './users.ts'

export interface Founded {
  organization: Organization
  user: User
}

/** Organizations and their first admins; who opens the store itself makes them. Contract: git-host.md 2.8. */
export class Organizations {
  readonly #database: Database
  readonly #clock: Clock
  readonly #passwords: Passwords
  readonly #sealer: Sealer
  #isInitialized = false

  constructor(database: Database, clock: Clock, passwords: Passwords, sealer: Sealer) {
    this.#database = database
    this.#clock = clock
    this.#passwords = passwords
    this.#sealer = sealer
  }

  /** Whether there is an organization; asked of the store until there is one. */
  async isInitialized(): Promise<boolean> {
    this.#isInitialized ||= await hasOrganizations(this.#database)
    return this.#isInitialized
  }

  /** @throws not_initialized 503 */
  async requireInitialized(): Promise<void> {
    if (await this.isInitialized()) return
    throw new PlatformError('not_initialized', 'there is no organization yet: run `mem platform init`')
  }

  /** Makes the key file and the first organization. @throws conflict 409 `initialized` */
  async initialize(request: OrganizationRequest): Promise<Founded> {
    if (await hasOrganizations(this.#database)) throw alreadyInitialized()
    if (!createKeyFile(this.#sealer.path)) this.#sealer.keys()
    const hash = await this.#passwords.hash(request.password)
    return this.#database.transaction(async (tx) => {
      await takeLock(tx, 'first organization')
      if (await hasOrganizations(tx)) throw alreadyInitialized()
      return this.#found(tx, request, hash)
    })
  }

  /** @throws conflict 409 `email_taken`, not_initialized 503 */
  async add(request: OrganizationRequest): Promise<Founded> {
    await this.requireInitialized()
    const hash = await this.#passwords.hash(request.password)
    return this.#database.transaction((tx) => this.#found(tx, request, hash))
  }

  list(): Promise<Organization[]> {
    return listOrganizations(this.#database)
  }

  async get(id: number): Promise<Organization> {
    const organization = await findOrganization(this.#database, id)
    if (!organization) throw new Error(`organization ${id} of a user is not there`)
    return organization
  }

  async #found(tx: Queryable, { organization: name, email }: OrganizationRequest, hash: string): Promise<Founded> {
    const now = this.#clock.now()
    const organization = await insertOrganization(tx, name, now)
    return { organization, user: await addUser(tx, organization.id, { email, role: 'admin' }, hash, now) }
  }
}

const alreadyInitialized = (): PlatformError =>
  conflict('initialized', 'the platform is initialized already; `mem platform orgs add` makes another organization')
