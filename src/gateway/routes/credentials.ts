import { invalidRequest } from '../../platform/errors.ts'
import { answerList } from '../../platform/routes/lists.ts'
import { bodyRoute, route, type RestRequest, type Route } from '../../platform/routes/route.ts'
import type { Credentials } from '../credentials.ts'
import type { CredentialTrial } from '../credential-trial.ts'
import { KINDS } from '../model.ts'
import { credentialRequest, testRequest, unsavedTestRequest } from '../requests/credential.ts'
import type { CredentialFilter } from '../store/credentials.ts'
import { actorOf, GATEWAY } from './actor.ts'

const PATH = `${GATEWAY}/credentials`
const ONE = `${PATH}/:id`

const idOf = ({ id }: RestRequest): number => id('id', 'credential')

/** What the caller keeps. @throws not_found 404, forbidden 403 */
const keptBy = (credentials: Credentials) => (request: RestRequest) => credentials.get(request.caller, idOf(request))

/** Contract: gateway.md 3.5. */
export const credentialRoutes = (credentials: Credentials, trial: CredentialTrial): Route[] => [
  route({ method: 'GET', path: PATH, needs: 'session' }, (request) => {
    const filter = filterOf(request)
    return answerList(
      'credentials',
      request,
      (after, limit) => credentials.list(request.caller, filter, after, limit),
      ({ id }) => id,
    )
  }),
  bodyRoute({ method: 'POST', path: PATH, needs: 'session', status: 201 }, credentialRequest, (request, body) =>
    credentials.create(actorOf(request), body),
  ),
  bodyRoute({ method: 'POST', path: `${PATH}/test`, needs: 'session' }, unsavedTestRequest, (request, body) =>
    trial.unsaved(actorOf(request), body, body),
  ),
  route({ method: 'GET', path: ONE, needs: 'session' }, keptBy(credentials)),
  bodyRoute(
    { method: 'PUT', path: ONE, needs: 'session', requires: keptBy(credentials) },
    credentialRequest,
    (request, body) => credentials.replace(actorOf(request), idOf(request), body),
  ),
  route({ method: 'DELETE', path: ONE, needs: 'session', status: 204 }, (request) =>
    credentials.delete(actorOf(request), idOf(request), flagOf(request, 'force') ?? false),
  ),
  route({ method: 'POST', path: `${ONE}/enable`, needs: 'session' }, (request) =>
    credentials.enable(actorOf(request), idOf(request), true),
  ),
  route({ method: 'POST', path: `${ONE}/disable`, needs: 'session' }, (request) =>
    credentials.enable(actorOf(request), idOf(request), false),
  ),
  bodyRoute(
    { method: 'POST', path: `${ONE}/test`, needs: 'session', mayBeEmpty: true, requires: keptBy(credentials) },
    testRequest,
    (request, body) => trial.saved(actorOf(request), idOf(request), body),
  ),
]

function filterOf(request: RestRequest): CredentialFilter {
  return {
    provider: oneOf(request, 'provider', KINDS),
    enabled: flagOf(request, 'enabled'),
    scope: oneOf(request, 'scope', ['organization', 'user']),
  }
}

/** @throws invalid_request 400 for any other value */
function oneOf<T extends string>({ query }: RestRequest, name: string, known: readonly T[]): T | undefined {
  const text = query(name) ?? ''
  if (text === '') return undefined
  const value = known.find((each) => each === text)
  if (value === undefined) throw invalidRequest(`${name} must be one of ${known.join(', ')}`, name)
  return value
}

function flagOf(request: RestRequest, name: string): boolean | undefined {
  const text = oneOf(request, name, ['true', 'false'])
  return text === undefined ? undefined : text === 'true'
}
