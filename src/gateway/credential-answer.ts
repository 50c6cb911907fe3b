import { toTimestamp } from '../base/clock.ts'
import { optional } from '../database/rows.ts'
import type { Caller } from '../platform/caller.ts'
import { isAdmin, scopeOf } from './access.ts'
import { HEALTH_STATES, type Credential, type Health, type HealthState } from './model.ts'
import { SECRETS } from './requests/config.ts'
import { KEPT } from './requests/headers.ts'
import type { OpenCredential } from './state/organization-state.ts'
import type { CredentialRow } from './store/credentials.ts'

/** A credential as a caller may see it: members see less of what is shared. Contract: gateway.md 2.1, 3.5. */
export function toCredential(row: CredentialRow, caller: Caller, health: Health): Credential {
  const { fields } = row
  const isWhole = isAdmin(caller) || row.user_id !== null
  return {
    id: row.id,
    organization_id: row.organization_id,
    created_by: row.created_by,
    created_at: toTimestamp(row.created_at),
    updated_at: toTimestamp(row.updated_at),
    version: row.version,
    scope: scopeOf(row),
    ...optional('user_id', row.user_id),
    provider: row.provider,
    name: row.name,
    has_api_key: row.secret_names.includes('api_key'),
    ...optional('api_key_last4', row.api_key_last4),
    ...optional('default_model', fields.default_model),
    weight: fields.weight,
    priority: fields.priority,
    ...optional('fallback_group', fields.fallback_group),
    enabled: row.enabled,
    ...(isWhole && {
      ...optional('base_url', fields.base_url),
      config: shownConfig(row),
      custom_headers: Object.fromEntries(fields.headers.map((name) => [name, KEPT])),
    }),
    model_mapping: fields.model_mapping,
    allowed_models: fields.allowed_models,
    limits: fields.limits,
    timeouts: fields.timeouts,
    health,
    ...optional('last_error', row.last_error),
    ...optional('last_used_at', row.last_used_at === null ? null : toTimestamp(row.last_used_at)),
  }
}

/** Secrets inside read as `has_<name>`. */
export function shownConfig({
  provider,
  fields,
  secret_names: names,
}: Pick<CredentialRow, 'provider' | 'fields' | 'secret_names'>) {
  const secrets = (SECRETS[provider] ?? []).map((name): [string, boolean] => [`has_${name}`, names.includes(name)])
  return { ...fields.config, ...Object.fromEntries(secrets) }
}

/** The worst of what this process knows and what all processes share. @param now epoch ms */
export function sharedHealth(row: CredentialRow, live: Health, isBroken: boolean, now: number): Health {
  const { rejected_until: rejectedUntil, checked_at: checkedAt } = row
  const isRejected = isBroken || (rejectedUntil !== null && rejectedUntil > now)
  const known = latestState(live, row)
  return {
    ...live,
    state: isRejected ? worse(known, 'rejected') : known,
    ...(isRejected && !isBroken && { cooldown_until: toTimestamp(rejectedUntil ?? 0) }),
    ...(isAfter(checkedAt, live) && { checked_at: toTimestamp(checkedAt) }),
  }
}

/** By the later of calls, as this process knows them, and test; what is not saved was never tested. */
export function latestState(
  live: Health,
  { checked_at: checkedAt, last_error: lastError }: StoredTest = UNTESTED,
): HealthState {
  const checked: HealthState = checkedAt === null ? 'unknown' : lastError ? 'degraded' : 'healthy'
  return live.state === 'unknown' || (live.state === 'healthy' && isAfter(checkedAt, live)) ? checked : live.state
}

type StoredTest = NonNullable<OpenCredential['tested']>

const UNTESTED: StoredTest = { checked_at: null, last_error: undefined }

/** A test that came after the last call says more than that. */
const isAfter = (checkedAt: number | null, { checked_at: calledAt = '' }: Health): checkedAt is number =>
  checkedAt !== null && toTimestamp(checkedAt) > calledAt

const worse = (a: HealthState, b: HealthState): HealthState =>
  HEALTH_STATES.indexOf(a) > HEALTH_STATES.indexOf(b) ? a : b
