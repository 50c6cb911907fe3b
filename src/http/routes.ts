import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { RouteTree } from './route-tree.ts'

/** Who answers the requests of one method to one path. */
export interface Route {
  method: string
  /** Below the prefix of its scope: `:name` varies, `:name(pattern)` varies as told, `::` is a colon. */
  path: string
  handle: (request: FastifyRequest, reply: FastifyReply) => unknown
}

/** What is known of a path that a request names. */
interface FoundPath {
  /** As its routes wrote it, behind the prefix. */
  pattern: string
  /** By their methods. */
  routes: ReadonlyMap<string, Route>
  /** That of the request's method, if there is one. */
  route: Route | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The path of a table of routes; undefined where none knows it. */
    found: FoundPath | undefined
  }
}

interface Scope<R extends Route> {
  /** Runs before the body is read, for what is no route as well. */
  guard?: (request: FastifyRequest, route: R | undefined) => Promise<void>
  /** What is said of an unknown path, or where `allow` names methods, of an unknown method. */
  refusal: (request: FastifyRequest, allow: string | undefined) => Error
}

export const get = (path: string, handle: Route['handle']): Route => ({ method: 'GET', path, handle })
export const post = (path: string, handle: Route['handle']): Route => ({ method: 'POST', path, handle })

/**
 * Serves everything below the prefix of `scope`; GET answers HEAD too, and a known path says with `Allow` what it takes
 * instead of another method. One table for a scope, and no routes of the framework's own: each of these costs it a third of
 * a millisecond of every start, and there are hundreds.
 */
export function mountRoutes<R extends Route>(scope: FastifyInstance, routes: readonly R[], options: Scope<R>): void {
  const { prefix } = scope
  const tree = new RouteTree<Map<string, R>>(() => new Map())
  for (const route of routes) tree.at(route.path).set(route.method, route)
  if (!scope.hasRequestDecorator('found')) scope.decorateRequest('found')
  scope.addHook('onRequest', async (request) => {
    if (request.server !== scope) return // a scope within has a table of its own
    const [path = ''] = request.url.slice(prefix.length).split('?', 1)
    const found = tree.find(path)
    const route = found?.value.get(request.method === 'HEAD' ? 'GET' : request.method)
    if (found) {
      request.params = found.params
      request.found = { pattern: prefix + found.pattern, routes: found.value, route }
    }
    await options.guard?.(request, route)
  })
  scope.setNotFoundHandler((request, reply) => {
    const { found } = request
    if (found?.route) return found.route.handle(request, reply)
    const allow = found && allowOf(found.routes)
    if (allow !== undefined) reply.header('Allow', allow)
    throw options.refusal(request, allow)
  })
}

const allowOf = (methods: ReadonlyMap<string, Route>): string =>
  [...methods.keys()].flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
