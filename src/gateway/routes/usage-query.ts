import * as z from 'zod'
import { parseQueryTime } from '../../base/clock.ts'
import { parseWholeNumber } from '../../base/whole-number.ts'
import { parseRequest, type RestRequest } from '../../platform/routes/route.ts'
import { INTERVALS, type SummaryQuery } from '../metering/analytics.ts'
import { GROUPS, type Group } from '../metering/summary.ts'
import { KINDS, OUTCOMES, SURFACES } from '../model.ts'
import type { UsageFilter } from '../store/usage.ts'

/** The filters of usage, analytics and cost. Contract: gateway.md 3.5. */

const time = z.string().transform((text, context) => {
  const ms = parseQueryTime(text)
  if (ms !== undefined) return ms
  context.addIssue({ code: 'custom', message: 'must be an ISO 8601 time' })
  return z.NEVER
})
const id = z.string().transform((text, context) => {
  const value = parseWholeNumber(text)
  if (value !== undefined) return value
  context.addIssue({ code: 'custom', message: 'must be a whole number' })
  return z.NEVER
})
const text = z.string().max(512, 'must have 512 characters at most')

const usageSchema = z.object({
  from: time.optional(),
  to: time.optional(),
  user_id: id.optional(),
  key_id: id.optional(),
  credential_id: id.optional(),
  provider: z.enum(KINDS).optional(),
  model: text.optional(),
  surface: z.enum(SURFACES).optional(),
  request_id: text.optional(),
  outcome: z.enum(OUTCOMES).optional(),
})
const isGroup = (name: string): name is Group => GROUPS.some((group) => group === name)
const groups = z.string().transform((list, context): Group[] => {
  const names = list.split(',')
  if (names.every(isGroup) && names.length <= 2 && new Set(names).size === names.length) return names
  context.addIssue({ code: 'custom', message: `must be one or two of ${GROUPS.join(', ')}, with a comma between` })
  return z.NEVER
})
const summarySchema = usageSchema.extend({ group_by: groups.optional() })
const intervalSchema = z.object({ interval: z.enum(INTERVALS).default('hour') })

/** A parameter; an empty value is as good as none. */
export function asked(query: RestRequest['query'], name: string): string | undefined {
  const value = query(name)
  return value === '' ? undefined : value
}

/** What of the query a schema knows. */
const read = <T>(schema: z.ZodObject & z.ZodType<T>, { query }: Pick<RestRequest, 'query'>): T =>
  parseRequest<T>(schema, Object.fromEntries(Object.keys(schema.shape).map((name) => [name, asked(query, name)])))

/** @throws invalid_request 400 that names the parameter at fault */
export const usageFilter = (request: Pick<RestRequest, 'query'>): UsageFilter => read(usageSchema, request)

/** @throws invalid_request 400 that names the parameter at fault */
export function summaryQuery(request: Pick<RestRequest, 'query'>, groupBy: readonly Group[]): SummaryQuery {
  const { from, to, group_by, ...filter } = read(summarySchema, request)
  return { from, to, filter, groupBy: group_by ?? groupBy }
}

/** @throws invalid_request 400 */
export const intervalOf = (request: Pick<RestRequest, 'query'>) => read(intervalSchema, request).interval
