import type { Scope } from '../model/fields.ts'

/** A scope as one column; no two scopes share a text. */
export const scopeKey = ({ kind, id }: Scope): string => `${encodeURIComponent(kind)}/${encodeURIComponent(id)}`

export const scopeOf = (key: string): Scope => {
  const slash = key.indexOf('/')
  return { kind: decodeURIComponent(key.slice(0, slash)), id: decodeURIComponent(key.slice(slash + 1)) }
}
