import * as z from 'zod'
import { risk } from './action.ts'
import {
  body,
  expectedRevision,
  id,
  KEY,
  party,
  positive,
  reference,
  secretFree,
  text,
  time,
  version,
  type Party,
  type Recorded,
} from './fields.ts'

/** A skill in the hands of a deployment, within bounds. Contract: kernel-2.md 2. */

const restriction = z.strictObject({ const: z.json().exactOptional(), enum: z.array(z.json()).min(1).exactOptional() })

const FIELDS = {
  skillId: text(256),
  skillVersion: version,
  sourceIdentity: text(2048).exactOptional(),
  allowedActions: z.array(text(128)).max(100).default([]),
  enablePrompt: z.boolean().default(false),
  maximumRisk: risk,
  argumentRestrictions: z.record(text(128), z.record(text(128), restriction)).default({}),
  credentials: z.record(text(128), reference).default({}),
  config: secretFree.default({}),
}
const fields = z.strictObject(FIELDS)

export const LIFECYCLE_ACTIONS = ['created', 'updated', 'enabled', 'disabled', 'upgraded'] as const

export interface LifecycleEntry {
  revision: number
  action: (typeof LIFECYCLE_ACTIONS)[number]
  actor: Party
  reason: string
  at: string
}

export interface Binding extends Recorded, z.infer<typeof fields> {
  deploymentId: string
  disabled: boolean
  /** Only grows. */
  lifecycle: LifecycleEntry[]
}

const reason = text(1024)

/** A record sent back as it was read: what the server keeps may be in it. */
export const putBinding = body({
  ...KEY,
  binding: z.strictObject({
    ...FIELDS,
    id: id.exactOptional(),
    deploymentId: id.exactOptional(),
    scope: z.strictObject({ kind: text(128), id: text(128) }).exactOptional(),
    disabled: z.literal(false, 'must not be set: a binding is disabled by its own route').exactOptional(),
    lifecycle: z.array(z.unknown()).exactOptional(),
    revision: positive.exactOptional(),
    createdAt: time.exactOptional(),
    updatedAt: time.exactOptional(),
    idempotencyKeyHash: z.string().exactOptional(),
    creationFingerprint: z.string().exactOptional(),
  }),
  expectedRevision,
  actor: party,
  reason,
})
export type PutBinding = z.infer<typeof putBinding>

export const disableBinding = body({ ...KEY, expectedRevision, actor: party, reason })
