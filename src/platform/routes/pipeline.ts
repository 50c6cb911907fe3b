import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { endBefore } from '../../http/deadline.ts'
import { BodyError, parseJsonObject } from '../../http/json-body.ts'
import type { Caller } from '../caller.ts'
import { invalidRequest, notFound, PlatformError } from '../errors.ts'
import type { Project } from '../model.ts'
import type { Platform } from '../service.ts'
import { credentialOf, refuseForeignOrigin, refuseForeignWrite, unauthorized } from './credentials.ts'
import { StreamedAnswer, type RestRequest, type Route } from './route.ts'

export interface RestSettings {
  timeoutMs: number
  /** Where pages may come from beside this server itself. */
  allowedOrigins: readonly string[]
  /** The public address, where a proxy stands in front. */
  baseUrl: string | undefined
  /** Whether a token is a good one of a service, which says who asks but is no session: 403 instead of 401. */
  isServiceToken?: (token: string) => boolean
}

const BODY_MAX_BYTES = 1024 * 1024

/** Who asks. @throws unauthorized 401, forbidden 403. Contract: git-host.md 2.3 */
export async function authenticate(
  platform: Platform,
  { method, headers, raw }: FastifyRequest,
  needs: Route['needs'] | undefined,
  { allowedOrigins, isServiceToken }: RestSettings,
): Promise<Caller | undefined> {
  if (needs === 'nothing') {
    refuseForeignOrigin(headers, allowedOrigins)
    return undefined
  }
  const { token, fromCookie } = credentialOf(raw)
  const caller = await platform.sessions.find(token)
  if (!caller && isServiceToken?.(token)) {
    const message = 'this needs the session of a person; keys call models, below /rest/v1/llm-gateway/v1'
    throw new PlatformError('forbidden', message)
  }
  if (!caller) throw unauthorized('the session is unknown, expired or ended: log in again')
  if (fromCookie) refuseForeignWrite(method, headers, allowedOrigins)
  return caller
}

/** A 500 of time that is up. */
export const tookTooLong = (): PlatformError =>
  new PlatformError('internal', 'the request took too long', { reason: 'timeout' })

/** Takes an authenticated request through its route: the checks of git-host.md 2.1 in their order, then the service. */
export async function serve(
  platform: Platform,
  settings: RestSettings,
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const answer = await endBefore(
    AbortSignal.timeout(settings.timeoutMs),
    answerTo(platform, settings, route, request, reply),
    tookTooLong,
  )
  // Some answers show a secret, this once.
  reply.header('Cache-Control', 'no-store')
  if (reply.statusCode === 200) reply.code(route.status ?? 200)
  if (route.status === 204) return reply.send()
  if (answer instanceof StreamedAnswer) {
    reply.type(answer.type).header('Content-Disposition', `attachment; filename="${answer.fileName}"`)
    return reply.send(Readable.from(answer.parts, { highWaterMark: 1 }))
  }
  return reply.type('application/json; charset=utf-8').send(JSON.stringify(answer))
}

async function answerTo(
  platform: Platform,
  settings: RestSettings,
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<unknown> {
  const { restCaller: caller } = request
  const id = projectId(route, request)
  const project = caller && id !== undefined ? await platform.projects.require(caller, id) : undefined
  if (caller && route.flag) await platform.flags.require(caller.user.organization_id, route.flag)
  if (caller) refuseWithout(route.needs, caller, project)
  const asked = restRequest(settings, request, reply, caller, project)
  await route.requires?.(asked)
  return route.handle(asked, route.body ? readBody(request, route) : undefined)
}

function projectId({ path }: Route, request: FastifyRequest): number | undefined {
  return path.includes('/:project_id') ? idOf(request, 'project_id', 'project') : undefined
}

/** @throws forbidden 403 */
function refuseWithout(needs: Route['needs'], { user }: Caller, project: Project | undefined): void {
  if (needs === 'nothing' || needs === 'session') return
  const mayDo = needs === 'admin' ? user.role === 'admin' : project?.permissions.includes(needs)
  if (!mayDo) throw new PlatformError('forbidden', `this needs the permission ${needs}`, { permission: needs })
}

function restRequest(
  { baseUrl }: RestSettings,
  request: FastifyRequest,
  reply: FastifyReply,
  caller: Caller | undefined,
  project: Project | undefined,
): RestRequest {
  const required = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error(`${request.url} asks for what it did not declare`)
    return value
  }
  const base = baseUrl === undefined ? undefined : new URL(baseUrl)
  return {
    get caller() {
      return required(caller)
    },
    get project() {
      return required(project)
    },
    get scope() {
      return { organizationId: required(caller).user.organization_id, projectId: required(project).id }
    },
    param: (name) => stringOf(request.params, name) ?? '',
    id: (name, resource) => idOf(request, name, resource),
    query: (name) => stringOf(request.query, name),
    address: request.ip,
    isSecure: request.protocol === 'https' || (base?.protocol === 'https:' && base.host === request.headers.host),
    reply,
  }
}

function idOf(request: FastifyRequest, name: string, resource: string): number {
  const text = stringOf(request.params, name) ?? ''
  if (!/^[1-9]\d{0,14}$/.test(text)) throw notFound(resource, text)
  return Number(text)
}

const stringOf = (source: unknown, name: string): string | undefined => {
  if (typeof source !== 'object' || source === null) return undefined
  const value: unknown = Reflect.get(source, name)
  if (Array.isArray(value)) throw invalidRequest(`${name} is given more than once`, name)
  if (typeof value === 'string' && value.includes('\0'))
    throw invalidRequest(`${name} holds the character U+0000`, name)
  return typeof value === 'string' ? value : undefined
}

function readBody({ body: raw }: FastifyRequest, { mayBeEmpty }: Route): Record<string, unknown> {
  const isBuffer = Buffer.isBuffer(raw)
  // What is no Buffer was larger still: the listener keeps none of it.
  if ((isBuffer && raw.length > BODY_MAX_BYTES) || (!isBuffer && raw !== undefined)) {
    throw new PlatformError('payload_too_large', 'the body is larger than 1 MiB')
  }
  if (mayBeEmpty && (!isBuffer || raw.length === 0)) return {}
  try {
    return parseJsonObject(isBuffer ? raw : Buffer.alloc(0))
  } catch (error) {
    if (error instanceof BodyError) throw invalidRequest(error.message, error.field)
    throw error
  }
}
