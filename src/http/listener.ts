import {
  createServer,
  IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
} from 'node:http'
import { createServer as createSecureServer, type ServerOptions as SecureOptions } from 'node:https'
import { Readable } from 'node:stream'
import type { Socket } from 'node:net'
import Fastify, { LogController, type FastifyBaseLogger, type FastifyInstance, type FastifyRequest } from 'fastify'
import type { IdSource } from '../base/ids.ts'
import { compressAnswers } from './compress.ts'
import { corsHeaders } from './cors.ts'
import { traceRequests } from './trace.ts'
import { answerUnreadable, type Unreadable } from './unreadable.ts'
import { requestIdOf } from './request-id.ts'

export interface ListenerOptions {
  log: FastifyBaseLogger
  ids: IdSource
  /** A request runs no longer (ms). */
  timeoutMs: number
  /** Empty: no CORS headers at all. */
  allowedOrigins: readonly string[]
  /** PEM certificate chain and key: serves HTTPS. */
  tls?: { cert: string; key: string } | undefined
  front?: Front | undefined
  unreadable?: Unreadable | undefined
}

/** Who takes some requests before the framework sees them: where each microsecond of a request counts. */
export interface Front {
  handles(url: string): boolean
  handle: RequestListener
  /** How long a request of its own may take to arrive (ms). */
  readonly arrivalMs: number
  /** The JSON that says what is wrong with a request below its paths. */
  unreadable(message: string, path: string, requestId: string): string
}

/** Larger bodies are refused by whoever reads them. Contract: memory.md 2.3. */
export const BODY_MAX_BYTES = 8 * 1024 * 1024
const HEADERS_TIMEOUT_MS = 10_000
/** Node looks only every 30 s which requests are too slow. */
const CHECK_MS = 1000
/** Longer than proxies in front keep theirs. */
const KEEP_ALIVE_MS = 72_000
/** An identity proof may hold a whole system prompt. */
const HEADERS_MAX_BYTES = 64 * 1024

/** Stands for a body of too many bytes; every other body is a Buffer. */
export const TOO_LARGE = Symbol('body too large')

declare module 'fastify' {
  interface FastifyRequest {
    /** Monotonic ms at which the request began. */
    startedAt: number
  }
}

/**
 * The one listener that all services mount their routes on: request ids, access log, CORS, raw bodies, compression, limits
 * of time.
 * Guards, errors and the reading of bodies belong to the services.
 */
export function createListener(options: ListenerOptions): FastifyInstance {
  const unreadable: Unreadable = (message, path, id) =>
    path !== undefined && options.front?.handles(path)
      ? options.front.unreadable(message, path, id)
      : options.unreadable?.(message, path, id)
  const app = Fastify({
    loggerInstance: options.log,
    // Services read bodies by schemas of their own: the framework's compilers would only be loaded for nothing.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: (request) => requestIdOf(request.headers, options.ids),
    // `%40` and `%3A` equal `@` and `:` before routes are matched.
    rewriteUrl: (request) => decodeMarks(withoutOrigin(request.url ?? '/')),
    clientErrorHandler: (error, socket) => answerUnreadable(error, socket, { ...options, unreadable }),
    forceCloseConnections: 'idle',
    ...schemeOf(options),
    serverFactory: (handler) => createHttpServer(options, handler),
    return503OnClosing: false,
    exposeHeadRoutes: true,
  })
  app.decorateRequest('startedAt', 0)
  app.addHook('onRequest', async (request, reply) => {
    request.startedAt = performance.now()
    // Comes once for every request, also when the client has gone before the answer (499).
    reply.raw.once('close', () => {
      const isUpgraded = reply.sent && !reply.raw.headersSent
      if (!isUpgraded) logAccess(request, reply.raw.headersSent ? reply.raw.statusCode : 499)
    })
    reply.header('X-Request-ID', request.id)
    if (options.allowedOrigins.length > 0) {
      reply.headers(corsHeaders(request.raw, options.allowedOrigins, isInFront(request.raw, options)))
      if (request.method === 'OPTIONS') await reply.code(204).send()
    }
  })
  traceRequests(app)
  compressAnswers(app)
  app.addHook('onSend', (request, _reply, payload, done) => {
    const isUnread = request.method === 'HEAD' && payload instanceof Readable
    if (isUnread) payload.destroy()
    done(null, isUnread ? null : payload)
  })
  closeUnused(app, options.tls ? 'secureConnection' : 'connection')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, payload, done) => collect(payload, done))
  return app
}

/** What stays open for a client's next request must not keep the process, be it busy now or still without its first one. */
function closeUnused(app: FastifyInstance, opened: 'connection' | 'secureConnection'): void {
  const { server } = app
  const sockets = new Set<Socket>()
  server.on(opened, (socket: Socket) => {
    if (sockets.has(socket)) return // read again behind an upgrade that was not taken
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  app.addHook('preClose', async () => {
    server.keepAliveTimeout = 1
    // Node takes a connection that has sent nothing for one in the middle of a request.
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
  })
}

function noSchemas(): never {
  throw new Error('routes of this listener have no schemas')
}

/** For what the framework says of where it listens: the server itself is made below. */
const schemeOf = ({ tls }: ListenerOptions): { http: ServerOptions } | { https: SecureOptions } =>
  tls ? { https: tls } : { http: {} }

const isInFront = ({ url = '/' }: IncomingMessage, { front }: ListenerOptions): boolean => front?.handles(url) === true

/**
 * A request whose headers are a table of names from the start, which Node fills as it does an object of its own. In that, the
 * names that a client sends and their order make another hidden class, and for each of the first ones the engine throws away
 * what it has compiled of all that reads headers.
 */
class TabledRequest extends IncomingMessage {
  constructor(socket: Socket) {
    super(socket)
    this.headers = Object.create(null)
  }
}

function createHttpServer(options: ListenerOptions, handler: RequestListener): Server {
  const { tls, timeoutMs, front, allowedOrigins } = options
  const limits: ServerOptions = {
    headersTimeout: HEADERS_TIMEOUT_MS,
    connectionsCheckingInterval: CHECK_MS,
    requestTimeout: Math.max(timeoutMs, front?.arrivalMs ?? 0) + HEADERS_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: HEADERS_MAX_BYTES,
    // Node's own refusal has no envelope; the guards look at Host where it matters.
    requireHostHeader: false,
    IncomingMessage: TabledRequest,
  }
  const listener: RequestListener = (request, response) => {
    if (request.socket.writableEnded) return // it was refused before the last of it came
    request.url = withoutOrigin(request.url ?? '/')
    const isBrowsed = allowedOrigins.length > 0
    // The framework answers what a browser asks before it lets a page ask.
    if (!front || !isInFront(request, options) || (isBrowsed && request.method === 'OPTIONS')) {
      if (front) limitArrival(request, response, options)
      handler(request, response)
    } else {
      if (isBrowsed) response.setHeaders(new Map(Object.entries(corsHeaders(request, allowedOrigins, true))))
      front.handle(request, response)
    }
  }
  const server = tls ? createSecureServer({ ...limits, ...tls }, listener) : createServer(limits, listener)
  // What a client expects beyond `100-continue` nobody has to meet, and Node's own refusal has no envelope.
  return server.on('checkExpectation', listener)
}

/** Node's own limit is that of the whole server: with a front, the framework's requests need a shorter one. */
function limitArrival(request: IncomingMessage, response: ServerResponse, options: ListenerOptions): void {
  const { headers, socket } = request
  if (headers['transfer-encoding'] === undefined && (headers['content-length'] ?? '0') === '0') return
  const late = Object.assign(new Error('the body came too slowly'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
  const end = (): void => void (response.headersSent ? socket.destroy() : answerUnreadable(late, socket, options))
  const timer = setTimeout(end, options.timeoutMs)
  const stop = (): void => clearTimeout(timer)
  request.once('end', stop).once('close', stop)
}

/** A client may name the whole address, as it would to a proxy. */
const withoutOrigin = (url: string): string =>
  url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?]*(?=\/)/i, '')

function decodeMarks(url: string): string {
  const end = url.indexOf('?')
  const path = end < 0 ? url : url.slice(0, end)
  if (!path.includes('%')) return url
  // What decodes to nothing is an unknown path like any other, as U+0000 makes it, and passes the same guards.
  const decodable = isDecodable(path) ? path : path.replaceAll('%', '%00')
  return decodable.replace(/%40/g, '@').replace(/%3a/gi, ':') + (end < 0 ? '' : url.slice(end))
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}

/** Every request leaves this line; who upgrades a connection writes it. Contract: memory.md 2.1. */
export function logAccess(request: FastifyRequest, status: number): void {
  const path = request.originalUrl.split('?', 1)[0] ?? ''
  const duration = Math.round((performance.now() - request.startedAt) * 1000) / 1000
  const line = { method: request.method, path, status, duration_ms: duration, request_id: request.id }
  request.server.log.info(line, 'request')
}

/** Reads a body whole, or says that it is too large without keeping it. */
function collect(
  payload: IncomingMessage,
  done: (error: Error | null, body?: Buffer | typeof TOO_LARGE) => void,
): void {
  const chunks: Buffer[] = []
  let size = 0
  payload.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size <= BODY_MAX_BYTES) chunks.push(chunk)
    else chunks.length = 0
  })
  payload.on('end', () => done(null, size > BODY_MAX_BYTES ? TOO_LARGE : Buffer.concat(chunks)))
  // The client has gone: nobody is left to answer.
  payload.on('error', () => undefined)
}
