import { memberRequest, projectChanges, projectRequest } from '../model.ts'
import type { Platform } from '../service.ts'
import { answerList } from './lists.ts'
import { bodyRoute, route, type Route } from './route.ts'

const PROJECT = '/platform/projects/:project_id'

/** Projects and their members. Contract: git-host.md 2.5. */
export const projectRoutes = ({ projects }: Platform): Route[] => [
  route({ method: 'GET', path: '/platform/projects', needs: 'session' }, (request) =>
    answerList(
      'projects',
      request,
      (after, limit) => projects.list(request.caller, after, limit),
      ({ id }) => id,
    ),
  ),
  bodyRoute(
    { method: 'POST', path: '/platform/projects', needs: 'admin', status: 201 },
    projectRequest,
    ({ caller }, body) => projects.create(caller, body),
  ),
  route({ method: 'GET', path: PROJECT, needs: 'project:read' }, async ({ project }) => project),
  bodyRoute({ method: 'PATCH', path: PROJECT, needs: 'project:settings' }, projectChanges, (request, body) =>
    projects.change(request.caller, request.project.id, body),
  ),
  route({ method: 'GET', path: `${PROJECT}/members`, needs: 'project:read' }, (request) =>
    answerList(
      'members',
      request,
      (after, limit) => projects.members(request.scope, after, limit),
      ({ user_id }) => user_id,
    ),
  ),
  bodyRoute(
    { method: 'PUT', path: `${PROJECT}/members/:user_id`, needs: 'project:settings' },
    memberRequest,
    async ({ scope, id, reply }, { role }) => {
      const { member, isNew } = await projects.setMember(scope, id('user_id', 'user'), role)
      if (isNew) reply.code(201)
      return member
    },
  ),
  route(
    { method: 'DELETE', path: `${PROJECT}/members/:user_id`, needs: 'project:settings', status: 204 },
    ({ scope, id }) => projects.removeMember(scope, id('user_id', 'member')),
  ),
]
