/** Whether this is `name=value` pairs with commas between them, percent-encoded, that HTTP can carry. */
export const areHeaderPairs = (text: string): boolean =>
  text.split(',').every((pair) => {
    if (pair.trim() === '') return true
    const [, name, value = ''] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? []
    return name !== undefined && isHeader(name, value)
  })

function isHeader(name: string, value: string): boolean {
  try {
    return new Headers([[name, decoded(value)]]).has(name)
  } catch {
    return false
  }
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value // a lone percent sign stands for itself
  }
}
