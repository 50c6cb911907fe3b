/** What a key ends in, once lower-cased and without `-`, `_` and blanks, when its value is a secret. Contract: kernel-1.md 1.1. */
const SECRET = /(?:password|passwd|secret|token|apikey|accesskey|privatekey|credentials?|authorization|cookie)$/

/** The path of the first key, at any depth, that looks like a secret's; undefined where none does. */
export function secretPath(value: unknown): (string | number)[] | undefined {
  const waiting: { at: (string | number)[]; value: unknown }[] = [{ at: [], value }]
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { at, value: inner } = next
    if (Array.isArray(inner)) inner.forEach((item, i) => waiting.push({ at: [...at, i], value: item }))
    else if (inner !== null && typeof inner === 'object') {
      for (const [key, item] of Object.entries(inner)) {
        if (SECRET.test(key.toLowerCase().replace(/[-_ ]/g, ''))) return [...at, key]
        waiting.push({ at: [...at, key], value: item })
      }
    }
  }
  return undefined
}
