import { itemChanges, itemRequest, sessionChanges, sessionRequest } from '../model.ts'
import type { Platform } from '../service.ts'
import { answerList } from './lists.ts'
import { bodyRoute, route, type Route } from './route.ts'

const ITEMS = '/platform/projects/:project_id/work-items'
const SESSIONS = '/platform/projects/:project_id/sessions'

/** Work items and agent sessions. Contract: git-host.md 2.5. */
export const workRoutes = ({ workItems, agentSessions }: Platform): Route[] => [
  route({ method: 'GET', path: ITEMS, needs: 'project:read' }, (request) =>
    answerList(
      'work_items',
      request,
      (after, limit) => workItems.list(request.scope, after, limit),
      ({ id }) => id,
    ),
  ),
  bodyRoute({ method: 'POST', path: ITEMS, needs: 'project:write', status: 201 }, itemRequest, ({ scope }, body) =>
    workItems.create(scope, body),
  ),
  route({ method: 'GET', path: `${ITEMS}/:id`, needs: 'project:read' }, ({ scope, id }) =>
    workItems.get(scope, id('id', 'work_item')),
  ),
  bodyRoute(
    {
      method: 'PATCH',
      path: `${ITEMS}/:id`,
      needs: 'project:write',
      requires: ({ scope, id }) => workItems.get(scope, id('id', 'work_item')),
    },
    itemChanges,
    ({ scope, id }, body) => workItems.change(scope, id('id', 'work_item'), body),
  ),
  route({ method: 'GET', path: SESSIONS, needs: 'project:read' }, (request) =>
    answerList(
      'sessions',
      request,
      (after, limit) => agentSessions.list(request.scope, after, limit),
      ({ sid }) => sid,
    ),
  ),
  bodyRoute(
    { method: 'POST', path: SESSIONS, needs: 'project:write', status: 201 },
    sessionRequest,
    ({ caller, scope }, body) => agentSessions.create(caller, scope, body),
  ),
  bodyRoute(
    {
      method: 'PATCH',
      path: `${SESSIONS}/:sid`,
      needs: 'project:write',
      requires: ({ scope, id }) => agentSessions.require(scope, id('sid', 'session')),
    },
    sessionChanges,
    ({ scope, id }, { status }) => agentSessions.setStatus(scope, id('sid', 'session'), status),
  ),
]
