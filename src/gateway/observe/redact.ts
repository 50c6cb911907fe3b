import { redact } from '../../base/redact.ts'

export { redact }

/** What is shorter stands in too many words. */
const SHORTEST = 4

/** Redacts as `redact` does, and these secrets, also as JSON and addresses write them. Contract: gateway.md 9. */
export function redactor(secrets: readonly string[]): (text: string) => string {
  const forms = new Set(secrets.filter(({ length }) => length >= SHORTEST).flatMap(writings))
  if (forms.size === 0) return redact
  const any = new RegExp(
    [...forms]
      .sort((a, b) => b.length - a.length)
      .map(escape)
      .join('|'),
    'g',
  )
  return (text) => redact(text.replace(any, '[REDACTED]'))
}

const writings = (secret: string): string[] => [
  secret,
  JSON.stringify(secret).slice(1, -1),
  encodeURIComponent(Buffer.from(secret).toString()),
]

const escape = (literal: string): string => literal.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
