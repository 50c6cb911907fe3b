import type { IncomingMessage } from 'node:http'
import websocket from '@fastify/websocket'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isMap } from '../base/json.ts'
import { header } from '../http/header.ts'
import { logAccess, TOO_LARGE } from '../http/listener.ts'
import { get, post, type Route } from '../http/routes.ts'
import { webSocketUpgrades } from '../http/upgrades.ts'
import { invalidInput, MemoryError, notFound } from '../memory/errors.ts'
import { readClaim } from '../memory/routes/pipeline.ts'
import { Calls } from './calls.ts'
import {
  badFrame,
  ERRORS,
  errorOf,
  FRAME_MAX_BYTES,
  frameTooLarge,
  idOf,
  readFrame,
  RpcError,
  type Params,
  type Response,
} from './frames.ts'
import {
  findHandshake,
  namedRevision,
  requireEnvelope,
  STATELESS_REVISION,
  UNNAMED_REVISION,
  unsupported,
} from './revisions.ts'
import { SessionIds } from './session-id.ts'
import { Session, type Peer, type SessionParts } from './session.ts'

export interface McpHttpSettings {
  multiTenant: boolean
  /** First 8 hex digits of SHA-256 of the key; absent without a key. */
  apiKeyId: string | undefined
}

const PATH = '/mcp'
const KEY = /^[\w+/]{22}==$/
/** Larger messages than a frame may be are refused one by one; only beyond this is the connection given up. */
const MESSAGE_MAX_BYTES = 4 * FRAME_MAX_BYTES

/** The tool server over streamable HTTP, without streams. Contract: memory.md 3.7, 12.1. */
export function mcpRoutes(parts: SessionParts, settings: McpHttpSettings): Route[] {
  const sessions = { ids: new SessionIds(parts.apiKey), running: new Map<string, AbortController>() }
  return [get(PATH, refuseGet), post(PATH, (request, reply) => servePost(parts, settings, sessions, request, reply))]
}

/** Of all clients over HTTP. */
interface Sessions {
  ids: SessionIds
  running: Map<string, AbortController>
}

/** Mounts the tool server over WebSocket. */
export function mountMcpSocket(app: FastifyInstance, parts: SessionParts, settings: McpHttpSettings): void {
  const life: Life = { calls: new Set(), isEnding: false }
  const requestIds = new WeakMap<IncomingMessage, string>()
  // UTF-8 is checked where frames are read: there a bad one ends nothing.
  app.register(websocket, {
    preClose: async () => {
      life.isEnding = true
      await Promise.all(life.calls)
      for (const socket of app.websocketServer.clients) sayGoodbye(socket)
    },
    options: { server: webSocketUpgrades(app.server), maxPayload: MESSAGE_MAX_BYTES, skipUTF8Validation: true },
  })
  // A refused upgrade is no upgrade, but its socket has left the listener, which would wait for it at the end.
  app.addHook('onResponse', async (request) => {
    if (request.headers.upgrade !== undefined) request.raw.socket.destroySoon()
  })
  app.register(async (scope) => {
    scope.websocketServer.on('headers', (headers, raw) => headers.push(`X-Request-ID: ${requestIds.get(raw)}`))
    scope.route({
      method: 'GET',
      url: PATH,
      handler: refuseGet,
      preHandler: async (request) => {
        if (!request.ws) return
        refuseBadHandshake(request)
        peerOf(parts, request, settings)
        requestIds.set(request.raw, request.id)
      },
      wsHandler: (socket, request) => {
        logAccess(request, 101)
        serveSocket(socket, new Session(parts, peerOf(parts, request, settings)), life)
      },
    })
  })
}

/** The guard of the listener has seen the key. Headers name agent and tenant as in REST. @throws as REST. */
function peerOf({ tools }: SessionParts, request: FastifyRequest, { multiTenant, apiKeyId }: McpHttpSettings): Peer {
  const pinned = readClaim(request)
  if (pinned) tools.verify(pinned)
  const userAgent = header(request, 'user-agent')
  return {
    authorized: true,
    pinned,
    tenancy: { multiTenant, tenant: header(request, 'x-mem-workspace') },
    ip: request.ip,
    ...(apiKeyId !== undefined && { apiKeyId }),
    ...(userAgent !== undefined && { userAgent }),
  }
}

/** Clients of streamable HTTP ask for a stream of what the server might say by itself: it never does. */
function refuseGet(request: FastifyRequest, reply: FastifyReply): never {
  if (request.headers.accept?.includes('text/event-stream')) {
    reply.header('Allow', 'GET, POST')
    throw new MemoryError('method_not_allowed', 'there are no streams here: POST each message')
  }
  throw invalidInput('this path is for WebSocket upgrades and for POST')
}

/** What cannot become a WebSocket: the library would hang up on it without an envelope. */
function refuseBadHandshake(request: FastifyRequest): void {
  const isWhole =
    header(request, 'sec-websocket-version') === '13' && KEY.test(header(request, 'sec-websocket-key') ?? '')
  if (!isWhole) throw invalidInput('a WebSocket needs Sec-WebSocket-Version 13 and a Sec-WebSocket-Key of 16 bytes')
}

type Socket = Parameters<NonNullable<Parameters<FastifyInstance['route']>[0]['wsHandler']>>[0]

/** Of all WebSockets: what has begun when the server ends is answered first, as any request. */
interface Life {
  calls: Set<Promise<void>>
  isEnding: boolean
}

const GOING_AWAY = 1001
/** So long a client has to read what was sent to it, and to take its leave. */
const GOODBYE_MS = 5000

/** A client that is silent must not keep the program from ending. */
function sayGoodbye(socket: Socket): void {
  const late = setTimeout(() => socket.terminate(), GOODBYE_MS)
  socket.once('close', () => clearTimeout(late))
  socket.close(GOING_AWAY)
}

function serveSocket(socket: Socket, session: Session, life: Life): void {
  const send = (frame: string): void => {
    if (socket.readyState === socket.OPEN) socket.send(frame)
  }
  const answer = async (bytes: Uint8Array): Promise<void> => {
    const frame = await session.receive(bytes)
    if (frame !== undefined) send(frame)
  }
  socket.on('message', (data, isBinary) => {
    const bytes = Buffer.isBuffer(data) ? data : Buffer.concat(Array.isArray(data) ? data : [Buffer.from(data)])
    if (isBinary) send(errorOf(null, badFrame('a frame must be a text message')).frame)
    else if (!life.isEnding) {
      const call = answer(bytes)
      life.calls.add(call)
      void call.finally(() => life.calls.delete(call))
    }
  })
}

/** One frame, one answer; a handshake gives a session id to send with what follows. */
async function servePost(
  parts: SessionParts,
  settings: McpHttpSettings,
  sessions: Sessions,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const peer = peerOf(parts, request, settings)
  const revision = findHandshake(header(request, 'mcp-protocol-version') ?? UNNAMED_REVISION)
  const session = new Session(parts, {
    ...peer,
    ...readSession(parts, sessions, request),
    ...(revision && { revision }),
    requestId: request.id,
    gone: goneSignal(reply),
  })
  const answer = await answerPost(session, request)
  if (session.isBegun) reply.header('Mcp-Session-Id', sessions.ids.create(session.pinned))
  if (!answer) await reply.code(202).send()
  else await reply.code(answer.status).type('application/json; charset=utf-8').send(answer.frame)
}

/** @throws not_found 404, at which clients begin a new session; agent_verification_failed 401. */
function readSession({ tools }: SessionParts, { ids, running }: Sessions, request: FastifyRequest): Partial<Peer> {
  const id = header(request, 'mcp-session-id')
  if (id === undefined) return {}
  const session = ids.read(id)
  if (!session) throw notFound('session', id)
  const { pinned } = session
  if (pinned) tools.verify(pinned)
  return { calls: new Calls(running, id), ...(pinned && { pinned }) }
}

/** Aborts when the client closes the connection before it has its answer. */
function goneSignal(reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) controller.abort()
  })
  return controller.signal
}

async function answerPost(session: Session, request: FastifyRequest): Promise<Response | undefined> {
  let frame: unknown
  try {
    if (request.body === TOO_LARGE) throw frameTooLarge
    frame = readFrame(Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0))
    checkHeaders(request, frame)
  } catch (error) {
    if (error instanceof RpcError) return errorOf(idOf(frame), error)
    throw error
  }
  return session.answer(frame)
}

/** Headers repeat what the body says, for those who route without reading it; they must agree. @throws RpcError 400. */
function checkHeaders(request: FastifyRequest, frame: unknown): void {
  const named = header(request, 'mcp-protocol-version')
  const { params = {}, method, id }: Params = isMap(frame) ? frame : {}
  if (!isMap(params) || id === undefined) return
  const revision = namedRevision(params)
  if (revision === undefined) {
    if (named === STATELESS_REVISION.id) requireEnvelope(params)
    if (named !== undefined && !findHandshake(named)) throw unsupported(named)
    return
  }
  requireHeader('MCP-Protocol-Version', named, revision)
  requireHeader('Mcp-Method', header(request, 'mcp-method'), method)
  if (method === 'tools/call') requireHeader('Mcp-Name', decoded(header(request, 'mcp-name')), params['name'])
}

function requireHeader(name: string, sent: string | undefined, value: unknown): void {
  if (sent !== value)
    throw new RpcError(ERRORS.headerMismatch, `the header ${name} is not what the body says`, undefined, 400)
}

/** What is no plain ASCII travels as `=?base64?...?=`. */
function decoded(value: string | undefined): string | undefined {
  const [, encoded] = /^=\?base64\?(.*)\?=$/.exec(value ?? '') ?? []
  return encoded === undefined ? value : Buffer.from(encoded, 'base64').toString()
}
