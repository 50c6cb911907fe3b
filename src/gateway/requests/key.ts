import * as z from 'zod'
import { parseTimestamp } from '../../base/clock.ts'
import { budget, clearable, id, label, limits, maxOutputTokens, modelPatterns } from './fields.ts'

/** Contract: gateway.md 2.3. */
export const keyRequest = z.strictObject({
  name: label(128),
  user_id: clearable(id),
  allowed_models: modelPatterns,
  allowed_credentials: z.array(id).max(500, 'must have 500 entries at most').default([]),
  budget: clearable(budget),
  limits,
  max_output_tokens: maxOutputTokens,
  expires_at: clearable(
    z
      .string()
      .refine((text) => parseTimestamp(text) !== undefined, 'must be an ISO 8601 time')
      .transform((text) => parseTimestamp(text)),
  ),
  enabled: z.boolean().default(true),
})
export type KeyRequest = z.infer<typeof keyRequest>

/** How long the old token stays good, in seconds. */
export const rotateRequest = z.strictObject({
  grace_seconds: z
    .int('must be whole seconds')
    .min(0, 'must be 0 to 86400')
    .max(86_400, 'must be 0 to 86400')
    .default(0),
})
