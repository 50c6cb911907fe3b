import { redact } from '../../base/redact.ts'

const GONE = '[REDACTED]'

/** A text without these secrets, as they are and as they stand in addresses, JSON and basic authentication. */
export function conceal(text: string, secrets: readonly string[]): string {
  const forms = secrets.flatMap((secret) => [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
    Buffer.from(secret).toString('base64'),
  ])
  return forms.sort((a, b) => b.length - a.length).reduce((rest, form) => rest.replaceAll(form, GONE), redact(text))
}

/** JSON without these secrets in any of its texts and names. */
export function concealJson(value: unknown, secrets: readonly string[]): unknown {
  if (typeof value === 'string') return withoutSecrets(value, secrets)
  if (Array.isArray(value)) return value.map((item) => concealJson(item, secrets))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [withoutSecrets(name, secrets), concealJson(item, secrets)]),
  )
}

const withoutSecrets = (text: string, secrets: readonly string[]): string =>
  secrets.some((secret) => text.includes(secret))
    ? secrets.reduce((rest, one) => rest.replaceAll(one, GONE), text)
    : text
