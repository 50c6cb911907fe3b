import { jsonFault } from '../base/json.ts'
import { DEPTH_MAX } from '../base/json-depth.ts'

/** Why a body is not acceptable JSON; the message is for the client. */
export class BodyError extends Error {
  /** Where in the body, when one place is at fault. */
  field?: string
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })
/** Only escapes can bring U+0000 or half of a surrogate pair into a string of valid UTF-8. */
const SUSPECT = /\\u(?:0000|[dD][89a-fA-F])/

/**
 * Parses a JSON object of valid UTF-8.
 * @throws BodyError for bad UTF-8, malformed JSON, anything but an object, U+0000, unpaired surrogates and numbers that no
 * double holds at any depth, and too much depth.
 */
export function parseJsonObject(raw: Buffer): Record<string, unknown> {
  const text = decode(raw)
  const value = parse(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new BodyError('the body must be a JSON object')
  }
  refuseBad(value, SUSPECT.test(text))
  return Object.fromEntries(Object.entries(value))
}

function decode(raw: Buffer): string {
  try {
    return utf8.decode(raw)
  } catch {
    throw new BodyError('the body is not valid UTF-8')
  }
}

function parse(text: string): unknown {
  if (text.trim() === '') throw new BodyError('the body is empty: send a JSON object')
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new BodyError(`the body is not valid JSON: ${jsonFault(error)}`)
  }
}

/** @throws BodyError when it is nested too deep or a number was too large; with `strings`, also when some string, a key included, is no text. */
export function refuseBad(value: unknown, strings: boolean, depth = 0): void {
  if (strings && typeof value === 'string') refuseBadString(value)
  if (value === Infinity || value === -Infinity) throw new BodyError('a number is too large')
  if (typeof value !== 'object' || value === null) return
  if (depth > DEPTH_MAX) throw new BodyError(`the JSON is nested deeper than ${DEPTH_MAX} levels`)
  if (strings && !Array.isArray(value)) Object.keys(value).forEach(refuseBadString)
  for (const [key, item] of Object.entries(value)) {
    try {
      refuseBad(item, strings, depth + 1)
    } catch (error) {
      if (error instanceof BodyError) error.field = error.field === undefined ? key : `${key}.${error.field}`
      throw error
    }
  }
}

function refuseBadString(text: string): void {
  if (text.includes('\0')) throw new BodyError('a text holds the character U+0000')
  if (!text.isWellFormed()) throw new BodyError('a text holds an unpaired surrogate')
}
