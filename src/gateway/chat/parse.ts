import type * as z from 'zod'
import { UnsayableError, type CacheMark } from './form.ts'

/** Null is as good as absent. */
export const present = <T>(value: T | null | undefined): T | undefined => value ?? undefined

/** `cache_control`, which both dialects have, in the inner form. */
export const marked = (mark: { ttl?: CacheMark['ttl'] | undefined } | null | undefined): { cache?: CacheMark } =>
  mark ? { cache: mark.ttl === undefined ? {} : { ttl: mark.ttl } } : {}

/** Reads a body by its schema. @throws UnsayableError that names the first field that is wrong. */
export function parseBody<T>(schema: z.ZodType<T>, body: unknown): T {
  const { success, data, error } = schema.safeParse(body, { reportInput: true })
  if (success) return data
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
