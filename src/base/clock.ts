/** Time source. Everything that reads the time takes one, so that a test can set it. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }

/** The time written last, and its second: most times that are written lie close together. */
let latest = { ms: Number.NaN, text: '', second: Number.NaN, start: '' }

/** RFC 3339 in UTC with exactly three fraction digits. @throws RangeError for no time */
export function toTimestamp(ms: number): string {
  const whole = Math.trunc(ms)
  if (whole === latest.ms) return latest.text
  const second = Math.floor(whole / 1000)
  const start = second === latest.second ? latest.start : new Date(second * 1000).toISOString().slice(0, -4)
  const text = `${start}${String(whole - second * 1000).padStart(3, '0')}Z`
  latest = { ms: whole, text, second, start }
  return text
}

/** Epoch ms of what `toTimestamp` has written; NaN for what is no time. */
export const fromTimestamp = (text: string): number => (text === latest.text ? latest.ms : Date.parse(text))

const ISO = /^(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)\s*([Zz]|[+-]\d{2}(?::?\d{2})?)?)?$/

/**
 * Milliseconds of an ISO 8601 time with any offset, or of a bare date as midnight UTC; a time without offset is UTC.
 * Undefined when it is not one, days that do not exist (30 February) included.
 */
export function parseTimestamp(text: string): number | undefined {
  const match = ISO.exec(text.trim())
  if (!match) return undefined
  const [, date = '', time = '00:00', zone = 'Z'] = match
  const midnight = Date.parse(`${date}T00:00:00Z`)
  if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== date) return undefined
  const offset = zone.length === 3 ? `${zone}:00` : zone.length === 5 ? `${zone.slice(0, 3)}:${zone.slice(3)}` : zone
  const ms = Date.parse(`${date}T${time.replace(',', '.')}${offset.toUpperCase()}`)
  return Number.isNaN(ms) ? undefined : ms
}

/** As `parseTimestamp`, of a parameter in an address: a `+` that was not encoded comes as a space. */
export const parseQueryTime = (text: string): number | undefined =>
  parseTimestamp(text.replace(/ (?=\d{2}:?\d{2}$)/, '+'))
