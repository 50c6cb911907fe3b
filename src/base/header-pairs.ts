/**
 * Headers from `name=value` pairs with commas between them, percent-encoded; undefined where a pair is none, or none that HTTP
 * can carry.
 */
export function readHeaderPairs(text: string): Headers | undefined {
  const headers = new Headers()
  try {
    for (const pair of text.split(',')) {
      if (pair.trim() === '') continue
      const [, name, value = ''] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? []
      if (name === undefined) return undefined
      headers.set(name, decoded(value))
    }
  } catch {
    return undefined
  }
  return headers
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value // a lone percent sign stands for itself
  }
}
