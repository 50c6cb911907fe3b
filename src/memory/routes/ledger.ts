import { parseQueryTime } from '../../base/clock.ts'
import { invalidInput } from '../errors.ts'
import { queryLedger } from '../ledger.ts'
import { LEDGER_OPS } from '../model.ts'
import type { MemoryService } from '../service.ts'
import { limitOf } from './lists.ts'
import { route, type Route, type RouteRequest } from './route.ts'

type Query = Pick<RouteRequest, 'query'>

/** memory.md 3.6. */
export const ledgerRoutes = (service: MemoryService): Route[] => [
  route({ operation: 'ledgerQuery', method: 'GET', path: '/workspaces/:ws/ledger' }, (request) => {
    const { query } = request
    const filter = {
      since: timeOf(request, 'since'),
      until: timeOf(request, 'until'),
      actor: query('actor'),
      agentId: query('agent_id'),
      memoryId: query('memory_id'),
      edgeId: query('edge_id'),
      ops: opsOf(query('op')),
    }
    const order = orderOf(query('order'))
    const since = query('since_ledger_id') ?? query('cursor')
    const limit = limitOf(request, 100, 1000)
    return queryLedger(service.seams.ledger, request.workspace.id, filter, order, limit, since)
  }),
]

function timeOf(request: Query, name: 'since' | 'until'): number | undefined {
  const text = request.query(name)
  if (text === undefined) return undefined
  const ms = parseQueryTime(text)
  if (ms === undefined) throw invalidInput(`${name} must be an ISO 8601 time`, name)
  return ms
}

function orderOf(order = 'desc'): 'asc' | 'desc' {
  if (order !== 'asc' && order !== 'desc') throw invalidInput('order must be asc or desc', 'order')
  return order
}

function opsOf(list: string | undefined): string[] | undefined {
  const ops = list?.split(',').map((op) => op.trim())
  const unknown = ops?.find((op) => !LEDGER_OPS.some((known) => known === op))
  if (unknown !== undefined) throw invalidInput(`op ${unknown} is not one of ${LEDGER_OPS.join(', ')}`, 'op')
  return ops
}
