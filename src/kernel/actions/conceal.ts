import { redact } from '../../base/redact.ts'

const GONE = '[REDACTED]'

/** The secrets as they are, and as they stand in addresses, JSON and basic authentication; the longest first. */
const formsOf = (secrets: readonly string[]): string[] =>
  secrets
    .flatMap((secret) => [
      secret,
      encodeURIComponent(secret),
      JSON.stringify(secret).slice(1, -1),
      Buffer.from(secret).toString('base64'),
    ])
    .filter((form) => form !== '')
    .sort((a, b) => b.length - a.length)

const without = (text: string, forms: readonly string[]): string =>
  forms.reduce((rest, form) => rest.replaceAll(form, GONE), text)

/** A text without these secrets, in whatever form. */
export const conceal = (text: string, secrets: readonly string[]): string => without(redact(text), formsOf(secrets))

/** JSON without these secrets in any of its texts, names and numbers. */
export function concealJson(value: unknown, secrets: readonly string[]): unknown {
  const forms = formsOf(secrets)
  return forms.length > 0 ? concealed(value, forms) : value
}

function concealed(value: unknown, forms: readonly string[]): unknown {
  if (typeof value === 'string') return without(value, forms)
  if (typeof value === 'number') return forms.includes(String(value)) ? GONE : value
  if (Array.isArray(value)) return value.map((item) => concealed(item, forms))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [without(name, forms), concealed(item, forms)]))
}
