import { parseQueryTime } from '../../base/clock.ts'
import { invalidRequest } from '../../platform/errors.ts'
import { answerList, wholeNumber } from '../../platform/routes/lists.ts'
import { route, StreamedAnswer, type RestRequest, type Route } from '../../platform/routes/route.ts'
import type { AuditRecord } from '../audit-chain.ts'
import type { Audit } from '../audit.ts'
import type { AuditFilter } from '../store/audit.ts'
import { GATEWAY } from './actor.ts'

const PATH = `${GATEWAY}/audit`

/** What was done, for admins. Contract: gateway.md 3.5. */
export const auditRoutes = (audit: Audit): Route[] => [
  route({ method: 'GET', path: PATH, needs: 'admin' }, (request) => {
    const filter = filterOf(request)
    const order = orderOf(request)
    return answerList(
      'audit',
      request,
      (after, limit) => audit.list(request.caller.user.organization_id, filter, order, after, limit),
      ({ id }) => id,
    )
  }),
  route({ method: 'GET', path: `${PATH}/export`, needs: 'admin' }, async (request) => {
    const pages = audit.export(request.caller.user.organization_id, filterOf(request))
    return new StreamedAnswer('application/x-ndjson', 'audit.jsonl', lines(pages))
  }),
  route({ method: 'GET', path: `${PATH}/verify`, needs: 'admin' }, ({ caller }) =>
    audit.verify(caller.user.organization_id),
  ),
]

async function* lines(pages: AsyncIterable<readonly AuditRecord[]>): AsyncGenerator<string> {
  for await (const records of pages) yield records.map((record) => `${JSON.stringify(record)}\n`).join('')
}

function filterOf(request: RestRequest): AuditFilter {
  const named = (name: string): string | undefined => {
    const text = request.query(name)
    return text === '' ? undefined : text
  }
  return {
    from: timeOf('from', named('from')),
    to: timeOf('to', named('to')),
    action: named('action'),
    actorId: wholeNumber('actor_id', request.query('actor_id')),
    targetType: named('target_type'),
    targetId: named('target_id'),
  }
}

function timeOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = parseQueryTime(text)
  if (ms === undefined) throw invalidRequest(`${name} must be an ISO 8601 time`, name)
  return ms
}

/** The oldest come first unless asked otherwise. */
function orderOf({ query }: RestRequest): 'asc' | 'desc' {
  const order = query('order') ?? 'asc'
  if (order !== 'asc' && order !== 'desc') throw invalidRequest('order must be asc or desc', 'order')
  return order
}
