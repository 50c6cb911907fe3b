import * as z from 'zod'
import { budget, modelPatterns } from './fields.ts'

const days = (standard: number, most: number) =>
  z.int('must be a whole number').min(1, `must be 1 to ${most}`).max(most, `must be 1 to ${most}`).default(standard)

/** Contract: gateway.md 2.4. What is not named has its default. */
export const settingsRequest = z.strictObject({
  cost_tracking: z.boolean().default(true),
  budget: budget.nullable().default(null),
  user_budget: budget.nullable().default(null),
  content_logging: z.boolean().default(false),
  content_retention_days: days(7, 90),
  blocked_models: modelPatterns,
  max_request_bytes: z.int('must be whole bytes').min(1, 'must be 1 or more').nullable().default(null),
  usage_retention_days: days(90, 3650),
  private_credentials: z.boolean().default(true),
  member_keys: z.boolean().default(false),
  cache_scope: z.enum(['caller', 'organization']).default('caller'),
})
