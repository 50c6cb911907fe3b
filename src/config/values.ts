import * as z from 'zod'
import { LONGEST_TIMER_MS, parseLifetime } from '../base/duration.ts'

/** What a printout must know of a value. */
export const kinds = z.registry<{ kind: 'duration' | 'secret' }>()

const HOUR_MS = 3_600_000

/** A duration in ms, at least 1 ms unless zero has a meaning of its own, and no longer than a timer runs. */
export const duration = (fallback: string, { zero = false, longestMs = LONGEST_TIMER_MS } = {}) =>
  z
    .union([z.string(), z.number()], { error: 'must be a duration: 30s, 5m or seconds' })
    .transform((value, context) => {
      const ms = parseLifetime(value)
      if (ms !== undefined && ms <= longestMs && (ms > 0 || zero)) return ms
      const above = ms === 0 ? ' above 0' : ''
      const most = ms !== undefined && ms > longestMs ? ` of ${Math.floor(longestMs / HOUR_MS)}h at most` : ''
      context.issues.push({
        code: 'custom',
        input: value,
        message: `must be a duration${above}${most}: 30s, 5m or seconds`,
      })
      return z.NEVER
    })
    .prefault(fallback)
    .register(kinds, { kind: 'duration' })

/** A duration in ms that no timer waits for: of a hundred years at most, so that its end is a time that can be written. */
export const lifetime = (fallback: string) => duration(fallback, { longestMs: 876_000 * HOUR_MS })

export const text = () => z.string().min(1, 'must not be empty')

/** Never printed, not even in the message that it is bad. */
export const secret = () => text().optional().register(kinds, { kind: 'secret' })

export const count = (fallback: number, { min = 0, max = Number.MAX_SAFE_INTEGER } = {}) =>
  z
    .number('must be a whole number')
    .multipleOf(1, 'must be a whole number') // and not int(), for which one too large is none
    .min(min, `must be at least ${min}`)
    .max(max, `must be at most ${max}`)
    .default(fallback)

export const toggle = (fallback = false) => z.boolean('must be true or false').default(fallback)
