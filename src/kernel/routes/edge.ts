import type { RequestListener } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createIdSource } from '../../base/ids.ts'
import { endBefore } from '../../http/deadline.ts'
import { createListener } from '../../http/listener.ts'
import { keylessFault } from '../../http/origin.ts'
import { mountRoutes, type Route } from '../../http/routes.ts'
import { KernelError } from '../errors.ts'
import type { Kernel } from '../service.ts'
import { readIncoming } from './incoming.ts'
import { answerError, sendJson } from './refusal.ts'
import type { Answer } from './route.ts'
import { requireToken } from './token.ts'

/** The routes of a kernel on a listener. Contract: kernel-1.md 1. */

const REQUEST_MS = 30_000
const ROOT = '/api/v1'

export interface EdgeOptions {
  /** Without one, requests need none. */
  token?: string | undefined
  /** Without a token: other sites than this one and these are refused, and other names of this machine than loopback ones. */
  localOrigins?: readonly string[] | undefined
  /** Of the API root. */
  prefix?: string
  timeoutMs?: number
}

/** Mounts all routes below the prefix: token, errors, and the answers for what is no route. */
export function mountKernel(app: FastifyInstance, kernel: Kernel, options: EdgeOptions = {}): void {
  const { token, localOrigins, prefix = ROOT, timeoutMs = REQUEST_MS } = options
  const plugin = async (scope: FastifyInstance): Promise<void> => {
    scope.setErrorHandler((error, request, reply) => answerError(kernel, error, request, reply))
    const routes = kernel.routes.map((name): Route => {
      const [method = '', path = ''] = name.split(' ')
      return {
        method,
        path: path.replace(/\{(\w+)\}/g, ':$1'),
        handle: async (request, reply) =>
          send(reply, await endBefore(AbortSignal.timeout(timeoutMs), answerTo(kernel, name, prefix, request), late)),
      }
    })
    const guard = async ({ raw }: FastifyRequest): Promise<void> => {
      if (token !== undefined) return requireToken(raw, token)
      const fault = localOrigins && keylessFault(raw, localOrigins)
      if (fault !== undefined) throw new KernelError('forbidden', fault)
    }
    mountRoutes(scope, routes, { guard, refusal })
  }
  app.register(plugin, { prefix })
}

/** The same as a plain request listener, whether the path still has `/api/v1` before it or a router took it off. */
export function createHttpHandler(kernel: Kernel, options: Pick<EdgeOptions, 'token' | 'timeoutMs'>): RequestListener {
  const { log, store } = kernel.context
  const app = createListener({ log, ids: createIdSource(store), timeoutMs: REQUEST_MS, allowedOrigins: [] })
  mountKernel(app, kernel, { ...options, prefix: '' })
  const ready = app.ready()
  return (request, response) => {
    request.url = request.url?.replace(/^\/api\/v1(?:\/|(?=\?|$))/, '/') ?? '/'
    ready.then(
      () => app.routing(request, response),
      (error: unknown) => response.destroy(error instanceof Error ? error : undefined),
    )
  }
}

async function answerTo(kernel: Kernel, name: string, prefix: string, request: FastifyRequest): Promise<Answer> {
  const params = stringsOf(request.params)
  const handler = kernel.handlerOf(name)
  const [path = ''] = request.url.slice(prefix.length).split('?', 1)
  return handler(await readIncoming(kernel, name, path, params, request))
}

function send(reply: FastifyReply, { status, body, headers = {} }: Answer): FastifyReply {
  reply.code(status).headers(headers)
  return status === 204 ? reply.send() : sendJson(reply, body)
}

const late = (): KernelError => new KernelError('unavailable', 'the request took too long: try again')

/** The framework types them as anything. */
const stringsOf = (params: unknown): Record<string, string> =>
  Object.fromEntries(Object.entries(params ?? {}).map(([name, value]) => [name, String(value)]))

function refusal({ method, originalUrl }: FastifyRequest, allow: string | undefined): KernelError {
  if (allow !== undefined)
    return new KernelError('method_not_allowed', `${method} is not a method of this path: use ${allow}`)
  const [path = ''] = originalUrl.split('?', 1)
  return new KernelError('not_found', `${path} is not a path of this server`)
}
