import type * as z from 'zod'

/** What is wrong with a value, and at which field (dots between the levels); the message begins with the field. */
export interface Fault {
  field: string
  message: string
}

/** The first fault of a body, in words for the client. */
export function describeFault({ issues: [issue] }: z.core.$ZodError, value: unknown): Fault {
  if (issue?.code === 'unrecognized_keys') {
    const field = [...issue.path, issue.keys[0] ?? ''].join('.')
    return { field, message: `${field} is not a known field` }
  }
  const field = issue?.path.join('.') ?? ''
  return { field, message: `${field || 'it'} ${explain(issue, value)}` }
}

const LARGEST = Number.MAX_SAFE_INTEGER

/** Our own messages read on from the field's name; the library's are made to. */
function explain(issue: z.core.$ZodIssue | undefined, value: unknown): string {
  if (!issue) return 'is not valid'
  if (issue.code === 'custom') return issue.message
  if (issue.code === 'invalid_type') {
    const given = issue.path.reduce<unknown>((at, key) => (isIndexable(at) ? Reflect.get(at, key) : undefined), value)
    return given === undefined ? 'is required' : `must be ${article(issue.expected)}`
  }
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`
  if (issue.message.startsWith('must') || issue.message.startsWith('has')) return issue.message
  if ('origin' in issue && issue.origin === 'int') return `must be between ${-LARGEST} and ${LARGEST}`
  return `is not valid: ${issue.message}`
}

const isIndexable = (value: unknown): value is object => typeof value === 'object' && value !== null

const article = (type: string): string => {
  const name = type === 'record' ? 'object' : type === 'int' ? 'integer' : type
  return `${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name}`
}
