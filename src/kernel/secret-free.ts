/** What a key ends in, once lower-cased and without `-`, `_` and blanks, when its value is a secret. Contract: kernel-1.md 1.1. */
const SECRET = /(?:password|passwd|secret|token|apikey|accesskey|privatekey|credentials?|authorization|cookie)$/

/** The path of the first key, at any depth, that looks like a secret's; undefined where none does. */
export function secretPath(value: unknown): (string | number)[] | undefined {
  if (value === null || typeof value !== 'object') return undefined
  if (Array.isArray(value)) {
    for (const [i, item] of value.entries()) {
      const path = secretPath(item)
      if (path) return [i, ...path]
    }
    return undefined
  }
  for (const [key, item] of Object.entries(value)) {
    const path = SECRET.test(key.toLowerCase().replace(/[-_ ]/g, '')) ? [] : secretPath(item)
    if (path) return [key, ...path]
  }
  return undefined
}
