import * as z from 'zod'
import { parseDuration, parseLifetime } from '../base/duration.ts'

/** What a printout must know of a value. */
export const kinds = z.registry<{ kind: 'duration' | 'secret' }>()

/** A duration in ms, at least 1 ms unless zero has a meaning of its own. */
export const duration = (fallback: string, { zero = false, parse = parseDuration } = {}) =>
  z
    .union([z.string(), z.number()], { error: 'must be a duration: 30s, 5m or seconds' })
    .transform((value, context) => {
      const ms = parse(value)
      if (ms !== undefined && (ms > 0 || zero)) return ms
      const above = ms === 0 ? ' above 0' : ''
      context.issues.push({ code: 'custom', input: value, message: `must be a duration${above}: 30s, 5m or seconds` })
      return z.NEVER
    })
    .prefault(fallback)
    .register(kinds, { kind: 'duration' })

/** A duration in ms that no timer waits for: it may be of any length. */
export const lifetime = (fallback: string) => duration(fallback, { parse: parseLifetime })

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
