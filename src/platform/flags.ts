import type { Database } from '../database/database.ts'
import { PlatformError } from './errors.ts'
import { FLAGS, type Flag, type FlagName } from './model.ts'
import { readFlags, saveFlag } from './store/flags.ts'

/** What an organization may try: each is off until its admin turns it on. Contract: git-host.md 2.2. */
export class Flags {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async list(organizationId: number): Promise<Flag[]> {
    const set = await readFlags(this.#database, organizationId)
    return FLAGS.map((name) => ({ name, enabled: set.get(name) ?? false }))
  }

  async set(organizationId: number, name: FlagName, enabled: boolean): Promise<Flag> {
    await this.#database.transaction((tx) => saveFlag(tx, organizationId, name, enabled))
    return { name, enabled }
  }

  /** @throws feature_disabled 403 */
  async require(organizationId: number, name: FlagName): Promise<void> {
    const isOn = (await readFlags(this.#database, organizationId)).get(name) ?? false
    if (!isOn) throw new PlatformError('feature_disabled', `${name} is off for this organization`, { flag: name })
  }
}
