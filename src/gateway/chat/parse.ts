import * as z from 'zod'
import { isMap } from '../../base/json.ts'
import { UnsayableError, type CacheMark, type Drop } from './form.ts'

/** Null is as good as absent. */
export const present = <T>(value: T | null | undefined): T | undefined => value ?? undefined

/** `cache_control`, which both dialects have. */
export const cacheControl = z
  .object({ type: z.literal('ephemeral'), ttl: z.enum(['5m', '1h']).optional() })
  .nullish()
  .transform(present)

/** `cache_control` in the inner form. */
export const marked = (mark: { ttl?: CacheMark['ttl'] | undefined } | null | undefined): { cache?: CacheMark } =>
  mark ? { cache: mark.ttl === undefined ? {} : { ttl: mark.ttl } } : {}

/**
 * Reads a body by its schema, and drops what the schema does not know.
 * @throws UnsayableError that names the first field that is wrong.
 */
export function parseBody<T>(schema: z.ZodType<T>, body: unknown, drop: Drop): T {
  const { success, data, error } = schema.safeParse(body, { reportInput: true })
  if (success) {
    dropUnread(body, data, drop)
    return data
  }
  const [issue] = error.issues
  if (!issue) throw new UnsayableError('invalid_value', '', 'the body cannot be read')
  const found = deepest(issue)
  const param = found.path
    .map((key, i) => (typeof key === 'number' ? `[${key}]` : `${i > 0 ? '.' : ''}${String(key)}`))
    .join('')
  const code = codeOf(found)
  const isMissing = code === 'missing_required_parameter'
  throw new UnsayableError(
    code,
    param,
    isMissing ? `${param} is missing` : wordsOf(found).replaceAll('Invalid input: ', ''),
  )
}

/** Names what stands in a body and was not read, but for what asks for nothing: nulls and empty lists. */
function dropUnread(body: unknown, read: unknown, drop: Drop, path = ''): void {
  if (body === read) return
  if (Array.isArray(body) && Array.isArray(read)) body.forEach((each, i) => dropUnread(each, read[i], drop, path))
  if (!isMap(body) || !isMap(read)) return
  for (const [name, value] of Object.entries(body)) {
    const place = path === '' ? name : `${path}.${name}`
    if (Object.hasOwn(read, name)) dropUnread(value, read[name], drop, place)
    else if (value !== null && !(Array.isArray(value) && value.length === 0)) drop(place)
  }
}

type Issue = z.core.$ZodIssue

/** Where a value fits none of several forms: what is wrong with the form that it comes nearest to. */
function deepest(issue: Issue): Issue {
  if (issue.code !== 'invalid_union') return issue
  const inner = issue.errors.flatMap(([first]) => (first ? [deepest(first)] : []))
  const best = inner.reduce<Issue | undefined>(
    (found, each) => (found && found.path.length >= each.path.length ? found : each),
    undefined,
  )
  return best && best.path.length > 0 ? { ...best, path: [...issue.path, ...best.path] } : issue
}

/** A value that fits none of several forms, and is near to none, is told what each of them wants. */
function wordsOf(issue: Issue): string {
  const inner = issue.code === 'invalid_union' ? issue.errors.flatMap(([first]) => first?.message ?? []) : []
  return [...new Set(inner)].join(', or ') || issue.message
}

function codeOf(issue: Issue): UnsayableError['code'] {
  const isKind = issue.path.at(-1) === 'type' && issue.path.length > 1
  if (isKind && (issue.code === 'invalid_union' || issue.code === 'invalid_value')) return 'unsupported_content'
  return issue.code === 'invalid_type' && issue.input === undefined ? 'missing_required_parameter' : 'invalid_value'
}
