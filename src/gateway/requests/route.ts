import * as z from 'zod'
import { SURFACES } from '../model.ts'
import { clearable, id, modelName } from './fields.ts'

/** What is to be explained. Contract: gateway.md 3.5. */
export const routeRequest = z.strictObject({
  model: modelName,
  surface: z.enum(SURFACES).default('chat'),
  key_id: clearable(id),
})
