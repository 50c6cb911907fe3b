import * as z from 'zod'
import { FALLBACK_CLASSES } from '../model.ts'
import { clearable, id, label, maxOutputTokens, modelName, priority, scope, weight } from './fields.ts'

/** Contract: gateway.md 2.2. */
export const aliasRequest = z.strictObject({
  name: modelName.pipe(label(128)),
  scope: scope.optional(),
  strategy: z.enum(['weighted', 'ordered']).default('weighted'),
  members: z
    .array(
      z.strictObject({
        credential_id: id,
        model: clearable(modelName),
        weight: weight.optional(),
        priority: priority.optional(),
      }),
    )
    .min(1, 'must have 1 to 50 entries')
    .max(50, 'must have 1 to 50 entries'),
  fallback_models: z.array(modelName).max(5, 'must have 5 entries at most').default([]),
  fallback_on: z.array(z.enum(FALLBACK_CLASSES)).default(['connect', 'transient', 'rate', 'auth', 'missing']),
  cache_ttl: clearable(z.int('must be whole seconds').min(1, 'must be 1 to 86400').max(86_400, 'must be 1 to 86400')),
  max_output_tokens: maxOutputTokens,
  enabled: z.boolean().default(true),
})
export type AliasRequest = z.infer<typeof aliasRequest>
