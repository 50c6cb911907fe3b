import { parsePairs } from '../input.ts'
import { usageError } from '../exit.ts'

/** The `key=value` pairs of a flag. @throws CliError (usage) for a key that is given twice: which value was meant? */
export function distinctPairs(flag: string, pairs: readonly string[]): [key: string, text: string][] {
  const entries = pairs.flatMap((pair) => Object.entries(parsePairs(flag, [pair]) ?? {}))
  const keys = entries.map(([key]) => key)
  const twice = keys.find((key, i) => keys.indexOf(key) !== i)
  if (twice !== undefined) throw usageError(`--${flag} ${twice} is given twice`, 'Give one value for it.')
  return entries
}

/** Puts `key=value` pairs over what is there; an empty value takes one away. */
export function withPairs<T>(
  flag: string,
  before: Readonly<Record<string, T>>,
  pairs: readonly string[],
  read: (key: string, text: string) => T,
): Record<string, T> {
  const after = { ...before }
  for (const [key, text] of distinctPairs(flag, pairs)) {
    if (text === '') delete after[key]
    else after[key] = read(key, text)
  }
  return after
}

/** Pairs whose values are numbers. */
export const withNumbers = (
  flag: string,
  before: Readonly<Record<string, number>>,
  pairs: readonly string[],
): Record<string, number> => withPairs(flag, before, pairs, (key, text) => numberOf(`${flag} ${key}`, text))

/** @throws CliError (usage) when it is none */
export function numberOf(flag: string, text: string): number {
  const value = Number(text)
  if (text.trim() === '' || !Number.isFinite(value)) throw usageError(`--${flag} '${text}' is no number`)
  return value
}

/** Undefined when the flag was not given. */
export const optionalNumber = (flag: string, text: string | undefined): number | undefined =>
  text === undefined ? undefined : numberOf(flag, text)

/** What a list flag gives: nothing changes without it, an empty value empties the list. */
export const listOf = <T>(given: readonly string[], before: readonly T[], read: (text: string) => T): readonly T[] =>
  given.length === 0 ? before : given.filter((text) => text !== '').map(read)

/** The fields that have a value. */
export const given = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

interface BudgetInput {
  readonly limit: string | undefined
  readonly window: string | undefined
  readonly unknown: string | undefined
}

/** A budget after flags: an empty limit takes it away, what no flag names stays. */
export function budgetOf(before: object | null | undefined, { limit, window, unknown }: BudgetInput): object | null {
  if (limit === '') return null
  const changes = given({ limit_usd: limit, window, unknown_price: unknown })
  if (!before && Object.keys(changes).length === 0) return null
  return { ...(before ?? { window: 'month' }), ...changes }
}
