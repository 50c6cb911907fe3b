import type * as z from 'zod'

/** What is wrong with a value, and at which field (dots between the levels); the message begins with the field. */
export interface Fault {
  field: string
  message: string
}

/** The first fault of a body, in words for the client. */
export function describeFault({ issues }: z.core.$ZodError, value: unknown): Fault {
  // Of a number too large to be counted exactly, the bounds of its field tell more.
  const first = issues.find((one) => !isBeyond(one)) ?? issues[0]
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

/** Whole, but beyond what a program counts exactly: a message of the field's own says that it is not whole. */
const isBeyond = (issue: z.core.$ZodIssue): boolean => 'origin' in issue && issue.origin === 'int'

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
  if (isBeyond(issue)) return `must be between ${-LARGEST} and ${LARGEST}`
  if (issue.message.startsWith('must') || issue.message.startsWith('has')) return issue.message
  if (issue.code === 'too_small') {
    return mustBe(issue.inclusive === false ? 'more than' : 'at least', issue.minimum, issue.origin)
  }
  if (issue.code === 'too_big') {
    return mustBe(issue.inclusive === false ? 'less than' : 'at most', issue.maximum, issue.origin)
  }
  return `is not valid: ${issue.message}`
}

/** A number is so much; a text or a list has so many. */
function mustBe(bound: string, limit: number | bigint, origin: string): string {
  if (origin === 'number') return `must be ${bound} ${limit}`
  const what = origin === 'string' ? 'character' : 'item'
  return `must have ${bound} ${limit} ${what}${limit === 1 ? '' : 's'}`
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
