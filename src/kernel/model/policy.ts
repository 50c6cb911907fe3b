import * as z from 'zod'
import { clip } from '../../base/clip.ts'
import { party, text, type Party } from './fields.ts'

/** What is said of an action that was proposed. Contract: kernel-1.md 13 */

export const OPERATOR: Party = { type: 'role', id: 'operator' }
export const APPROVAL_TTL_MS = 24 * 3_600_000
/** A time that can be written as one. */
const MAX_TTL_MS = 100 * 365 * 86_400_000
const MAX_REASON = 1024

/** Of a policy: what asks for approval says whom, and for how long. */
export const policyResult = z.object({
  outcome: z.enum(['allow', 'require_approval', 'deny']),
  reason: z
    .string()
    .transform((reason) => clip(reason, MAX_REASON))
    .optional(),
  eligibleApprovers: z
    .array(z.object(party.shape))
    .max(100)
    .default([])
    .transform((approvers) => (approvers.length > 0 ? approvers : [OPERATOR])),
  ttlMs: z.number().min(0).max(MAX_TTL_MS).default(APPROVAL_TTL_MS),
  timeoutDecision: z.enum(['expire', 'approve']).default('expire'),
  destinations: z
    .array(z.object({ endpointId: text(256) }))
    .max(100)
    .default([]),
})
export type PolicyResult = z.input<typeof policyResult>
export type PolicyDecision = z.output<typeof policyResult>
