import { invalidRequest } from '../../platform/errors.ts'
import { rangeOf } from '../../platform/routes/lists.ts'
import { route, StreamedAnswer, type RestRequest, type Route } from '../../platform/routes/route.ts'
import type { Usage } from '../metering/usage.ts'
import { actorOf, GATEWAY } from './actor.ts'
import { asked, usageFilter } from './usage-query.ts'

const PATH = `${GATEWAY}/usage`
const TYPES = { jsonl: 'application/x-ndjson', csv: 'text/csv; charset=utf-8' } as const

/** Usage records. Contract: gateway.md 3.5. */
export const usageRoutes = (usage: Usage): Route[] => [
  route({ method: 'GET', path: PATH, needs: 'session' }, async (request) => {
    const { limit } = rangeOf({ query: (name) => (name === 'limit' ? request.query(name) : undefined) })
    const afterId = asked(request.query, 'after_id')
    const records = await usage.list(request.caller, usageFilter(request), afterId, limit + 1)
    const last = records.length > limit ? records[limit - 1] : undefined
    return { usage: records.slice(0, limit), next_after_id: last?.id ?? '' }
  }),
  route({ method: 'GET', path: `${PATH}/export`, needs: 'session' }, async (request) => {
    const format = formatOf(request)
    const parts = usage.export(request.caller, usageFilter(request), format)
    return new StreamedAnswer(TYPES[format], `usage.${format}`, parts)
  }),
  route({ method: 'GET', path: `${PATH}/:id`, needs: 'session' }, ({ caller, param }) =>
    usage.get(caller, param('id')),
  ),
  route({ method: 'GET', path: `${PATH}/:id/content`, needs: 'admin' }, (request) =>
    usage.content(actorOf(request), request.param('id')),
  ),
]

function formatOf({ query }: RestRequest): 'jsonl' | 'csv' {
  const format = asked(query, 'format') ?? 'jsonl'
  if (format !== 'jsonl' && format !== 'csv') throw invalidRequest('format must be jsonl or csv', 'format')
  return format
}
