import type { Database, Queryable } from '../database/database.ts'
import type { Caller } from '../platform/caller.ts'
import { conflict, invalidRequest } from '../platform/errors.ts'
import type { Actor } from './access.ts'
import { difference, type Audit } from './audit.ts'
import type { Settings } from './model.ts'
import type { States } from './state/states.ts'
import { hasKeyBudgets } from './store/keys.ts'
import { readSettings, saveSettings } from './store/settings.ts'

export interface SettingsParts {
  database: Database
  states: States
  audit: Audit
  /** `gateway.max_request_bytes` */
  maxRequestBytes: number
}

/** How the gateway works for an organization. Contract: gateway.md 2.4. */
export class SettingsService {
  readonly #parts: SettingsParts

  constructor(parts: SettingsParts) {
    this.#parts = parts
  }

  get({ user }: Caller): Promise<Settings> {
    return readSettings(this.#parts.database, user.organization_id)
  }

  /**
   * @throws conflict 409 `budgets_exist`, `cost_disabled` where costs are not to be tracked; invalid_request 400 for bodies
   * larger than the server takes (gateway.md 9)
   */
  replace(actor: Actor, settings: Settings): Promise<Settings> {
    return this.#save(actor, 'settings.update', (old) => {
      this.#refuseRaised(old, settings)
      return settings
    })
  }

  /** @throws conflict 409 `budgets_exist` */
  trackCost(actor: Actor, enabled: boolean): Promise<Settings> {
    return this.#save(actor, enabled ? 'cost.enable' : 'cost.disable', (old) => ({ ...old, cost_tracking: enabled }))
  }

  /** What was saved while the server took more keeps no other change back. */
  #refuseRaised(old: Settings, { max_request_bytes: bytes }: Settings): void {
    const { maxRequestBytes: most } = this.#parts
    if (bytes === null || bytes <= most || bytes === old.max_request_bytes) return
    const message = `max_request_bytes must be the server's own gateway.max_request_bytes, ${most}, or less`
    throw invalidRequest(message, 'max_request_bytes')
  }

  #save(actor: Actor, action: string, change: (old: Settings) => Settings): Promise<Settings> {
    const organizationId = actor.user.organization_id
    return this.#parts.states.change(organizationId, async (tx) => {
      const old = await readSettings(tx, organizationId)
      const settings = change(old)
      if (!settings.cost_tracking) await refuseBudgets(tx, organizationId, old, settings)
      await saveSettings(tx, organizationId, settings)
      const target = { type: 'settings' as const, id: organizationId }
      await this.#parts.audit.append(tx, actor, action, target, difference({ ...old }, { ...settings }))
      return settings
    })
  }
}

async function refuseBudgets(tx: Queryable, organizationId: number, old: Settings, settings: Settings): Promise<void> {
  if (settings.budget === null && settings.user_budget === null && !(await hasKeyBudgets(tx, organizationId))) return
  if (!old.cost_tracking) throw conflict('cost_disabled', 'a budget needs cost_tracking, which is off')
  throw conflict(
    'budgets_exist',
    'cost_tracking stays on while there is a budget: remove those of settings and keys first',
  )
}
