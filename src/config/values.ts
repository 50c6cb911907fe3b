import * as z from 'zod'

/** What a printout must know of a value. */
export const kinds = z.registry<{ kind: 'duration' | 'secret' }>()

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }
/** Node's timers end here; a longer one would fire at once. */
const LONGEST_MS = 2 ** 31 - 1

/** Milliseconds of `30s`, `5m`, or a number of seconds; undefined when it is none. */
export function parseDuration(value: string | number): number | undefined {
  const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(String(value).trim()) ?? []
  if (amount === undefined) return undefined
  const ms = Math.round(Number(amount) * (UNIT_MS[unit] ?? 1000))
  return ms <= LONGEST_MS ? ms : undefined
}

/** The shortest exact way to write it, which {@link parseDuration} reads back. */
export function formatDuration(ms: number): string {
  return ms > 0 && ms % 60_000 === 0 ? `${ms / 60_000}m` : `${ms / 1000}s`
}

/** A duration in ms, at least 1 ms unless zero has a meaning of its own. */
export const duration = (fallback: string, { zero = false } = {}) =>
  z
    .union([z.string(), z.number()], { error: 'must be a duration: 30s, 5m or seconds' })
    .transform((value, context) => {
      const ms = parseDuration(value)
      if (ms !== undefined && (ms > 0 || zero)) return ms
      const above = ms === 0 ? ' above 0' : ''
      context.issues.push({ code: 'custom', input: value, message: `must be a duration${above}: 30s, 5m or seconds` })
      return z.NEVER
    })
    .prefault(fallback)
    .register(kinds, { kind: 'duration' })

export const text = () => z.string().min(1, 'must not be empty')

/** Never printed, not even in the message that it is bad. */
export const secret = () => text().optional().register(kinds, { kind: 'secret' })

export const count = (fallback: number, { min = 0 } = {}) =>
  z.int('must be a whole number').min(min, `must be at least ${min}`).default(fallback)

export const toggle = () => z.boolean('must be true or false').default(false)
