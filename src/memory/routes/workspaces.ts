import { notFound } from '../errors.ts'
import { collectionRequest, workspaceRequest } from '../requests.ts'
import type { MemoryService } from '../service.ts'
import { findCollection, listCollections } from '../store/collections.ts'
import { listWorkspaces } from '../store/workspaces.ts'
import { answerPage, cursorOf, limitOf } from './lists.ts'
import { bodyRoute, route, type Route } from './route.ts'

/** memory.md 3.1. */
export const workspaceRoutes = (service: MemoryService): Route[] => [
  bodyRoute(
    {
      operation: 'createWorkspace',
      method: 'POST',
      path: '/workspaces',
      agent: 'optional',
      status: 201,
      idempotent: true,
    },
    workspaceRequest,
    async ({ caller, claim }, body) => {
      const workspace = await service.workspaces.create(caller, body)
      if (claim) await service.agents.admit(caller, workspace.id, claim)
      return workspace
    },
  ),
  route({ operation: 'listWorkspaces', method: 'GET', path: '/workspaces' }, async (request) => {
    const before = cursorOf(request, [''] as const)?.[0]
    const limit = limitOf(request, 100, 200)
    return answerPage('workspaces', await listWorkspaces(service.seams.metadata, limit, before, request.tenant))
  }),
  route({ operation: 'getWorkspace', method: 'GET', path: '/workspaces/:ws' }, async ({ workspace }) => workspace),
  bodyRoute(
    { operation: 'updateWorkspace', method: 'PUT', path: '/workspaces/:ws', agent: 'optional' },
    workspaceRequest,
    ({ caller, workspace }, body) => service.workspaces.replace(caller, workspace.id, body),
  ),
  route(
    { operation: 'deleteWorkspace', method: 'DELETE', path: '/workspaces/:ws', agent: 'optional', status: 204 },
    ({ caller, workspace }) => service.workspaces.delete(caller, workspace.id),
  ),
  route({ operation: 'listCollections', method: 'GET', path: '/workspaces/:ws/collections' }, async (request) => {
    const after = cursorOf(request, [''] as const)?.[0]
    const limit = limitOf(request, 100, 1000)
    return answerPage('collections', await listCollections(service.seams.metadata, request.workspace.id, limit, after))
  }),
  bodyRoute(
    {
      operation: 'createCollection',
      method: 'POST',
      path: '/workspaces/:ws/collections',
      agent: 'optional',
      status: 201,
      idempotent: true,
    },
    collectionRequest,
    ({ caller, workspace }, body) => service.workspaces.createCollection(caller, workspace.id, body),
  ),
  route(
    { operation: 'getCollection', method: 'GET', path: '/workspaces/:ws/collections/:id' },
    async ({ workspace, param }) => {
      const collection = await findCollection(service.seams.metadata, workspace.id, param('id'))
      if (!collection) throw notFound('collection', param('id'))
      return collection
    },
  ),
  route(
    {
      operation: 'deleteCollection',
      method: 'DELETE',
      path: '/workspaces/:ws/collections/:id',
      agent: 'optional',
      status: 204,
    },
    ({ caller, workspace, param }) => service.workspaces.deleteCollection(caller, workspace.id, param('id')),
  ),
]
