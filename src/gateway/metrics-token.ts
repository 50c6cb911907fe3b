import { randomBytes } from 'node:crypto'
import { toTimestamp, type Clock } from '../base/clock.ts'
import { sha256 } from '../base/hash.ts'
import type { Database } from '../database/database.ts'
import { optional } from '../database/rows.ts'
import type { Caller } from '../platform/caller.ts'
import type { Actor } from './access.ts'
import type { Audit } from './audit.ts'
import type { States } from './state/states.ts'
import { deleteMetricsToken, findMetricsToken, markMetricsTokenUsed, saveMetricsToken } from './store/metrics-tokens.ts'

export interface MetricsTokenParts {
  database: Database
  states: States
  audit: Audit
  clock: Clock
}

/** Scrapes come often; this often their time is written down. */
const USED_EVERY_MS = 60_000

/** The token that shows an organization's metrics; one each, stored hashed. Contract: gateway.md 2.8. */
export class MetricsTokens {
  readonly #parts: MetricsTokenParts
  readonly #usedAt = new Map<number, number>()

  constructor(parts: MetricsTokenParts) {
    this.#parts = parts
  }

  async get({ user }: Caller): Promise<Record<string, unknown>> {
    const row = await findMetricsToken(this.#parts.database, user.organization_id)
    if (!row) return { exists: false }
    return {
      exists: true,
      last4: row.last4,
      created_at: toTimestamp(row.created_at),
      ...optional('last_used_at', row.last_used_at === null ? null : toTimestamp(row.last_used_at)),
    }
  }

  /** The one before ends. */
  create(actor: Actor): Promise<{ token: string; created_at: string }> {
    const organizationId = actor.user.organization_id
    const token = `mmt_${randomBytes(32).toString('base64url')}`
    const now = this.#parts.clock.now()
    return this.#parts.states.change(organizationId, async (tx) => {
      await saveMetricsToken(tx, organizationId, { hash: sha256(token), last4: token.slice(-4), created_at: now })
      await this.#parts.audit.append(tx, actor, 'metrics_token.create', target(organizationId))
      return { token, created_at: toTimestamp(now) }
    })
  }

  async revoke(actor: Actor): Promise<void> {
    const organizationId = actor.user.organization_id
    await this.#parts.states.change(organizationId, async (tx) => {
      if (!(await deleteMetricsToken(tx, organizationId))) return
      await this.#parts.audit.append(tx, actor, 'metrics_token.revoke', target(organizationId))
    })
  }

  /** Tells that the token of an organization was used; written once a minute. */
  async used(organizationId: number): Promise<void> {
    const now = this.#parts.clock.now()
    if (now - (this.#usedAt.get(organizationId) ?? -Infinity) < USED_EVERY_MS) return
    this.#usedAt.set(organizationId, now)
    await markMetricsTokenUsed(this.#parts.database, organizationId, now)
  }
}

const target = (organizationId: number) => ({ type: 'metrics_token' as const, id: organizationId })
