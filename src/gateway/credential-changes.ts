import { shownConfig } from './credential-answer.ts'
import { difference, type Changes } from './audit.ts'
import type { SecretPlan } from './credential-secrets.ts'
import { secretField } from './requests/config.ts'
import type { CredentialRow } from './store/credentials.ts'
import { headerSecret } from './store/secrets.ts'

type Facts = Pick<CredentialRow, 'provider' | 'name' | 'enabled' | 'fields' | 'secret_names'>

/** What a request changes, one field a setting, for the audit. @param old absent for a new one */
export function credentialChanges(old: Facts | undefined, changed: Facts, { saved, dropped }: SecretPlan): Changes {
  const known = [...(old?.secret_names ?? []), ...(old?.fields.headers ?? []).map(headerSecret)]
  return {
    ...difference(old ? flat(old) : {}, flat(changed)),
    ...Object.fromEntries([
      ...[...saved.keys()].map((name) => [fieldOf(name), [known.includes(name) ? '***' : null, '***']]),
      ...dropped.map((name) => [fieldOf(name), ['***', null]]),
    ]),
  }
}

function flat(row: Facts): Record<string, unknown> {
  const { config: _, headers, ...fields } = row.fields
  const config = Object.entries(shownConfig(row)).map(([key, value]): [string, unknown] => [`config.${key}`, value])
  const { provider, name, enabled } = row
  return { provider, name, enabled, ...fields, custom_headers: headers, ...Object.fromEntries(config) }
}

const fieldOf = (name: string): string =>
  name.startsWith('header:') ? `custom_headers.${name.slice('header:'.length)}` : secretField(name)
