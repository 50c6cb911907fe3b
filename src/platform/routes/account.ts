import { notFound } from '../errors.ts'
import { FLAGS, flagRequest, loginRequest, userChanges, userRequest, type FlagName } from '../model.ts'
import type { Platform } from '../service.ts'
import { sessionCookie } from './credentials.ts'
import { answerList } from './lists.ts'
import { bodyRoute, route, type RestRequest, type Route } from './route.ts'

/** Sessions, users and flags. Contract: git-host.md 2.5. */
export const accountRoutes = ({ sessions, organizations, users, flags }: Platform, sessionTtlMs: number): Route[] => [
  bodyRoute(
    { method: 'POST', path: '/platform/login', needs: 'nothing' },
    loginRequest,
    async ({ address, isSecure, reply }, body) => {
      const session = await sessions.login(body, address)
      reply.header('Set-Cookie', sessionCookie(session.token, Math.floor(sessionTtlMs / 1000), isSecure))
      return session
    },
  ),
  route(
    { method: 'POST', path: '/platform/logout', needs: 'session', status: 204 },
    async ({ caller, isSecure, reply }) => {
      await sessions.logout(caller)
      reply.header('Set-Cookie', sessionCookie(undefined, 0, isSecure))
    },
  ),
  route({ method: 'GET', path: '/platform/me', needs: 'session' }, async ({ caller: { user } }) => ({
    user,
    organization: await organizations.get(user.organization_id),
  })),
  route({ method: 'GET', path: '/platform/users', needs: 'admin' }, (request) =>
    answerList(
      'users',
      request,
      (after, limit) => users.list(request.caller, after, limit),
      ({ id }) => id,
    ),
  ),
  bodyRoute({ method: 'POST', path: '/platform/users', needs: 'admin', status: 201 }, userRequest, ({ caller }, body) =>
    users.create(caller, body),
  ),
  bodyRoute(
    {
      method: 'PATCH',
      path: '/platform/users/:id',
      needs: 'admin',
      requires: ({ caller, id }) => users.require(caller, id('id', 'user')),
    },
    userChanges,
    ({ caller, id }, body) => users.change(caller, id('id', 'user'), body),
  ),
  route({ method: 'GET', path: '/platform/feature-flags', needs: 'session' }, async ({ caller }) => ({
    flags: await flags.list(caller.user.organization_id),
  })),
  bodyRoute(
    {
      method: 'PUT',
      path: '/platform/feature-flags/:name',
      needs: 'admin',
      requires: async (request) => flagOf(request),
    },
    flagRequest,
    (request, { enabled }) => flags.set(request.caller.user.organization_id, flagOf(request), enabled),
  ),
]

/** @throws not_found 404 */
function flagOf({ param }: RestRequest): FlagName {
  const name = FLAGS.find((known) => known === param('name'))
  if (!name) throw notFound('feature_flag', param('name'))
  return name
}
