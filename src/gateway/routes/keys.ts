import { sha256 } from '../../base/hash.ts'
import { credentialOf, unauthorized } from '../../platform/routes/credentials.ts'
import { answerList } from '../../platform/routes/lists.ts'
import { bodyRoute, route, type RestRequest, type Route } from '../../platform/routes/route.ts'
import type { Keys } from '../keys.ts'
import { keyRequest, rotateRequest } from '../requests/key.ts'
import type { States } from '../state/states.ts'
import { actorOf, GATEWAY } from './actor.ts'

const PATH = `${GATEWAY}/keys`
const ONE = `${PATH}/:id`

const idOf = ({ id }: RestRequest): number => id('id', 'key')

/** Contract: gateway.md 3.5. */
export const keyRoutes = (keys: Keys, states: States): Route[] => [
  route({ method: 'GET', path: PATH, needs: 'session' }, (request) =>
    answerList(
      'keys',
      request,
      (after, limit) => keys.list(request.caller, after, limit),
      ({ id }) => id,
    ),
  ),
  bodyRoute(
    { method: 'POST', path: PATH, needs: 'session', status: 201, requires: ({ caller }) => keys.requireMaker(caller) },
    keyRequest,
    (request, body) => keys.create(actorOf(request), body),
  ),
  route({ method: 'GET', path: `${PATH}/self`, needs: 'nothing' }, async ({ reply: { request } }) => {
    const { 'x-mem-api-key': own } = request.headers
    const token = typeof own === 'string' ? own : credentialOf(request.raw).token
    const found = states.findKey(sha256(token))
    const key = found && (await keys.self(found.state.id, found.key.id))
    if (!key) throw unauthorized('this needs a virtual key that is good now')
    return key
  }),
  route({ method: 'GET', path: ONE, needs: 'session' }, (request) => keys.get(request.caller, idOf(request))),
  bodyRoute(
    {
      method: 'PUT',
      path: ONE,
      needs: 'session',
      requires: async (request) => {
        await keys.get(request.caller, idOf(request))
        await keys.requireMaker(request.caller)
      },
    },
    keyRequest,
    (request, body) => keys.replace(actorOf(request), idOf(request), body),
  ),
  bodyRoute(
    {
      method: 'POST',
      path: `${ONE}/rotate`,
      needs: 'session',
      mayBeEmpty: true,
      requires: (request) => keys.get(request.caller, idOf(request)),
    },
    rotateRequest,
    (request, body) => keys.rotate(actorOf(request), idOf(request), body.grace_seconds),
  ),
  route({ method: 'DELETE', path: ONE, needs: 'session', status: 204 }, (request) =>
    keys.delete(actorOf(request), idOf(request)),
  ),
]
