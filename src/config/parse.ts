import type * as z from 'zod'
import { maskPassword } from './dsn.ts'
import { ConfigError } from './errors.ts'
import { entryOf, fieldsOf, nearestKey } from './known-keys.ts'
import { schema, type Values } from './schema.ts'
import { kinds } from './values.ts'

type Issue = z.core.$ZodIssue

/** Checks raw values and fills in the defaults. `from` tells where the value of a key was read.
 *  @throws ConfigError that lists everything that is wrong, a line each. */
export function parseValues(tree: Readonly<Record<string, unknown>>, from: (key: string) => string): Values {
  const { success, data, error } = schema.safeParse(tree, { reportInput: true, jitless: true }) // compiling is not worth it for once
  if (success) return data
  const faults = error.issues.flatMap((issue) => describe(issue, from))
  throw new ConfigError(faults[0]?.key ?? 'config', faults.map(({ message }) => message).join('\n'))
}

interface Fault {
  key: string
  message: string
}

function describe(issue: Issue, from: (key: string) => string): Fault[] {
  const key = keyAt(issue.path)
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((name) => {
      const unknown = keyAt([...issue.path, name])
      const nearest = nearestKey(schema, unknown)
      return { key: unknown, message: `unknown key ${unknown} (${from(unknown)}); did you mean ${nearest}?` }
    })
  }
  return [{ key, message: `${key} ${complaint(issue)}${shown(issue, key)} (${from(key)})` }]
}

/** The position in a list is left out: it is the list's key that a reader looks for. */
const keyAt = (path: readonly PropertyKey[]): string => path.filter((part) => typeof part === 'string').join('.')

function complaint(issue: Issue): string {
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`
  if (issue.message.startsWith('must')) return issue.message
  if (issue.code !== 'invalid_type') return `is not valid: ${issue.message}`
  return `must be ${NAMES[issue.expected] ?? issue.expected}`
}

const NAMES: Readonly<Record<string, string>> = { object: 'a section with keys', array: 'a list', string: 'a text' }

function shown({ input }: Issue, key: string): string {
  if (isSecret(key) || input === '') return ''
  if (typeof input === 'string') return `, not '${maskPassword(input)}'`
  return typeof input === 'number' || typeof input === 'boolean' ? `, not ${input}` : ''
}

function isSecret(key: string): boolean {
  let found: z.core.$ZodType | undefined = schema
  for (const name of key.split('.')) found = found && (new Map(fieldsOf(found)).get(name) ?? entryOf(found))
  return found !== undefined && kinds.get(found)?.kind === 'secret'
}
