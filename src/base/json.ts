/** A JSON object: no list, and not null. */
export const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** What a text says in JSON; undefined for what is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What is wrong with a text that `JSON.parse` refused: the engine shows also what stands around the fault, which may be a password. */
export const jsonFault = (error: unknown): string =>
  error instanceof Error
    ? error.message.replace(/, (?:\.\.\.)?".*"(?:\.\.\.)? is not valid JSON$/s, '')
    : 'it cannot be read'
