import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { mountOtherMethods } from '../../http/other-methods.ts'
import type { Caller } from '../caller.ts'
import { invalidRequest, notFound, PlatformError, RestError } from '../errors.ts'
import type { Platform } from '../service.ts'
import { accountRoutes } from './account.ts'
import { authenticate, serve, type RestSettings } from './pipeline.ts'
import { projectRoutes } from './projects.ts'
import type { Route } from './route.ts'
import { workRoutes } from './work.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Whose session a request under `/rest/v1` brought; undefined where none is needed. */
    restCaller: Caller | undefined
  }
  interface FastifyContextConfig {
    needs?: Route['needs']
  }
}

const PREFIX = '/rest/v1'

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
      scope.addHook('onRequest', async (request) => {
        await platform.organizations.requireInitialized()
        const { needs } = request.routeOptions.config
        request.restCaller = await authenticate(platform, request, needs, settings)
      })
      answerErrors(scope)
      for (const route of routes) {
        scope.route({
          method: route.method,
          url: route.path,
          config: { needs: route.needs },
          handler: (request, reply) => serve(platform, settings, route, request, reply),
        })
      }
      mountOtherMethods(
        scope,
        routes,
        ({ method }, allow) =>
          new PlatformError('method_not_allowed', `${method} is not a method of this path: use ${allow}`),
      )
    },
    { prefix: PREFIX },
  )
}

/** Every error in the platform's envelope, unknown paths included. Contract: git-host.md 2.6. */
export function answerErrors(app: FastifyInstance): void {
  app.setErrorHandler(answerError)
  app.setNotFoundHandler((request, reply) => {
    const [path = ''] = request.originalUrl.split('?', 1)
    answerError(notFound('path', path), request, reply)
  })
}

function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const known = toRestError(error)
  if (known.status >= 500 && known !== error) {
    request.log.error({ err: error, request_id: request.id }, 'a request failed')
  }
  const { code, message, details } = known
  reply
    .code(known.status)
    .headers(known.headers)
    .type('application/json; charset=utf-8')
    .send(JSON.stringify({ error: { code, message, details } }))
}

/** A refusal, one of the framework's (bad request line, bad length), or a fault whose text never leaves. */
function toRestError(error: unknown): RestError {
  if (error instanceof RestError) return error
  if (error instanceof Error && isFrameworkRefusal(error)) return invalidRequest(error.message)
  return new PlatformError('internal', 'the server met a fault; it is in the log under this request id')
}

const isFrameworkRefusal = (error: Error & { code?: unknown; statusCode?: unknown }): boolean =>
  String(error.code).startsWith('FST_') && typeof error.statusCode === 'number' && error.statusCode < 500
