import { SealError, type Sealer } from '../../platform/sealing/sealer.ts'
import type { Queryable } from '../../database/database.ts'
import { toAlias } from '../alias-answer.ts'
import { readAliases } from '../store/aliases.ts'
import { readCredentials, type CredentialRow } from '../store/credentials.ts'
import { readKeys, type KeyRow } from '../store/keys.ts'
import { findMetricsToken } from '../store/metrics-tokens.ts'
import { readActiveUsers, readRevision } from '../store/revisions.ts'
import { headerSecret, placeOfSecret, readSecrets, type SecretRow } from '../store/secrets.ts'
import { readSettings } from '../store/settings.ts'
import type { OpenCredential, OpenKey, OrganizationState } from './organization-state.ts'

/**
 * All that calls of an organization need, read in one view of the database. What is private to somebody who is no longer
 * active is not there; nor are private credentials where the settings forbid them.
 */
export async function loadState(
  view: Queryable,
  sealer: Sealer,
  organizationId: number,
): Promise<OrganizationState | undefined> {
  const revision = await readRevision(view, organizationId)
  if (revision === undefined) return undefined
  const users = new Map((await readActiveUsers(view, organizationId)).map(({ id, role }) => [id, { role }]))
  const isAlive = ({ user_id }: { user_id: number | null }): boolean => user_id === null || users.has(user_id)
  const settings = await readSettings(view, organizationId)
  const isUsable = (row: CredentialRow): boolean =>
    isAlive(row) && (row.user_id === null || settings.private_credentials)
  const secrets = new Map<number, SecretRow[]>()
  for (const secret of await readSecrets(view, organizationId)) {
    const others = secrets.get(secret.credential_id)
    if (others) others.push(secret)
    else secrets.set(secret.credential_id, [secret])
  }
  const credentials = (await readCredentials(view, organizationId)).filter(isUsable)
  return {
    id: organizationId,
    revision,
    settings,
    credentials: credentials.map((row) => openRow(sealer, row, secrets.get(row.id) ?? [])),
    aliases: (await readAliases(view, organizationId)).filter(isAlive).map(toAlias),
    keys: (await readKeys(view, organizationId)).filter(isAlive).map(openKey),
    users,
    metricsTokenHash: (await findMetricsToken(view, organizationId))?.hash,
  }
}

/** A credential whose secrets do not open is there, and rejected; the others work. Contract: gateway.md 10.1. */
function openRow(sealer: Sealer, row: CredentialRow, secrets: readonly SecretRow[]): OpenCredential {
  try {
    const values = secrets.map(({ name, value }): [string, string] => [
      name,
      sealer.open(value, placeOfSecret(row.organization_id, row.id, name)),
    ])
    return openCredential(row, new Map(values), false)
  } catch (error) {
    if (!(error instanceof SealError)) throw error
    return openCredential(row, new Map(), true)
  }
}

/** A credential with its secrets, which stand under the names that the store has for them. */
export function openCredential(
  row: Pick<
    CredentialRow,
    'id' | 'organization_id' | 'user_id' | 'version' | 'provider' | 'name' | 'enabled' | 'fields'
  > &
    Partial<Pick<CredentialRow, 'rejected_until' | 'checked_at' | 'last_error'>>,
  values: ReadonlyMap<string, string>,
  isBroken: boolean,
): OpenCredential {
  const { fields } = row
  const headers = fields.headers.flatMap((name) => {
    const value = values.get(headerSecret(name))
    return value === undefined ? [] : [[name, value] as const]
  })
  return {
    id: row.id,
    organizationId: row.organization_id,
    userId: row.user_id ?? undefined,
    version: row.version,
    kind: row.provider,
    name: row.name,
    defaultModel: fields.default_model,
    weight: Math.round(fields.weight * 1000),
    priority: fields.priority,
    fallbackGroup: fields.fallback_group,
    enabled: row.enabled,
    baseUrl: fields.base_url,
    config: fields.config,
    secrets: Object.fromEntries([...values].filter(([name]) => !name.startsWith('header:'))),
    customHeaders: Object.fromEntries(headers),
    modelMapping: new Map(Object.entries(fields.model_mapping)),
    allowedModels: fields.allowed_models,
    limits: fields.limits,
    timeouts: fields.timeouts,
    isBroken,
    rejectedUntil: row.rejected_until ?? undefined,
    tested: { checked_at: row.checked_at ?? null, last_error: row.last_error },
  }
}

const openKey = (row: KeyRow): OpenKey => ({
  id: row.id,
  organizationId: row.organization_id,
  name: row.name,
  hashes: [{ hash: row.hash }, ...row.older_tokens],
  userId: row.user_id ?? undefined,
  allowedModels: row.fields.allowed_models,
  allowedCredentials: row.fields.allowed_credentials,
  budget: row.budget ?? undefined,
  limits: row.fields.limits,
  maxOutputTokens: row.fields.max_output_tokens,
  expiresAt: row.expires_at ?? undefined,
  enabled: row.enabled,
})
