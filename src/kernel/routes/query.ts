import * as z from 'zod'
import { describeFault } from '../../http/validation.ts'
import { invalid } from '../errors.ts'
import { owner, scope, type Owner, type Scope } from '../model/fields.ts'

/** What is asked in the query. Contract: kernel-1.md 1.1, 1.2, 1.7. */

/** A whole number in this range. */
export const integer = (min: number, max: number): z.ZodType<number, string> =>
  z
    .string()
    .regex(/^-?\d+$/, 'must be a whole number')
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be ${min} to ${max}`)

/** A filter that may be given more than once, or with commas. */
export const several = <V extends string>(values: readonly V[]): z.ZodArray<z.ZodEnum<{ [K in V]: K }>> =>
  z.array(z.enum(values))

export const ownerFilter = { ownerType: owner.shape.type.exactOptional(), ownerId: owner.shape.id.exactOptional() }

/** @throws invalid for half an owner */
export function ownerOf({ ownerType, ownerId }: { ownerType?: Owner['type']; ownerId?: string }): { owner?: Owner } {
  if (ownerType === undefined && ownerId === undefined) return {}
  if (ownerType === undefined || ownerId === undefined) throw invalid('ownerType and ownerId need each other')
  return { owner: { type: ownerType, id: ownerId } }
}

const isSeveral = (schema: unknown): boolean =>
  schema instanceof z.ZodArray ||
  ((schema instanceof z.ZodExactOptional || schema instanceof z.ZodDefault) && isSeveral(schema.unwrap()))

/** @throws invalid for what is repeated but may not be, or does not fit; unknown parameters are ignored */
export function readQuery<S extends z.ZodRawShape>(
  query: URLSearchParams,
  schema: z.ZodObject<S>,
): z.infer<z.ZodObject<S>> {
  const given: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(schema.shape)) {
    const values = query.getAll(name)
    if (values.length === 0) continue
    if (values.some((value) => value.includes('\0'))) throw invalid(`${name} holds the character U+0000`)
    if (isSeveral(field)) given[name] = values.flatMap((value) => value.split(','))
    else if (values.length > 1) throw invalid(`${name} is given ${values.length} times`)
    else given[name] = values[0]
  }
  return check(schema, given)
}

/** @throws invalid naming the first place that does not fit, and why */
export function check<S extends z.ZodType>(schema: S, value: unknown): z.infer<S> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw invalid(describeFault(parsed.error, value).message)
}

const scopeQuery = z.object({ scopeKind: scope.shape.kind, scopeId: scope.shape.id })

/** @throws invalid for half a scope */
export function scopeOfQuery(query: URLSearchParams): Scope | undefined {
  if (!query.has('scopeKind') && !query.has('scopeId')) return undefined
  const { scopeKind, scopeId } = readQuery(query, scopeQuery)
  return { kind: scopeKind, id: scopeId }
}
