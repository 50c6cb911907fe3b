import * as z from 'zod'
import { toTimestamp } from '../../base/clock.ts'
import { secretPath } from '../secret-free.ts'

/** What the bodies of all routes are made of, and what all records carry. Contract: kernel-1.md 1. */

/** Trimmed; empty is refused, and what no database keeps: NUL and halves of surrogate pairs. */
export const text = (max: number): z.ZodString =>
  z
    .string()
    .trim()
    .min(1, 'must not be empty')
    .max(max, `must have ${max} characters at most`)
    .regex(/^[^\0\p{Cs}]*$/u, 'must not hold NUL or broken characters')

export const prose = text(65_536)
export const count = z.int().min(0)
export const positive = z.int().min(1)

export const id = text(128).regex(/^(?!.*:\/\/)[^\r\n?#@/\\]*$/, 'must not hold line ends, ?, #, @, /, \\ or ://')
/** Of an agent or team definition: scoped ones hold slashes. */
export const definitionId = text(256).regex(/^[^\r\n?#@\\]*$/, 'must not hold line ends, ?, #, @ or \\')
export const version = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9.+_-]{0,127}$/, 'must be 1 to 128 letters, digits, ., +, _ or -')

/** Any offset comes in; UTC with milliseconds goes on. */
export const time = z.iso
  .datetime({ offset: true, error: 'must be a time such as 2026-11-23T09:00:00Z' })
  .transform((value) => toTimestamp(Date.parse(value)))
  .refine((value) => /^\d{4}-/.test(value), 'must lie in the years 0000 to 9999')

const MOST_RESOURCES = 100
/** So much of each, by name: each is a row of its own. */
export const resources = (amount: z.ZodInt): z.ZodRecord<z.ZodString, z.ZodInt> =>
  z
    .record(text(128), amount)
    .refine((all) => Object.keys(all).length <= MOST_RESOURCES, `must name ${MOST_RESOURCES} resources at most`)

export const object = z.record(z.string(), z.unknown())
/** JSON whose shape is the client's own. */
export const free = z.union([prose, z.array(z.unknown()), object])

const withoutSecrets = (value: unknown, ctx: z.RefinementCtx): void => {
  const path = secretPath(value)
  if (path) ctx.addIssue({ code: 'custom', path, message: 'looks like a secret, which is never stored here' })
}
export const secretFree = object.superRefine(withoutSecrets)
export const freeSecretFree = free.superRefine(withoutSecrets)

export const scope = z.strictObject({ kind: text(128), id: text(128) })
/** A partition key; no hierarchy. */
export type Scope = z.infer<typeof scope>

export const party = z.strictObject({ type: text(128), id: text(128) })
/** Who acts, decides or is asked. */
export type Party = z.infer<typeof party>

export const owner = z.strictObject({ type: z.enum(['agent', 'team']), id })
export type Owner = z.infer<typeof owner>

export const visibility = z.enum(['private', 'team', 'scope'])
export type Visibility = z.infer<typeof visibility>

export const reference = z.strictObject({ kind: text(128), id: text(256) })
export const evidenceRefs = z.array(text(512)).max(100)

/** Of every write: both may be absent, the scope where the query has it. */
const WRITE = { scope: scope.exactOptional(), actor: party.exactOptional() }

/** A body that takes these fields and no others. */
export const body = <S extends z.ZodRawShape>(shape: S): z.ZodObject<S & typeof WRITE, z.core.$strict> =>
  z.strictObject({ ...WRITE, ...shape })

/** Of bodies that take the key beside the header. */
export const KEY = { idempotencyKey: z.string().exactOptional() }
export const expectedRevision = z.int().min(0)

/** Of what every record carries. Times are RFC 3339 in UTC with milliseconds. */
export interface Created {
  scope: Scope
  id: string
  createdAt: string
  /** `sha256:` + hex. */
  idempotencyKeyHash?: string
  /** Of the content that made it. */
  creationFingerprint?: string
}

/** What a record bears of the key that made it. */
export type Creation = Pick<Created, 'idempotencyKeyHash' | 'creationFingerprint'>

export interface Recorded extends Created {
  /** 1 at first, one more with each committed change of meaning. */
  revision: number
  updatedAt: string
}
