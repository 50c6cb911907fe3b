import type * as z from 'zod'
import { UnsayableError } from './form.ts'

/** Null is as good as absent. */
export const present = <T>(value: T | null | undefined): T | undefined => value ?? undefined

/** Reads a body by its schema. @throws UnsayableError that names the first field that is wrong. */
export function parseBody<T>(schema: z.ZodType<T>, body: unknown): T {
  const { success, data, error } = schema.safeParse(body)
  if (success) return data
  const [issue] = error.issues
  const param = issue?.path.map((key, i) =>
    typeof key === 'number' ? `[${key}]` : `${i > 0 ? '.' : ''}${String(key)}`,
  )
  const isMissing = issue?.code === 'invalid_type' && issue.input === undefined
  throw new UnsayableError(
    isMissing ? 'missing_required_parameter' : 'invalid_value',
    param?.join('') ?? '',
    issue?.message ?? 'the body cannot be read',
  )
}
