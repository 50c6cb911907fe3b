import { invalidInput } from '../errors.ts'
import { EDGE_TYPES } from '../model.ts'
import { batchRequest, directionSchema, linkRequest, neighborsRequest, traverseRequest } from '../requests.ts'
import type { MemoryService } from '../service.ts'
import { cursorOf, limitOf } from './lists.ts'
import { bodyRoute, route, type Route } from './route.ts'

const W = '/workspaces/:ws'
const EDGES = `${W}/memories/:id(^[^:@]+)/edges`

/** memory.md 3.3. */
export const graphRoutes = (service: MemoryService): Route[] => [
  route({ operation: 'listEdges', method: 'GET', path: EDGES, graph: true }, (request) => {
    const direction = directionSchema.safeParse(request.query('direction') ?? 'both')
    if (!direction.success) throw invalidInput('direction must be out, in or both', 'direction')
    const before = cursorOf(request, [''] as const)?.[0]
    const limit = limitOf(request, 100, 200)
    const types = typesOf(request.query('type'))
    return service.graph.edges(request.workspace.id, request.param('id'), direction.data, types, limit, before)
  }),
  bodyRoute(
    { operation: 'link', method: 'POST', path: EDGES, agent: 'required', graph: true, status: 201, idempotent: true },
    linkRequest,
    ({ caller, workspace, param }, body) =>
      service.links.link(caller, workspace.id, { ...body, source_memory_id: param('id') }),
  ),
  bodyRoute(
    {
      operation: 'linkBatch',
      method: 'POST',
      path: `${W}/edges/::batch`,
      agent: 'required',
      graph: true,
      idempotent: true,
    },
    batchRequest,
    ({ caller, workspace }, body) => service.links.batch(caller, workspace.id, body),
  ),
  route(
    { operation: 'unlink', method: 'DELETE', path: `${W}/edges/:id`, agent: 'required', graph: true, status: 204 },
    ({ caller, workspace, param }) => service.links.unlink(caller, workspace.id, param('id')),
  ),
  bodyRoute(
    { operation: 'neighbors', method: 'POST', path: `${W}/graph/neighbors`, agent: 'required', graph: true },
    neighborsRequest,
    ({ workspace }, body) => service.graph.neighbors(workspace.id, body),
  ),
  bodyRoute(
    { operation: 'traverse', method: 'POST', path: `${W}/graph/traverse`, agent: 'required', graph: true },
    traverseRequest,
    ({ workspace }, body) => service.graph.traverse(workspace.id, body),
  ),
  route({ operation: 'graphStats', method: 'GET', path: `${W}/graph/stats`, graph: true }, ({ workspace }) =>
    service.graph.stats(workspace.id),
  ),
]

/** A comma list of Edge types. */
function typesOf(list: string | undefined): string[] | undefined {
  if (list === undefined) return undefined
  const types = list.split(',').map((type) => type.trim())
  const unknown = types.find((type) => !EDGE_TYPES.some((known) => known === type))
  if (unknown !== undefined) throw invalidInput(`type ${unknown} is not one of ${EDGE_TYPES.join(', ')}`, 'type')
  return types
}
