import { parseTimestamp } from '../../base/clock.ts'

const SPAN = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/g
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Names of what runs out, and of when it is back. */
const RESETS = ['requests', 'tokens', 'input-tokens', 'output-tokens'].flatMap((what) => [
  [`x-ratelimit-remaining-${what}`, `x-ratelimit-reset-${what}`] as const,
  [`anthropic-ratelimit-${what}-remaining`, `anthropic-ratelimit-${what}-reset`] as const,
])

/**
 * Milliseconds that a provider asks to be left alone: `retry-after-ms`, `retry-after` in seconds or as a date, else when
 * what has run out is back. Contract: gateway.md 4.5.
 * @param hint of the body, as `34s`
 */
export function retryAfterOf(
  headers: Readonly<Record<string, string>>,
  now: number,
  hint?: string,
): number | undefined {
  const ms = numberOf(headers['retry-after-ms'])
  if (ms !== undefined) return ms
  const after = headers['retry-after']
  if (after) {
    const seconds = numberOf(after)
    if (seconds !== undefined) return seconds * 1000
    const date = /[a-z]/i.test(after) ? Date.parse(after) : Number.NaN
    if (!Number.isNaN(date)) return Math.max(0, date - now)
  }
  if (hint !== undefined) return spanOf(hint, now)
  const waits = RESETS.flatMap(([remaining, reset]) =>
    headers[remaining] === '0' ? [spanOf(headers[reset] ?? '', now) ?? 0] : [],
  )
  return waits.length > 0 ? Math.max(...waits) : undefined
}

/** Of `6m0s`, `120ms`, plain seconds, or a time. */
function spanOf(text: string, now: number): number | undefined {
  const seconds = numberOf(text)
  if (seconds !== undefined) return seconds * 1000
  const time = parseTimestamp(text)
  if (time !== undefined) return Math.max(0, time - now)
  const parts = [...text.matchAll(SPAN)]
  if (parts.length === 0) return undefined
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNITS[unit ?? ''] ?? 0), 0)
}

function numberOf(text: string | undefined): number | undefined {
  const number = text === undefined || text.trim() === '' ? Number.NaN : Number(text)
  return number >= 0 && number < Infinity ? number : undefined
}
