import type { Clock } from '../base/clock.ts'
import { defined } from '../base/defined.ts'
import type { Database, Queryable } from '../database/database.ts'
import { optional } from '../database/rows.ts'
import type { Caller } from '../platform/caller.ts'
import { conflict, invalidRequest, notFound, PlatformError } from '../platform/errors.ts'
import type { Sealer } from '../platform/sealing/sealer.ts'
import { isVisible, ownerFor, requireKeeper, requireSetting, scopeOf, type Actor } from './access.ts'
import type { Audit, Target } from './audit.ts'
import { sharedHealth, toCredential } from './credential-answer.ts'
import { credentialChanges } from './credential-changes.ts'
import { lastErrorOf, UNREADABLE, type CredentialHealth } from './credential-health.ts'
import { planSecrets, withoutSaved, type SecretPlan } from './credential-secrets.ts'
import type { Credential } from './model.ts'
import type { LiveHealth } from './ports.ts'
import { checkAddress } from './requests/address.ts'
import type { CredentialRequest } from './requests/credential.ts'
import type { States } from './state/states.ts'
import { readAliases, updateAlias, type AliasRow } from './store/aliases.ts'
import {
  countCredentials,
  credentialNameExists,
  deleteCredential,
  findCredential,
  insertCredential,
  listCredentials,
  updateCredential,
  type CredentialFields,
  type CredentialFilter,
  type CredentialRow,
  type CredentialValues,
} from './store/credentials.ts'
import { saveHealth } from './store/health.ts'
import { deleteSecret, placeOfSecret, saveSecret } from './store/secrets.ts'
import { readSettings } from './store/settings.ts'

export interface CredentialParts {
  database: Database
  states: States
  sealer: Sealer
  audit: Audit
  clock: Clock
  /** `gateway.allowed_hosts` */
  allowedHosts: readonly string[]
  live: LiveHealth
  health: Pick<CredentialHealth, 'forget'>
  /** `gateway.runtime_roles` */
  runtimeRoles: readonly (number | '*')[]
}

const COUNT_MAX = 500
const LAST4_FROM = 12

/** The provider connections of an organization and of its users. Contract: gateway.md 2.1. */
export class Credentials {
  readonly #parts: CredentialParts

  constructor(parts: CredentialParts) {
    this.#parts = parts
  }

  async list(caller: Caller, filter: CredentialFilter, after: number, limit: number): Promise<Credential[]> {
    const { organization_id: organizationId, id } = caller.user
    const rows = await listCredentials(this.#parts.database, organizationId, id, filter, after, limit)
    return rows.map((row) => this.#show(caller, row))
  }

  /** @throws not_found 404, forbidden 403 */
  async get(caller: Caller, id: number): Promise<Credential> {
    return this.#show(caller, await findKept(this.#parts.database, caller, id))
  }

  /** @throws forbidden 403, invalid_request 400, address_refused 422, conflict 409 `limit`, `name` */
  async create(actor: Actor, request: CredentialRequest): Promise<Credential> {
    const organizationId = actor.user.organization_id
    const userId = ownerFor(actor, request.scope)
    const fields = this.checkedFields(actor, request, userId)
    const id = await this.#parts.states.change(organizationId, async (tx) => {
      requireSetting(
        userId === null || (await readSettings(tx, organizationId)).private_credentials,
        'private_credentials',
      )
      const plan = planSecrets(request, fields, undefined)
      if ((await countCredentials(tx, organizationId)) >= COUNT_MAX) {
        throw conflict('limit', `an organization has ${COUNT_MAX} credentials at most`)
      }
      await refuseTakenName(tx, organizationId, userId, request.name)
      const values = this.#values(request, fields, plan, undefined)
      const made = await insertCredential(tx, organizationId, userId, request.provider, actor.user.id, values)
      await this.#saveSecrets(tx, organizationId, made, plan)
      const changes = credentialChanges(undefined, { ...values, provider: request.provider }, plan)
      await this.#parts.audit.append(tx, actor, 'credential.create', targetOf(made, request.name), changes)
      return made
    })
    return this.get(actor, id)
  }

  /**
   * What changes nothing leaves version and audit alone; like every update it ends a rejection.
   * @throws as `create`, not_found 404, secret_required 422, conflict 409 `version`
   */
  async replace(actor: Actor, id: number, request: CredentialRequest): Promise<Credential> {
    const organizationId = actor.user.organization_id
    await this.#parts.states.change(organizationId, async (tx) => {
      const old = await findKept(tx, actor, id)
      refuseFixed(old, request)
      const fields = this.checkedFields(actor, request, old.user_id)
      if (request.version !== undefined && request.version !== old.version) {
        throw conflict('version', `credential ${id} has version ${old.version} by now`)
      }
      const plan = await withoutSaved(tx, this.#parts.sealer, old, planSecrets(request, fields, old))
      await refuseTakenName(tx, organizationId, old.user_id, request.name, id)
      const values = this.#values(request, fields, plan, old)
      const changes = credentialChanges(old, { ...values, provider: old.provider }, plan)
      const isSame = Object.keys(changes).length === 0
      if (!isSame || old.last_error) await saveHealth(tx, organizationId, id, { rejectedUntil: null, lastError: null })
      this.#parts.health.forget(id)
      if (isSame) return
      await updateCredential(tx, organizationId, id, values)
      await this.#saveSecrets(tx, organizationId, id, plan)
      await this.#parts.audit.append(tx, actor, 'credential.update', targetOf(id, request.name), changes)
    })
    this.#parts.live.recover(id)
    return this.get(actor, id)
  }

  /** Calls that run go on; what is enabled rests no longer. @throws not_found 404, forbidden 403 */
  async enable(actor: Actor, id: number, enabled: boolean): Promise<Credential> {
    const organizationId = actor.user.organization_id
    await this.#parts.states.change(organizationId, async (tx) => {
      const old = await findKept(tx, actor, id)
      if (old.enabled === enabled) return
      const values = { ...old, enabled, version: old.version + 1, updated_at: this.#parts.clock.now() }
      await updateCredential(tx, organizationId, id, values)
      if (enabled) await saveHealth(tx, organizationId, id, { rejectedUntil: null })
      const action = enabled ? 'credential.enable' : 'credential.disable'
      await this.#parts.audit.append(tx, actor, action, targetOf(id, old.name), { enabled: [old.enabled, enabled] })
    })
    return this.get(actor, id)
  }

  /**
   * @param force ends what memberships in aliases it has
   * @throws not_found 404, forbidden 403, conflict 409 `in_use` with the aliases that the caller sees
   */
  async delete(actor: Actor, id: number, force: boolean): Promise<void> {
    const organizationId = actor.user.organization_id
    await this.#parts.states.change(organizationId, async (tx) => {
      const old = await findKept(tx, actor, id)
      const inUse = (await readAliases(tx, organizationId)).filter((alias) => isMember(alias, id))
      if (inUse.length > 0 && !force) throw refuseInUse(actor, id, inUse)
      for (const alias of inUse) {
        const members = alias.fields.members.filter(({ credential_id }) => credential_id !== id)
        const updated_at = this.#parts.clock.now()
        await updateAlias(tx, organizationId, alias.id, { ...alias, fields: { ...alias.fields, members }, updated_at })
      }
      await deleteCredential(tx, organizationId, id)
      await this.#parts.audit.append(tx, actor, 'credential.delete', targetOf(id, old.name))
    })
  }

  /** What can be said of a request without looking at what is stored. @throws forbidden 403, invalid_request 400, address_refused 422 */
  checkedFields(caller: Caller, request: CredentialRequest, userId: number | null): CredentialFields {
    const { config, base_url } = request
    if (base_url !== undefined) checkAddress('base_url', base_url, this.#parts.allowedHosts)
    else if (request.provider === 'openai-compatible') throw invalidRequest('base_url is required', 'base_url')
    const { endpoint } = config
    if (typeof endpoint === 'string') checkAddress('config.endpoint', endpoint, this.#parts.allowedHosts)
    if (config['use_runtime_role'] === true) this.#requireRoles(caller, userId)
    return {
      ...optional('default_model', request.default_model),
      weight: request.weight,
      priority: request.priority,
      ...optional('fallback_group', request.fallback_group),
      ...optional('base_url', base_url),
      config,
      headers: Object.keys(request.custom_headers),
      model_mapping: request.model_mapping,
      allowed_models: request.allowed_models,
      limits: defined(request.limits),
      timeouts: defined(request.timeouts),
    }
  }

  #requireRoles({ user }: Caller, userId: number | null): void {
    const isNamed = this.#parts.runtimeRoles.some((each) => each === '*' || each === user.organization_id)
    if (isNamed && userId === null) return
    const message = 'use_runtime_role is for shared credentials of organizations that gateway.runtime_roles names'
    throw new PlatformError('forbidden', message, { setting: 'gateway.runtime_roles' })
  }

  #values(
    request: CredentialRequest,
    fields: CredentialFields,
    { names }: SecretPlan,
    old: CredentialRow | undefined,
  ): CredentialValues {
    const key = request.secrets.get('api_key')
    const keptLast4 = names.includes('api_key') ? (old?.api_key_last4 ?? null) : null
    return {
      name: request.name,
      enabled: request.enabled,
      fields,
      secret_names: names,
      api_key_last4: key === undefined ? keptLast4 : key.length < LAST4_FROM ? null : key.slice(-4),
      version: (old?.version ?? 0) + 1,
      updated_at: this.#parts.clock.now(),
    }
  }

  async #saveSecrets(tx: Queryable, organizationId: number, id: number, { saved, dropped }: SecretPlan): Promise<void> {
    for (const [name, plain] of saved) {
      const value = this.#parts.sealer.seal(plain, placeOfSecret(organizationId, id, name))
      await saveSecret(tx, organizationId, { credential_id: id, name, value })
    }
    for (const name of dropped) await deleteSecret(tx, id, name)
  }

  #show(caller: Caller, row: CredentialRow): Credential {
    const open = this.#parts.states.get(row.organization_id)?.credentials.find(({ id }) => id === row.id)
    const isBroken = open?.isBroken ?? false
    const now = this.#parts.clock.now()
    const health = sharedHealth(row, this.#parts.live.healthOf(row.id), isBroken, now)
    return toCredential(isBroken ? { ...row, last_error: lastErrorOf(UNREADABLE, now) } : row, caller, health)
  }
}

/** A credential that the caller keeps. @throws not_found 404 when the caller must not see it, forbidden 403 */
export async function findKept(db: Queryable, caller: Caller, id: number): Promise<CredentialRow> {
  const row = await findCredential(db, caller.user.organization_id, id)
  if (!row || !isVisible(caller, row)) throw notFound('credential', id)
  requireKeeper(caller, row)
  return row
}

/** @throws invalid_request 400 */
function refuseFixed(old: CredentialRow, { provider, scope = scopeOf(old) }: CredentialRequest): void {
  if (provider !== old.provider) throw invalidRequest(`provider is ${old.provider} and stays so`, 'provider')
  if (scope !== scopeOf(old)) throw invalidRequest(`scope is ${scopeOf(old)} and stays so`, 'scope')
}

async function refuseTakenName(
  tx: Queryable,
  organizationId: number,
  userId: number | null,
  name: string,
  except?: number,
): Promise<void> {
  if (!(await credentialNameExists(tx, organizationId, userId, name, except))) return
  throw conflict('name', `a credential with the name ${name} exists`)
}

const isMember = ({ fields }: AliasRow, id: number): boolean =>
  fields.members.some(({ credential_id }) => credential_id === id)

function refuseInUse(caller: Caller, id: number, inUse: readonly AliasRow[]): PlatformError {
  const aliases = inUse.filter((alias) => isVisible(caller, alias)).map((alias) => ({ id: alias.id, name: alias.name }))
  const names = aliases.map(({ name }) => name).join(', ') || 'of other users'
  const message = `credential ${id} is a member of the aliases ${names}; with force it is taken out of them`
  return new PlatformError('conflict', message, { reason: 'in_use', aliases })
}

const targetOf = (id: number, name: string): Target => ({ type: 'credential', id, name })
