import type { RequestListener } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { createIdSource } from '../../base/ids.ts'
import { endBefore } from '../../http/deadline.ts'
import { createListener } from '../../http/listener.ts'
import { keylessFault } from '../../http/origin.ts'
import { mountOtherMethods } from '../../http/other-methods.ts'
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
    scope.addHook('onRequest', async ({ raw }) => {
      if (token !== undefined) return requireToken(raw, token)
      const fault = localOrigins && keylessFault(raw, localOrigins)
      if (fault !== undefined) throw new KernelError('forbidden', fault)
    })
    scope.setErrorHandler((error, request, reply) => answerError(kernel, error, request, reply))
    scope.setNotFoundHandler((request, reply) => answerError(kernel, unknownPath(request), request, reply))
    const routes = kernel.routes.map((name) => {
      const [method = '', path = ''] = name.split(' ')
      return { name, method, path: path.replace(/\{(\w+)\}/g, ':$1') }
    })
    for (const { name, method, path } of routes) {
      scope.route({
        method,
        url: path,
        handler: async (request, reply) =>
          send(reply, await endBefore(AbortSignal.timeout(timeoutMs), answerTo(kernel, name, prefix, request), late)),
      })
    }
    mountOtherMethods(scope, routes, (request, allow, params) =>
      params.some(isOdd)
        ? unknownPath(request)
        : new KernelError('method_not_allowed', `${request.method} is not a method of this path: use ${allow}`),
    )
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
  if (Object.values(params).some(isOdd)) throw unknownPath(request)
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

/** A path with a part left empty is none of ours, and U+0000 is in no id: PostgreSQL cannot even look for it. */
const isOdd = (param: string): boolean => param === '' || param.includes('\0')

function unknownPath({ originalUrl }: FastifyRequest): KernelError {
  const [path = ''] = originalUrl.split('?', 1)
  return new KernelError('not_found', `${path} is not a path of this server`)
}
