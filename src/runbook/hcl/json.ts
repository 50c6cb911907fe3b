import { MAX_NESTING } from './token-reader.ts'
import { numberText } from './numbers.ts'
import { isList, newMap, sortedKeys, ValueSet, type Value } from './values.ts'

/** Data nested deeper than the bound of runbook.md 13. */
class NestingError extends Error {}

/** JSON text as a value; longer integers than a double holds become strings. @throws SyntaxError, NestingError */
export const parseJson = (text: string): Value => fromJson(JSON.parse(quoteLongIntegers(text)))

/** JSON data as a value: maps lose their prototype, what JSON doesn't know is null. @throws NestingError */
export function fromJson(data: unknown, depth = 0): Value {
  if (depth > MAX_NESTING) throw new NestingError(`data nested deeper than ${MAX_NESTING} levels`)
  if (typeof data === 'string' || typeof data === 'boolean') return data
  if (typeof data === 'number') return Number.isFinite(data) ? data : null
  if (typeof data !== 'object' || data === null) return null
  if (data instanceof ValueSet) return data
  if (Array.isArray(data)) return data.map((item) => fromJson(item, depth + 1))
  const map = newMap()
  for (const [key, item] of Object.entries(data)) if (item !== undefined) map[key] = fromJson(item, depth + 1)
  return map
}

/** JSON with sorted keys, and numbers of 15 digits. */
export function encodeJson(value: Value): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'number') return numberText(value)
  if (typeof value !== 'object' || value === null) return String(value)
  if (value instanceof ValueSet) return encodeJson(value.items)
  if (isList(value)) return `[${value.map(encodeJson).join(',')}]`
  const parts = sortedKeys(value).map((key) => `${JSON.stringify(key)}:${encodeJson(value[key] ?? null)}`)
  return `{${parts.join(',')}}`
}

const LONG_DIGITS = /\d{16}/
const TOKEN = /"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g

/** Puts integers beyond ±(2^53−1) in quotes, so that no digit is lost. */
function quoteLongIntegers(text: string): string {
  if (!LONG_DIGITS.test(text)) return text
  let result = ''
  let copied = 0
  TOKEN.lastIndex = 0
  for (let match = TOKEN.exec(text); match; match = TOKEN.exec(text)) {
    const [token] = match
    if (token === '"') TOKEN.lastIndex = stringEnd(text, match.index)
    else if (/^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token))) {
      result += `${text.slice(copied, match.index)}"${token}"`
      copied = match.index + token.length
    }
  }
  return result + text.slice(copied)
}

function stringEnd(text: string, quote: number): number {
  let at = quote + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}
