import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { endBefore } from '../../http/deadline.ts'
import { mountRoutes, type Route as Mounted } from '../../http/routes.ts'
import type { Caller } from '../caller.ts'
import { invalidRequest, notFound, PlatformError, RestError } from '../errors.ts'
import type { Platform } from '../service.ts'
import { accountRoutes } from './account.ts'
import { authenticate, serve, tookTooLong, type RestSettings } from './pipeline.ts'
import { projectRoutes } from './projects.ts'
import type { Route } from './route.ts'
import { workRoutes } from './work.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Whose session a request under `/rest/v1` brought; undefined where none is needed. */
    restCaller: Caller | undefined
  }
}

const PREFIX = '/rest/v1'
/** What the database may take to say who asks; the body waits meanwhile, and must not be taken for a late one. */
const LOOK_UP_MS = 5000

/** The platform's own routes. Contract: git-host.md 2.5. */
export const platformRoutes = (platform: Platform, sessionTtlMs: number): Route[] => [
  ...accountRoutes(platform, sessionTtlMs),
  ...projectRoutes(platform),
  ...workRoutes(platform),
]

/** Mounts routes of the platform and of the services on it: guard, errors, and the answers for what is no route. */
export function mountRest(
  app: FastifyInstance,
  platform: Platform,
  routes: readonly Route[],
  settings: RestSettings,
): void {
  app.register(
    async (scope) => {
      scope.decorateRequest('restCaller', undefined)
      scope.setErrorHandler(answerError)
      const mounted = routes.map((route) => ({
        method: route.method,
        path: route.path,
        needs: route.needs,
        handle: (request: FastifyRequest, reply: FastifyReply) => serve(platform, settings, route, request, reply),
      }))
      mountRoutes(scope, mounted, {
        guard: (request, route) => {
          const admitted = admit(platform, settings, request, route?.needs)
          return endBefore(AbortSignal.timeout(Math.min(LOOK_UP_MS, settings.timeoutMs / 2)), admitted, tookTooLong)
        },
        refusal,
      })
    },
    { prefix: PREFIX },
  )
}

async function admit(
  platform: Platform,
  settings: RestSettings,
  request: FastifyRequest,
  needs: Route['needs'] | undefined,
): Promise<void> {
  await platform.organizations.requireInitialized()
  request.restCaller = await authenticate(platform, request, needs, settings)
}

/** Mounts routes that are open to all; every error in the platform's envelope. Contract: git-host.md 2.6. */
export function mountOpen(app: FastifyInstance, routes: readonly Mounted[]): void {
  app.setErrorHandler(answerError)
  mountRoutes(app, routes, { refusal })
}

function refusal({ method, originalUrl }: FastifyRequest, allow: string | undefined): RestError {
  if (allow === undefined) return notFound('path', originalUrl.split('?', 1)[0] ?? '')
  return new PlatformError('method_not_allowed', `${method} is not a method of this path: use ${allow}`)
}

function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const known = toRestError(error)
  if (known.status >= 500 && known !== error) {
    request.log.error({ err: error, request_id: request.id }, 'a request failed')
  }
  reply.code(known.status).headers(known.headers).type('application/json; charset=utf-8').send(textOf(known))
}

const textOf = ({ code, message, details }: RestError): string => JSON.stringify({ error: { code, message, details } })

/** What is said of what never became a request. */
export const unreadable = (message: string): string => textOf(invalidRequest(message))

/** A refusal, one of the framework's (bad request line, bad length), or a fault whose text never leaves. */
function toRestError(error: unknown): RestError {
  if (error instanceof RestError) return error
  if (error instanceof Error && isFrameworkRefusal(error)) return invalidRequest(error.message)
  return new PlatformError('internal', 'the server met a fault; it is in the log under this request id')
}

const isFrameworkRefusal = (error: Error & { code?: unknown; statusCode?: unknown }): boolean =>
  String(error.code).startsWith('FST_') && typeof error.statusCode === 'number' && error.statusCode < 500
