import type { Queryable } from '../database/database.ts'
import { invalidRequest } from '../platform/errors.ts'
import type { SealedPlace, Sealer } from '../platform/sealing/sealer.ts'
import { secretRequired } from './refusals.ts'
import { secretField, secretsOf } from './requests/config.ts'
import type { CredentialRequest } from './requests/credential.ts'
import { KEPT } from './requests/headers.ts'
import type { CredentialFields, CredentialRow } from './store/credentials.ts'
import { headerSecret, placeOfSecret, readSecretsOf } from './store/secrets.ts'

/** What a request does to the secrets of a credential, under the names that the store has for them. */
export interface SecretPlan {
  saved: ReadonlyMap<string, string>
  dropped: readonly string[]
  /** Of `api_key` and those in `config`, after the change. */
  names: string[]
}

type Known = Pick<CredentialRow, 'fields' | 'secret_names'>

/**
 * Absent and empty secrets keep what is saved; a changed address needs all of them anew. Contract: gateway.md 2.1.
 * @param old the credential as it is, when there is one
 * @throws invalid_request 400 for what is missing or has no use, secret_required 422
 */
export function planSecrets(request: CredentialRequest, fields: CredentialFields, old: Known | undefined): SecretPlan {
  const { provider, config, secrets: sent } = request
  const { required, optional } = secretsOf(provider, config)
  const used = [...required, ...optional]
  const unused = [...sent.keys()].find((name) => !used.includes(name))
  if (unused !== undefined) {
    throw invalidRequest(`${secretField(unused)} has no use beside the rest of config`, secretField(unused))
  }
  const known = old?.secret_names ?? []
  const kept = known.filter((name) => used.includes(name) && !sent.has(name) && !isOfOtherPair(name, request, old))
  const missing = required.find((name) => !sent.has(name) && !kept.includes(name))
  if (missing !== undefined) throw invalidRequest(`${secretField(missing)} is required`, secretField(missing))
  const headers = planHeaders(request, old)
  if (old && addressOf(old.fields) !== addressOf(fields)) {
    const wanting = [...kept.map(secretField), ...headers.kept.map((name) => `custom_headers.${name}`)]
    if (wanting.length > 0) throw secretRequired(wanting)
  }
  const names = [...kept, ...sent.keys()].sort()
  return {
    saved: new Map([...sent, ...headers.sent]),
    dropped: [...known.filter((name) => !names.includes(name)), ...headers.dropped],
    names,
  }
}

/** A session token belongs to the access key that it came with. */
const isOfOtherPair = (name: string, { config }: CredentialRequest, old: Known | undefined): boolean =>
  name === 'session_token' && old?.fields.config['access_key_id'] !== config['access_key_id']

function planHeaders({ custom_headers: headers }: CredentialRequest, old: Known | undefined) {
  const known = new Set(old?.fields.headers.map(headerSecret))
  const kept: string[] = []
  const sent = new Map<string, string>()
  for (const [name, value] of Object.entries(headers)) {
    if (value !== KEPT) sent.set(headerSecret(name), value)
    else if (known.has(headerSecret(name))) kept.push(name)
    else throw invalidRequest(`custom_headers.${name} has no saved value to keep`, `custom_headers.${name}`)
  }
  const left = new Set([...sent.keys(), ...kept.map(headerSecret)])
  return { kept, sent, dropped: [...known].filter((name) => !left.has(name)) }
}

/** Where secrets go. */
const addressOf = ({ base_url, config: { endpoint, region, location } }: CredentialFields): string =>
  JSON.stringify([base_url ?? null, endpoint ?? null, region ?? null, location ?? null])

/** The plan without what is saved already: only who can open secrets can tell. */
export async function withoutSaved(
  tx: Queryable,
  sealer: Sealer,
  { organization_id: organizationId, id }: CredentialRow,
  plan: SecretPlan,
): Promise<SecretPlan> {
  if (plan.saved.size === 0) return plan
  const saved = new Map(plan.saved)
  for (const { name, value } of await readSecretsOf(tx, organizationId, id)) {
    if (opened(sealer, value, placeOfSecret(organizationId, id, name)) === saved.get(name)) saved.delete(name)
  }
  return { ...plan, saved }
}

/** Undefined for what no longer opens: it is saved anew. */
function opened(sealer: Sealer, value: string, place: SealedPlace): string | undefined {
  try {
    return sealer.open(value, place)
  } catch {
    return undefined
  }
}
