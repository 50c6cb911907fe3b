import type { FastifyReply, FastifyRequest } from 'fastify'
import { canonicalJson } from '../../base/canonical-json.ts'
import { sha256 } from '../../base/hash.ts'
import { endBefore } from '../../http/deadline.ts'
import { header } from '../../http/header.ts'
import { BodyError, parseJsonObject } from '../../http/json-body.ts'
import { TOO_LARGE } from '../../http/listener.ts'
import type { Caller } from '../caller.ts'
import { invalidInput, MemoryError, notFound } from '../errors.ts'
import { providerOf, verificationFailed, type Claim, type Proof } from '../identity.ts'
import { SYSTEM_AGENT, type Workspace } from '../model.ts'
import { IdempotentReplay } from '../mutation.ts'
import { agentIdSchema } from '../requests.ts'
import type { MemoryService } from '../service.ts'
import { badBody, type Route, type RouteRequest } from './route.ts'

export interface PipelineSettings {
  multiTenant: boolean
  /** First 8 hex digits of SHA-256 of the key; absent without a key. */
  apiKeyId: string | undefined
  timeoutMs: number
}

/** Takes a request through its route: steps 5 to 10 of memory.md 2.1, then the service, then the answer. */
export async function serve(
  service: MemoryService,
  settings: PipelineSettings,
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const deadline = AbortSignal.timeout(settings.timeoutMs)
  try {
    const answer = await beforeDeadline(deadline, answerTo(service, settings, route, request, deadline))
    return send(route, reply, answer)
  } catch (error) {
    if (!(error instanceof IdempotentReplay)) throw error
    reply.header('Idempotent-Replay', 'true')
    return send(route, reply, error.answer)
  }
}

async function answerTo(
  service: MemoryService,
  settings: PipelineSettings,
  route: Route,
  request: FastifyRequest,
  deadline: AbortSignal,
): Promise<unknown> {
  const tenant = settings.multiTenant ? header(request, 'x-mem-workspace') : undefined
  const workspaceId = resolveWorkspace(route, request, settings.multiTenant, tenant)
  const namedAgent = readAgent(route, request)
  const workspace = workspaceId === undefined ? undefined : await service.requireWorkspace(workspaceId)
  if (route.graph) service.requireGraph()
  const caller = callerOf(request, settings, namedAgent, deadline)
  const claim = namedAgent === undefined ? undefined : claimOf(request, namedAgent)
  if (claim && workspace) await service.agents.admit(caller, workspace.id, claim)
  else if (claim) service.agents.verify(claim)
  const body = route.body ? readBody(request) : undefined
  const idempotent = route.idempotent ? withIdempotency(caller, request, body) : caller
  await service.mutations.refuseRepeat(idempotent, workspaceId ?? '')
  return route.handle(routeRequest(request, idempotent, workspace, claim, tenant), body)
}

function routeRequest(
  request: FastifyRequest,
  caller: Caller,
  workspace: Workspace | undefined,
  claim: Claim | undefined,
  tenant: string | undefined,
): RouteRequest {
  return {
    caller,
    get workspace() {
      if (!workspace) throw new Error(`${request.url} is not inside a workspace`)
      return workspace
    },
    param: (name) => stringOf(request.params, name) ?? '',
    query: (name) => stringOf(request.query, name),
    get ifMatch() {
      return readIfMatch(request)
    },
    claim,
    tenant,
  }
}

const stringOf = (source: unknown, name: string): string | undefined => {
  if (typeof source !== 'object' || source === null) return undefined
  const value: unknown = Reflect.get(source, name)
  if (Array.isArray(value)) throw invalidInput(`${name} is given more than once`, name)
  if (typeof value === 'string' && value.includes('\0')) throw invalidInput(`${name} holds the character U+0000`, name)
  return typeof value === 'string' ? value : undefined
}

/** The workspace of the path; in multi-tenant mode that of the header, and the path must agree. */
function resolveWorkspace(
  route: Route,
  request: FastifyRequest,
  multiTenant: boolean,
  tenant: string | undefined,
): string | undefined {
  if (!route.path.startsWith('/workspaces/:ws')) return undefined
  const named = stringOf(request.params, 'ws') ?? ''
  if (!multiTenant) return named
  if (tenant === undefined) throw invalidInput('the header X-Mem-Workspace is required', 'X-Mem-Workspace')
  if (named !== '-' && named !== tenant) throw notFound('workspace', named)
  return tenant
}

/** Who the headers say writes, not yet verified. @throws invalid_input 400, agent_verification_failed 401. */
export function readClaim(request: FastifyRequest): Claim | undefined {
  const agentId = readAgent({ agent: 'optional' }, request)
  return agentId === undefined ? undefined : claimOf(request, agentId)
}

function readAgent(route: Pick<Route, 'agent'>, request: FastifyRequest): string | undefined {
  if (route.agent === undefined) return undefined
  const agent = header(request, 'mem-agent-id')
  if (agent === undefined || agent === '') {
    if (route.agent === 'optional') return undefined
    throw new MemoryError('missing_agent_id', 'the header Mem-Agent-Id is required: it names the writing agent')
  }
  // Headers come as Latin-1; an id beyond ASCII was sent as UTF-8 bytes.
  const id = Buffer.from(agent, 'latin1').toString('utf8')
  if (!agentIdSchema.safeParse(id).success) {
    throw invalidInput('Mem-Agent-Id must be 1 to 200 printable characters', 'Mem-Agent-Id')
  }
  return id
}

const claimOf = (request: FastifyRequest, agentId: string): Claim => ({
  agentId,
  provider: header(request, 'mem-identity-provider'),
  proof: readProof(request),
})

function readProof(request: FastifyRequest): Proof | undefined {
  const encoded = header(request, 'mem-identity-proof')
  if (encoded === undefined) return undefined
  try {
    return parseJsonObject(fromBase64Url(encoded))
  } catch (error) {
    if (!(error instanceof BodyError)) throw error
    const provider = providerOf(header(request, 'mem-identity-provider'))
    throw verificationFailed(provider, 'Mem-Identity-Proof is not base64url of a JSON object')
  }
}

/** @throws BodyError; Node would skip what is no base64url. */
function fromBase64Url(text: string): Buffer {
  if (!/^[\w-]+={0,2}$/.test(text)) throw new BodyError('not base64url')
  return Buffer.from(text, 'base64url')
}

/** Raw, quoted or `W/`-quoted. @throws invalid_input 400 when empty or `*`. */
function readIfMatch(request: FastifyRequest): string | undefined {
  const sent = header(request, 'if-match')
  if (sent === undefined) return undefined
  const watermark = sent.trim().replace(/^(?:W\/)?"(.*)"$/, '$1')
  if (watermark === '' || watermark === '*') {
    throw invalidInput('If-Match must be a watermark, raw or quoted', 'If-Match')
  }
  return watermark
}

function callerOf(
  request: FastifyRequest,
  settings: PipelineSettings,
  namedAgent: string | undefined,
  signal: AbortSignal,
): Caller {
  const userAgent = header(request, 'user-agent')
  return {
    requestId: request.id,
    startedAt: request.startedAt,
    agentId: namedAgent ?? SYSTEM_AGENT,
    ...(settings.apiKeyId !== undefined && { apiKeyId: settings.apiKeyId }),
    ip: request.ip,
    ...(userAgent !== undefined && { userAgent }),
    signal,
  }
}

function readBody(request: FastifyRequest): Record<string, unknown> {
  const raw = request.body
  if (raw === TOO_LARGE) throw invalidInput('the body is larger than 8 MiB')
  try {
    return parseJsonObject(Buffer.isBuffer(raw) ? raw : Buffer.alloc(0))
  } catch (error) {
    if (error instanceof BodyError) throw badBody(error)
    throw error
  }
}

function withIdempotency(caller: Caller, request: FastifyRequest, body: unknown): Caller {
  const key = header(request, 'idempotency-key')
  if (key === undefined) return caller
  if (key === '' || key.length > 200) {
    throw invalidInput('Idempotency-Key must be 1 to 200 characters', 'Idempotency-Key')
  }
  const path = request.url.split('?', 1)[0] ?? ''
  return {
    ...caller,
    idempotency: { key, route: `${request.method} ${path}`, bodyHash: sha256(canonicalJson(body)) },
  }
}

/** The work goes on when time is up, but its transaction begins no more: a mutation is applied wholly or not at all. */
export async function beforeDeadline<T>(deadline: AbortSignal, work: Promise<T>): Promise<T> {
  const late = (): MemoryError =>
    new MemoryError('internal_error', 'the request took too long and was given up', { reason: 'timeout' })
  return endBefore(deadline, work, late)
}

function send(route: Route, reply: FastifyReply, answer: unknown): FastifyReply {
  if (route.etag && typeof answer === 'object' && answer !== null) {
    const watermark: unknown = Reflect.get(answer, route.etag)
    if (typeof watermark === 'string') reply.header('ETag', `"${watermark}"`)
  }
  reply.code(route.status ?? 200)
  if (route.status === 204) return reply.send()
  return reply.type('application/json; charset=utf-8').send(textOf(answer))
}

/** @throws invalid_input 400 for more than a string holds: what was asked for fits in several answers. */
function textOf(answer: unknown): string {
  try {
    return JSON.stringify(answer)
  } catch (error) {
    if (error instanceof RangeError) throw invalidInput('the answer would be larger than 512 MiB: ask for less at once')
    throw error
  }
}
