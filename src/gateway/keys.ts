import { randomBytes } from 'node:crypto'
import { toTimestamp, type Clock } from '../base/clock.ts'
import { defined } from '../base/defined.ts'
import { sha256 } from '../base/hash.ts'
import type { Database, Queryable } from '../database/database.ts'
import { optional } from '../database/rows.ts'
import type { Caller } from '../platform/caller.ts'
import { conflict, invalidRequest, notFound } from '../platform/errors.ts'
import { isAdmin, requireSetting, type Actor } from './access.ts'
import { difference, type Audit } from './audit.ts'
import type { VirtualKey } from './model.ts'
import type { Spent, SpentOf } from './ports.ts'
import type { KeyRequest } from './requests/key.ts'
import type { States } from './state/states.ts'
import { findOwners } from './store/credentials.ts'
import {
  countKeys,
  deleteKey,
  findKey,
  insertKey,
  listKeys,
  replaceToken,
  updateKey,
  type KeyRow,
  type KeyToken,
  type KeyValues,
  type OlderToken,
} from './store/keys.ts'
import { readActiveUsers } from './store/revisions.ts'
import { readSettings } from './store/settings.ts'

export interface KeyParts {
  database: Database
  states: States
  audit: Audit
  clock: Clock
  spentOf: SpentOf
}

const COUNT_MAX = 10_000
/** Tokens of one key beside its own. */
const OLDER_MAX = 20
const NOTHING_SPENT: Spent = { spent_usd: '0', reserved_usd: '0' }

/** Tokens for machines, of which only the SHA-256 is stored. Contract: gateway.md 2.3. */
export class Keys {
  readonly #parts: KeyParts

  constructor(parts: KeyParts) {
    this.#parts = parts
  }

  /** Admins see all, members their own. */
  async list(caller: Caller, after: number, limit: number): Promise<VirtualKey[]> {
    const { organization_id: organizationId, id } = caller.user
    const userId = isAdmin(caller) ? undefined : id
    const rows = await listKeys(this.#parts.database, organizationId, userId, after, limit)
    return this.#show(organizationId, rows)
  }

  /** @throws not_found 404 */
  async get(caller: Caller, id: number): Promise<VirtualKey> {
    return this.#showOne(await findOwn(this.#parts.database, caller, id))
  }

  /** @throws forbidden 403 for members who may make no keys */
  requireMaker(caller: Caller): Promise<void> {
    return requireMemberKeys(this.#parts.database, caller)
  }

  /** A key as whoever holds it sees it; undefined when another process has deleted it. */
  async self(organizationId: number, id: number): Promise<VirtualKey | undefined> {
    const row = await findKey(this.#parts.database, organizationId, id)
    return row && this.#showOne(row)
  }

  /** The token is shown this once. @throws forbidden 403, not_found 404 for what it names, conflict 409 `limit`, `cost_disabled` */
  async create(actor: Actor, request: KeyRequest): Promise<VirtualKey & { token: string }> {
    const organizationId = actor.user.organization_id
    const userId = request.user_id ?? (isAdmin(actor) ? null : actor.user.id)
    const { token, ...stored } = newToken()
    const id = await this.#parts.states.change(organizationId, async (tx) => {
      await requireMemberKeys(tx, actor)
      const isActive = (await readActiveUsers(tx, organizationId)).some((user) => user.id === userId)
      // Whom else there is, is none of a member's business.
      const isHidden = !isAdmin(actor) && userId !== actor.user.id
      if (userId !== null && (isHidden || !isActive)) throw notFound('user', userId)
      if ((await countKeys(tx, organizationId)) >= COUNT_MAX) {
        throw conflict('limit', `an organization has ${COUNT_MAX} keys at most`)
      }
      const values = await this.#values(tx, actor, request, userId, [])
      const made = await insertKey(tx, organizationId, userId, actor.user.id, stored, values)
      const changes = difference({}, { ...shown(values), user_id: userId })
      await this.#parts.audit.append(tx, actor, 'key.create', target(made, request), changes)
      return made
    })
    return { ...(await this.get(actor, id)), token }
  }

  /** @throws as `create`; invalid_request 400 for another user */
  async replace(actor: Actor, id: number, request: KeyRequest): Promise<VirtualKey> {
    const organizationId = actor.user.organization_id
    await this.#parts.states.change(organizationId, async (tx) => {
      const old = await findOwn(tx, actor, id)
      await requireMemberKeys(tx, actor)
      if (request.user_id !== undefined && request.user_id !== old.user_id) {
        throw invalidRequest('user_id of a key stays as it is', 'user_id')
      }
      const values = await this.#values(tx, actor, request, old.user_id, old.fields.allowed_credentials)
      await updateKey(tx, organizationId, id, values)
      const changes = difference(shown(old), shown(values))
      await this.#parts.audit.append(tx, actor, 'key.update', target(id, request), changes)
    })
    return this.get(actor, id)
  }

  /** Tokens until now stay good for the time of grace, those of a rotation before it no longer than its own. @throws not_found 404 */
  async rotate(actor: Actor, id: number, graceSeconds: number): Promise<VirtualKey & { token: string }> {
    const organizationId = actor.user.organization_id
    const { token, ...stored } = newToken()
    await this.#parts.states.change(organizationId, async (tx) => {
      const old = await findOwn(tx, actor, id)
      const now = this.#parts.clock.now()
      await replaceToken(tx, organizationId, id, stored, olderTokens(old, now, graceSeconds * 1000), now)
      const changes = difference(
        { prefix: old.prefix, last4: old.last4 },
        { prefix: stored.prefix, last4: stored.last4, grace_seconds: graceSeconds },
      )
      await this.#parts.audit.append(tx, actor, 'key.rotate', target(id, old), changes)
    })
    return { ...(await this.get(actor, id)), token }
  }

  /** @throws not_found 404 */
  async delete(actor: Actor, id: number): Promise<void> {
    const organizationId = actor.user.organization_id
    await this.#parts.states.change(organizationId, async (tx) => {
      const old = await findOwn(tx, actor, id)
      await deleteKey(tx, organizationId, id)
      await this.#parts.audit.append(tx, actor, 'key.delete', target(id, old))
    })
  }

  async #values(
    tx: Queryable,
    actor: Actor,
    request: KeyRequest,
    userId: number | null,
    before: readonly number[],
  ): Promise<KeyValues> {
    const { name, enabled, budget, expires_at: expiresAt, user_id: _, ...fields } = request
    const { user } = actor
    if (budget && !(await readSettings(tx, user.organization_id)).cost_tracking) {
      throw conflict('cost_disabled', 'a budget needs cost_tracking, which is off')
    }
    const owners = await findOwners(tx, user.organization_id, user.id)
    for (const id of fields.allowed_credentials) {
      const owner = owners.get(id)
      const isUsable = owner === null || (owner !== undefined && owner === userId)
      if (!isUsable && !before.includes(id)) throw notFound('credential', id)
    }
    return {
      name,
      enabled,
      fields: defined(fields),
      budget: budget ?? null,
      expires_at: expiresAt ?? null,
      updated_at: this.#parts.clock.now(),
    }
  }

  async #showOne(row: KeyRow): Promise<VirtualKey> {
    const [key] = await this.#show(row.organization_id, [row])
    if (!key) throw new Error('a key that was read is not shown')
    return key
  }

  async #show(organizationId: number, rows: readonly KeyRow[]): Promise<VirtualKey[]> {
    const spent = await this.#parts.spentOf(
      organizationId,
      rows.map(({ id }) => id),
    )
    return rows.map((row) => toKey(row, spent.get(row.id) ?? NOTHING_SPENT))
  }
}

const toKey = (row: KeyRow, { spent_usd, reserved_usd, window_resets_at }: Spent): VirtualKey => ({
  id: row.id,
  organization_id: row.organization_id,
  name: row.name,
  prefix: row.prefix,
  last4: row.last4,
  ...optional('user_id', row.user_id),
  ...row.fields,
  ...optional('budget', row.budget),
  ...optional('expires_at', row.expires_at === null ? null : toTimestamp(row.expires_at)),
  enabled: row.enabled,
  spent_usd,
  reserved_usd,
  ...optional('window_resets_at', window_resets_at),
  ...optional('last_used_at', row.last_used_at === null ? null : toTimestamp(row.last_used_at)),
  created_by: row.created_by,
  created_at: toTimestamp(row.created_at),
  updated_at: toTimestamp(row.updated_at),
})

function newToken(): KeyToken & { token: string } {
  const token = `mvk_${randomBytes(32).toString('base64url')}`
  return { token, hash: sha256(token), prefix: token.slice(0, 12), last4: token.slice(-4) }
}

/** What is still good of the tokens until now, once another takes their place. */
const olderTokens = ({ hash, older_tokens }: KeyRow, now: number, graceMs: number): OlderToken[] =>
  [{ hash, until: now + graceMs }, ...older_tokens]
    .map((older) => ({ hash: older.hash, until: Math.min(older.until, now + graceMs) }))
    .filter(({ until }) => until > now)
    .slice(0, OLDER_MAX)

/** @throws not_found 404 for a member whose it is not */
async function findOwn(db: Queryable, caller: Caller, id: number): Promise<KeyRow> {
  const row = await findKey(db, caller.user.organization_id, id)
  if (!row || (!isAdmin(caller) && row.user_id !== caller.user.id)) throw notFound('key', id)
  return row
}

/** @throws forbidden 403 for a member where the setting is off */
async function requireMemberKeys(db: Queryable, caller: Caller): Promise<void> {
  if (!isAdmin(caller)) {
    requireSetting((await readSettings(db, caller.user.organization_id)).member_keys, 'member_keys')
  }
}

const target = (id: number, { name }: { name: string }) => ({ type: 'key' as const, id, name })

const shown = ({ name, enabled, fields, budget, expires_at: expiresAt }: KeyValues): Record<string, unknown> => ({
  name,
  enabled,
  ...fields,
  budget,
  expires_at: expiresAt === null ? null : toTimestamp(expiresAt),
})
