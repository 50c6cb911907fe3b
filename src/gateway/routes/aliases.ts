import { answerList } from '../../platform/routes/lists.ts'
import { bodyRoute, route, type RestRequest, type Route } from '../../platform/routes/route.ts'
import type { Aliases } from '../aliases.ts'
import { aliasRequest } from '../requests/alias.ts'
import { actorOf, GATEWAY } from './actor.ts'

const PATH = `${GATEWAY}/model-groups`
const ONE = `${PATH}/:id`

const idOf = ({ id }: RestRequest): number => id('id', 'alias')

/** Contract: gateway.md 3.5. */
export const aliasRoutes = (aliases: Aliases): Route[] => [
  route({ method: 'GET', path: PATH, needs: 'session' }, (request) =>
    answerList(
      'model_groups',
      request,
      (after, limit) => aliases.list(request.caller, after, limit),
      ({ id }) => id,
    ),
  ),
  bodyRoute({ method: 'POST', path: PATH, needs: 'session', status: 201 }, aliasRequest, (request, body) =>
    aliases.create(actorOf(request), body),
  ),
  route({ method: 'GET', path: ONE, needs: 'session' }, (request) => aliases.get(request.caller, idOf(request))),
  bodyRoute(
    {
      method: 'PUT',
      path: ONE,
      needs: 'session',
      requires: (request) => aliases.requireKept(request.caller, idOf(request)),
    },
    aliasRequest,
    (request, body) => aliases.replace(actorOf(request), idOf(request), body),
  ),
  route({ method: 'DELETE', path: ONE, needs: 'session', status: 204 }, (request) =>
    aliases.delete(actorOf(request), idOf(request)),
  ),
]
