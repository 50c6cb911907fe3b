import type { Clock } from '../base/clock.ts'
import { defined } from '../base/defined.ts'
import type { Database, Queryable } from '../database/database.ts'
import type { Caller } from '../platform/caller.ts'
import { conflict, invalidRequest, notFound } from '../platform/errors.ts'
import { isVisible, ownerFor, requireKeeper, scopeOf, type Actor } from './access.ts'
import { toAlias } from './alias-answer.ts'
import { difference, type Audit } from './audit.ts'
import type { Alias } from './model.ts'
import { ManagementError } from './refusals.ts'
import type { AliasRequest } from './requests/alias.ts'
import type { States } from './state/states.ts'
import {
  deleteAlias,
  findAlias,
  insertAlias,
  listAliases,
  readAliases,
  updateAlias,
  type AliasRow,
  type AliasValues,
} from './store/aliases.ts'
import { findOwners } from './store/credentials.ts'

export interface AliasParts {
  database: Database
  states: States
  audit: Audit
  clock: Clock
}

const COUNT_MAX = 500

/** Names with members. Contract: gateway.md 2.2. */
export class Aliases {
  readonly #parts: AliasParts

  constructor(parts: AliasParts) {
    this.#parts = parts
  }

  async list({ user }: Caller, after: number, limit: number): Promise<Alias[]> {
    return (await listAliases(this.#parts.database, user.organization_id, user.id, after, limit)).map(toAlias)
  }

  /** @throws not_found 404 */
  async get(caller: Caller, id: number): Promise<Alias> {
    return toAlias(await findVisible(this.#parts.database, caller, id))
  }

  /** @throws not_found 404, forbidden 403 where it is others' to change */
  async requireKept(caller: Caller, id: number): Promise<void> {
    await findKept(this.#parts.database, caller, id)
  }

  /** @throws forbidden 403, not_found 404 for members, conflict 409 `limit`, `name`, invalid_alias 422 `cycle`, `private_member` */
  async create(actor: Actor, request: AliasRequest): Promise<Alias> {
    const organizationId = actor.user.organization_id
    const userId = ownerFor(actor, request.scope)
    const id = await this.#parts.states.change(organizationId, async (tx) => {
      const all = await readAliases(tx, organizationId)
      if (all.length >= COUNT_MAX) throw conflict('limit', `an organization has ${COUNT_MAX} aliases at most`)
      const values = this.#values(request)
      await checkMembers(tx, actor, userId, values, [])
      checkNames(all, { id: 0, user_id: userId, ...values })
      const made = await insertAlias(tx, organizationId, userId, values)
      await this.#parts.audit.append(tx, actor, 'alias.create', target(made, request), difference({}, shown(values)))
      return made
    })
    return this.get(actor, id)
  }

  /** @throws as `create` */
  async replace(actor: Actor, id: number, request: AliasRequest): Promise<Alias> {
    const organizationId = actor.user.organization_id
    await this.#parts.states.change(organizationId, async (tx) => {
      const old = await findKept(tx, actor, id)
      if ((request.scope ?? scopeOf(old)) !== scopeOf(old)) {
        throw invalidRequest(`scope is ${scopeOf(old)} and stays so`, 'scope')
      }
      const values = this.#values(request)
      await checkMembers(tx, actor, old.user_id, values, old.fields.members)
      checkNames(await readAliases(tx, organizationId), { id, user_id: old.user_id, ...values })
      await updateAlias(tx, organizationId, id, values)
      await this.#parts.audit.append(
        tx,
        actor,
        'alias.update',
        target(id, request),
        difference(shown(old), shown(values)),
      )
    })
    return this.get(actor, id)
  }

  /** @throws not_found 404, forbidden 403 */
  async delete(actor: Actor, id: number): Promise<void> {
    const organizationId = actor.user.organization_id
    await this.#parts.states.change(organizationId, async (tx) => {
      const old = await findKept(tx, actor, id)
      await deleteAlias(tx, organizationId, id)
      await this.#parts.audit.append(tx, actor, 'alias.delete', target(id, old))
    })
  }

  #values({ name, enabled, scope: _, ...fields }: AliasRequest): AliasValues {
    return { name, enabled, fields: defined(fields), updated_at: this.#parts.clock.now() }
  }
}

const target = (id: number, { name }: { name: string }) => ({ type: 'alias' as const, id, name })

const shown = ({ name, enabled, fields }: AliasValues): Record<string, unknown> => ({ name, enabled, ...fields })

async function findVisible(db: Queryable, caller: Caller, id: number): Promise<AliasRow> {
  const row = await findAlias(db, caller.user.organization_id, id)
  if (!row || !isVisible(caller, row)) throw notFound('alias', id)
  return row
}

async function findKept(db: Queryable, caller: Caller, id: number): Promise<AliasRow> {
  const row = await findVisible(db, caller, id)
  requireKeeper(caller, row)
  return row
}

/** Members must be there for the caller, and those of a shared alias be shared. @throws not_found 404, invalid_alias 422 */
async function checkMembers(
  tx: Queryable,
  { user }: Caller,
  userId: number | null,
  { fields }: AliasValues,
  before: readonly { credential_id: number }[],
): Promise<void> {
  const owners = await findOwners(tx, user.organization_id, user.id)
  for (const { credential_id: id } of fields.members) {
    const owner = owners.get(id)
    if (owner === undefined) {
      if (before.some(({ credential_id }) => credential_id === id)) continue
      throw notFound('credential', id)
    }
    if (userId !== null || owner === null) continue
    const message = `credential ${id} is private: a shared alias has shared members only`
    throw new ManagementError('invalid_alias', message, { reason: 'private_member', credential_id: id })
  }
}

type Named = Pick<AliasRow, 'id' | 'user_id' | 'name' | 'fields'>

/** @throws conflict 409 `name`, invalid_alias 422 `cycle` */
function checkNames(all: readonly AliasRow[], alias: Named): void {
  const others = all.filter(({ id }) => id !== alias.id)
  if (others.some(({ name, user_id }) => name === alias.name && user_id === alias.user_id)) {
    throw conflict('name', `an alias with the name ${alias.name} exists`)
  }
  const cycle = findCycle([...others, alias], alias)
  if (!cycle) return
  const message = `fallback_models come back to where they began: ${cycle.join(', ')}`
  throw new ManagementError('invalid_alias', message, { reason: 'cycle', cycle })
}

/** The names from an alias back to itself, as its owner sees them: private ones hide those that are shared. */
function findCycle(all: readonly Named[], alias: Named): string[] | undefined {
  const byName = new Map<string, Named>()
  for (const each of all) if (each.user_id === null && !byName.has(each.name)) byName.set(each.name, each)
  for (const each of all) if (alias.user_id !== null && each.user_id === alias.user_id) byName.set(each.name, each)
  const seen = new Set<string>()
  const search = (name: string, path: readonly string[]): string[] | undefined => {
    if (name === alias.name && path.length > 0) return [...path, name]
    if (seen.has(name)) return undefined
    seen.add(name)
    for (const next of byName.get(name)?.fields.fallback_models ?? []) {
      const cycle = search(next, [...path, name])
      if (cycle) return cycle
    }
    return undefined
  }
  return search(alias.name, [])
}
