import type * as z from 'zod'

/** What is wrong with a value, and at which field (dots between the levels); the message begins with the field. */
export interface Fault {
  field: string
  message: string
}

/** The first fault of a body, in words for the client. */
export function describeFault({ issues: [first] }: z.core.$ZodError, value: unknown): Fault {
  const issue = first && meant(first)
  if (issue?.code === 'unrecognized_keys') {
    const field = [...issue.path, issue.keys[0] ?? ''].join('.')
    return { field, message: `${field} is not a known field` }
  }
  const field = issue?.path.join('.') ?? ''
  return { field, message: `${field || 'it'} ${explain(issue, value)}` }
}

/**
 * Of a key, what is wrong with it; where several forms are possible, what is wrong with the one that was begun: the others
 * do not even have its type.
 */
function meant(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  if (issue.code === 'invalid_key' && issue.issues[0]) return { ...issue.issues[0], path: issue.path }
  if (issue.code !== 'invalid_union') return issue
  const [begun] = issue.errors.flatMap(([first]) => (first && !isOtherType(first) ? first : []))
  return begun ? meant({ ...begun, path: [...issue.path, ...begun.path] }) : issue
}

const isOtherType = (issue: z.core.$ZodIssue): boolean => issue.code === 'invalid_type' && issue.path.length === 0

const LARGEST = Number.MAX_SAFE_INTEGER

/** Our own messages read on from the field's name; the library's are made to. */
function explain(issue: z.core.$ZodIssue | undefined, value: unknown): string {
  if (!issue) return 'is not valid'
  if (issue.code === 'custom') return issue.message
  const types = typesOf(issue)
  if (types.length > 0) {
    const given = issue.path.reduce<unknown>((at, key) => (isIndexable(at) ? Reflect.get(at, key) : undefined), value)
    return given === undefined ? 'is required' : `must be ${types.map(article).join(' or ')}`
  }
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`
  if (issue.message.startsWith('must') || issue.message.startsWith('has')) return issue.message
  if ('origin' in issue && issue.origin === 'int') return `must be between ${-LARGEST} and ${LARGEST}`
  return `is not valid: ${issue.message}`
}

/** What would have been taken, where the type is what is wrong. */
function typesOf(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'invalid_type') return [issue.expected]
  return issue.code === 'invalid_union' ? issue.errors.flatMap(([first]) => (first ? typesOf(first) : [])) : []
}

const isIndexable = (value: unknown): value is object => typeof value === 'object' && value !== null

const article = (type: string): string => {
  const name = type === 'record' ? 'object' : type === 'int' ? 'integer' : type
  return `${/^[aeiou]/.test(name) ? 'an' : 'a'} ${name}`
}
