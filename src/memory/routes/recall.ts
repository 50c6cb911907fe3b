import { notFound } from '../errors.ts'
import { agentRequest, pinRequest, recallRequest } from '../requests.ts'
import type { MemoryService } from '../service.ts'
import { findAgent, listAgents } from '../store/agents.ts'
import { listPins } from '../store/pins.ts'
import { answerPage, cursorOf, limitOf } from './lists.ts'
import { bodyRoute, route, type Route } from './route.ts'

const W = '/workspaces/:ws'

/** memory.md 3.4 and 3.5. */
export const recallRoutes = (service: MemoryService): Route[] => [
  bodyRoute(
    { operation: 'recall', method: 'POST', path: `${W}/recall` },
    recallRequest,
    ({ caller, workspace }, body) => service.recall.run(caller, workspace, body),
  ),
  route({ operation: 'listPins', method: 'GET', path: `${W}/recall/pins` }, async (request) => {
    const before = cursorOf(request, [''] as const)?.[0]
    const limit = limitOf(request, 100, 1000)
    return answerPage('pins', await listPins(service.seams.metadata, request.workspace.id, limit, before))
  }),
  bodyRoute(
    {
      operation: 'createPin',
      method: 'POST',
      path: `${W}/recall/pins`,
      agent: 'optional',
      status: 201,
      idempotent: true,
    },
    pinRequest,
    ({ caller, workspace, claim }, body) => service.workspaces.createPin(caller, workspace.id, body, claim?.agentId),
  ),
  route(
    { operation: 'deletePin', method: 'DELETE', path: `${W}/recall/pins/:id`, agent: 'optional', status: 204 },
    ({ caller, workspace, param }) => service.workspaces.deletePin(caller, workspace.id, param('id')),
  ),
  route({ operation: 'listAgents', method: 'GET', path: `${W}/agents` }, async (request) => {
    const before = cursorOf(request, [0, ''] as const)
    const limit = limitOf(request, 100, 1000)
    return answerPage('agents', await listAgents(service.seams.metadata, request.workspace.id, limit, before))
  }),
  route({ operation: 'getAgent', method: 'GET', path: `${W}/agents/:id` }, async ({ workspace, param }) => {
    const agent = await findAgent(service.seams.metadata, workspace.id, param('id'))
    if (!agent) throw notFound('agent', param('id'))
    return agent
  }),
  bodyRoute(
    {
      operation: 'registerAgent',
      method: 'POST',
      path: `${W}/agents`,
      agent: 'optional',
      status: 201,
      idempotent: true,
    },
    agentRequest,
    ({ caller, workspace }, body) => service.agents.register(caller, workspace.id, body),
  ),
  route(
    { operation: 'deactivateAgent', method: 'DELETE', path: `${W}/agents/:id`, agent: 'optional', status: 204 },
    ({ caller, workspace, param }) => service.agents.deactivate(caller, workspace.id, param('id')),
  ),
]
