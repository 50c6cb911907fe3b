import { ownerFor, requireSetting, type Actor } from './access.ts'
import { lastErrorOf, UNREADABLE } from './credential-health.ts'
import { findKept, type CredentialParts, type Credentials } from './credentials.ts'
import { planSecrets } from './credential-secrets.ts'
import type { TestResult } from './kinds/test.ts'
import { AddressRefusedError } from './kinds/upstream.ts'
import type { TestCredential } from './ports.ts'
import { addressRefused } from './refusals.ts'
import type { CredentialRequest, TestRequest } from './requests/credential.ts'
import { openCredential } from './state/load.ts'
import type { OpenCredential } from './state/organization-state.ts'
import { saveHealth } from './store/health.ts'
import { readSettings } from './store/settings.ts'

/** Nothing was called: that says nothing of the credential. */
const UNTRIED = new Set(['missing_required_parameter', 'unsupported_parameter'])

/** Tries credentials, saved or not, by calling their provider. Contract: gateway.md 3.5. */
export class CredentialTrial {
  readonly #parts: CredentialParts
  readonly #credentials: Credentials
  readonly #test: TestCredential

  constructor(parts: CredentialParts, credentials: Credentials, test: TestCredential) {
    this.#parts = parts
    this.#credentials = credentials
    this.#test = test
  }

  /**
   * What comes of it is the credential's health; success ends its cooldowns.
   * @throws not_found 404, forbidden 403, address_refused 422
   */
  async saved(actor: Actor, id: number, request: TestRequest): Promise<TestResult> {
    const { database, states, audit, live, health, clock } = this.#parts
    const organizationId = actor.user.organization_id
    const { name, version } = await findKept(database, actor, id)
    const known = (): OpenCredential | undefined =>
      states.get(organizationId)?.credentials.find((each) => each.id === id)
    // Another process may have made or changed it just now.
    if (known()?.version !== version) await states.reload(organizationId)
    const open = known()
    requireSetting(open !== undefined, 'private_credentials')
    const result = await this.#run(open, request)
    const now = clock.now()
    const isUntried = UNTRIED.has(result.error?.code ?? '')
    await states.change(organizationId, async (tx) => {
      const row = await findKept(tx, actor, id)
      const lastError = result.error && lastErrorOf({ ...result.error, status: result.status }, now)
      const facts = result.ok ? { rejectedUntil: null, lastError: null } : { ...(lastError && { lastError }) }
      // What was tried may have changed meanwhile: then it says nothing of what is there now.
      if (row.version === open.version && !isUntried)
        await saveHealth(tx, organizationId, id, { ...facts, checkedAt: now })
      await audit.append(tx, actor, 'credential.test', { type: 'credential', id, name }, { ok: [null, result.ok] })
      // Before the commit: what calls found waits for it, and must not be written behind it.
      if (result.ok) health.forget(id)
    })
    if (result.ok) live.recover(id)
    return result
  }

  /** Stores nothing. @throws forbidden 403, invalid_request 400, address_refused 422 */
  async unsaved(actor: Actor, credential: CredentialRequest, request: TestRequest): Promise<TestResult> {
    const organizationId = actor.user.organization_id
    const userId = ownerFor(actor, credential.scope)
    const settings = await readSettings(this.#parts.database, organizationId)
    requireSetting(userId === null || settings.private_credentials, 'private_credentials')
    const fields = this.#credentials.checkedFields(actor, credential, userId)
    const { saved } = planSecrets(credential, fields, undefined)
    const { provider, name, enabled } = credential
    const facts = {
      id: 0,
      organization_id: organizationId,
      user_id: userId,
      version: 0,
      provider,
      name,
      enabled,
      fields,
    }
    return this.#run(openCredential(facts, saved, false), request)
  }

  /** @throws address_refused 422 */
  async #run(credential: OpenCredential, request: TestRequest): Promise<TestResult> {
    if (credential.isBroken) {
      return { ok: false, mode: request.mode ?? 'auth', latency_ms: 0, error: UNREADABLE }
    }
    try {
      return await this.#test(credential, request)
    } catch (error) {
      // The name was no private address when it was saved, or resolves to one.
      if (error instanceof AddressRefusedError) throw addressRefused(error.host, { mayBeAllowed: true })
      throw error
    }
  }
}
