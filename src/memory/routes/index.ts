import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { CodedError } from '../../base/errors.ts'
import { secretEquals } from '../../base/hash.ts'
import { healthRoutes } from '../../http/health.ts'
import { keylessFault } from '../../http/origin.ts'
import { get, mountRoutes, type Route as Mounted } from '../../http/routes.ts'
import { invalidInput, MEMORY_ERRORS, MemoryError } from '../errors.ts'
import type { MemoryService } from '../service.ts'
import { graphRoutes } from './graph.ts'
import { ledgerRoutes } from './ledger.ts'
import { memoryRoutes } from './memories.ts'
import { openApiDocument } from './openapi.ts'
import { serve, type PipelineSettings } from './pipeline.ts'
import { recallRoutes } from './recall.ts'
import type { Route } from './route.ts'
import { workspaceRoutes } from './workspaces.ts'

export interface MemoryHttpSettings extends PipelineSettings {
  apiKey: string | undefined
  /** Without a key and bound to loopback: a foreign Host or Origin is refused. */
  guardLoopback: boolean
  allowedOrigins: readonly string[]
}

/** Prefixes whose services have guards of their own. */
const FOREIGN = /^\/(?:ui|api\/v1|rest\/v1|metrics\/ai-gateway)(?:\/|$|\?)/

/** Every route below `/v1` that the API document tells of. */
export const apiRoutes = (service: MemoryService): Route[] => [
  ...workspaceRoutes(service),
  ...memoryRoutes(service),
  ...graphRoutes(service),
  ...recallRoutes(service),
  ...ledgerRoutes(service),
]

/** Mounts the memory service, and `others` behind its guard: routes, errors, and the answers for what is no route. */
export function mountMemory(
  app: FastifyInstance,
  service: MemoryService,
  settings: MemoryHttpSettings,
  others: readonly Mounted[] = [],
): void {
  app.setErrorHandler(answerError)
  const routes = apiRoutes(service)
  const mounted = routes.map((route): Mounted => ({
    method: route.method,
    path: `/v1${route.path}`,
    handle: (request, reply) => serve(service, settings, route, request, reply),
  }))
  const health = healthRoutes(() => service.health.readiness())
  mountRoutes(app, [...mounted, ...health, documentRoute(routes), ...others], { refusal })
  // Behind the finding of the route, under which the refused are counted too.
  app.addHook('onRequest', async (request) => {
    if (!FOREIGN.test(request.url)) guard(request, settings)
  })
}

/** Made when it is first asked for: that takes some milliseconds. */
function documentRoute(routes: readonly Route[]): Mounted {
  let document: string | undefined
  return get('/v1/openapi.json', async (_request, reply) => {
    document ??= JSON.stringify(openApiDocument(routes))
    return reply.type('application/json; charset=utf-8').send(document)
  })
}

/** `/metrics` of the whole program. `render` gives the text of a scrape. */
export const metricsRoute = (render: () => Promise<string>): Mounted =>
  get('/metrics', async (_request, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(await render()),
  )

/** @throws unauthorized 401. Contract: memory.md 2.2, 2.7. */
function guard(request: FastifyRequest, settings: MemoryHttpSettings): void {
  const { apiKey } = settings
  if (apiKey === undefined) {
    const fault = settings.guardLoopback ? keylessFault(request.raw, settings.allowedOrigins) : undefined
    if (fault !== undefined) throw new MemoryError('unauthorized', fault)
    return
  }
  const sent = request.headers.authorization
  if (sent === undefined) throw new MemoryError('unauthorized', 'the header Authorization: Bearer <key> is required')
  const [, token] = /^Bearer +(\S+) *$/i.exec(sent) ?? []
  if (token === undefined || !secretEquals(token, apiKey)) {
    throw new MemoryError('unauthorized', 'the API key is not valid')
  }
}

function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const known = toMemoryError(error)
  if (MEMORY_ERRORS[known.code] >= 500 && known !== error) {
    request.log.error({ err: error, request_id: request.id }, 'a request failed')
  }
  reply
    .code(MEMORY_ERRORS[known.code])
    .type('application/json; charset=utf-8')
    .send(JSON.stringify({ error_code: known.code, message: known.message, details: known.details }))
}

/** A refusal of ours, one of the framework's (bad request line, bad length), or a fault whose text never leaves. */
function toMemoryError(error: unknown): MemoryError {
  if (error instanceof MemoryError) return error
  if (error instanceof CodedError) return new MemoryError('internal_error', 'the server met a fault')
  if (error instanceof Error && isFrameworkRefusal(error)) return refusalOf(error)
  return new MemoryError('internal_error', 'the server met a fault; it is in the log under this request id')
}

const refusalOf = (error: Error & { code?: unknown }): MemoryError =>
  error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE'
    ? invalidInput('the header Content-Type names no media type: send application/json', 'Content-Type')
    : new MemoryError('invalid_input', error.message)

const isFrameworkRefusal = (error: Error & { code?: unknown; statusCode?: unknown }): boolean =>
  String(error.code).startsWith('FST_') && typeof error.statusCode === 'number' && error.statusCode < 500

function refusal(request: FastifyRequest, allow: string | undefined): MemoryError {
  if (allow !== undefined) {
    return new MemoryError('method_not_allowed', `${request.method} is not a method of this path: use ${allow}`)
  }
  const [path = ''] = request.originalUrl.split('?', 1)
  return new MemoryError('not_found', `${path} is not a path of this server`, { resource: 'path', id: path })
}
