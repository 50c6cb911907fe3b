/** Why a body is not acceptable JSON; the message is for the client. */
export class BodyError extends Error {}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })
/** Only escapes can bring U+0000 or half of a surrogate pair into a string of valid UTF-8. */
const SUSPECT = /\\u(?:0000|[dD][89a-fA-F])/

/**
 * Parses a JSON object of valid UTF-8; an empty body is an empty object where `optional`.
 * @throws BodyError for bad UTF-8, malformed JSON, anything but an object, U+0000 and unpaired surrogates at any depth.
 */
export function parseJsonObject(raw: Buffer): Record<string, unknown> {
  const text = decode(raw)
  const value = parse(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new BodyError('the body must be a JSON object')
  }
  if (SUSPECT.test(text)) refuseBadText(value)
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
    throw new BodyError(`the body is not valid JSON: ${error instanceof Error ? error.message : 'unreadable'}`)
  }
}

/** @throws BodyError when some string, a key included, holds U+0000 or an unpaired surrogate. */
function refuseBadText(value: unknown): void {
  if (typeof value === 'string') refuseBadString(value)
  else if (Array.isArray(value)) value.forEach(refuseBadText)
  else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      refuseBadString(key)
      refuseBadText(item)
    }
  }
}

function refuseBadString(text: string): void {
  if (text.includes('\0')) throw new BodyError('a text holds the character U+0000')
  if (!isWellFormed(text)) throw new BodyError('a text holds an unpaired surrogate')
}

/** Encoding replaces half of a pair, so a text that comes back changed had one. */
const isWellFormed = (text: string): boolean => Buffer.from(text, 'utf8').toString('utf8') === text
