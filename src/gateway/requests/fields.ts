import * as z from 'zod'
import { parseUsd } from '../cost/money.ts'
import { wrongModel } from '../kinds/model-path.ts'
import { WINDOWS } from '../model.ts'

/** The parts that management requests are made of. Contract: gateway.md 2. */

const CONTROL = /\p{Cc}/u

/** Text without control characters, in characters. */
export const label = (max: number) =>
  z
    .string()
    .min(1, 'must not be empty')
    .refine((text) => [...text].length <= max, `must have ${max} characters at most`)
    .refine((text) => !CONTROL.test(text), 'must have no control characters')

/** A field that may be absent; null and '' are as good as that. */
export const clearable = <T extends z.ZodType>(schema: T) =>
  z.preprocess((value) => (value === null || value === '' ? undefined : value), schema.optional()).optional()

/** What goes into a path: no control characters, no dot segments, 512 bytes at most. Contract: gateway.md 10.3. */
export const modelName = z.string().superRefine((name, context) => {
  const message = wrongModel(name)
  if (message !== undefined) context.addIssue({ code: 'custom', message, input: name })
})

/**
 * Names that people choose, each with a value; at most so many.
 * `__proto__` is none: what reads records leaves it out without a word.
 */
export const byName = <V extends z.ZodType>(name: z.ZodType<string, string>, value: V, max: number, what: string) =>
  z
    .preprocess(
      (given, context) => {
        if (typeof given === 'object' && given !== null && Object.hasOwn(given, '__proto__')) {
          context.addIssue({ code: 'custom', path: ['__proto__'], message: 'is no name to be used', input: given })
        }
        return given
      },
      z.record(name, value),
    )
    .refine((record) => Object.keys(record).length <= max, `must have ${max} ${what} at most`)
    .default({})

const modelPattern = modelName.refine((text) => !text.slice(0, -1).includes('*'), 'must have * only at its end')

/** Names, or globs with one `*` at the end; each counts once. */
export const modelPatterns = z
  .array(modelPattern)
  .max(1000, 'must have 1000 entries at most')
  .transform((patterns) => [...new Set(patterns)])
  .default([])

export const id = z.int('must be a whole number').min(1, 'must be 1 or more')
const atLeastOne = z.int('must be a whole number').min(1, 'must be 1 or more').optional()

export const limits = z
  .strictObject({ requests_per_minute: atLeastOne, tokens_per_minute: atLeastOne, max_concurrency: atLeastOne })
  .default({})

const milliseconds = z
  .int('must be whole milliseconds')
  .min(100, 'must be 100 to 3600000')
  .max(3_600_000, 'must be 100 to 3600000')
  .optional()

export const timeouts = z
  .strictObject({
    connect_ms: milliseconds,
    first_byte_ms: milliseconds,
    idle_ms: milliseconds,
    total_ms: milliseconds,
  })
  .default({})

/** 0 to 1000 in thousandths. */
export const weight = z
  .number('must be a number')
  .min(0, 'must be 0 to 1000')
  .max(1000, 'must be 0 to 1000')
  .refine((value) => Math.round(value * 1000) / 1000 === value, 'must have 3 decimals at most')

export const priority = z.int('must be a whole number').min(0, 'must be 0 to 100').max(100, 'must be 0 to 100')

export const scope = z.enum(['organization', 'user'])

export const maxOutputTokens = clearable(z.int('must be a whole number').min(1, 'must be 1 or more'))

export const budget = z.strictObject({
  limit_usd: z
    .string()
    .refine((text) => parseUsd(text) !== undefined, 'must be decimal USD below 1000000000, with 9 decimals at most'),
  window: z.enum(WINDOWS),
  unknown_price: z.enum(['deny', 'allow']).default('deny'),
})
