import { ServerResponse, STATUS_CODES } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyBaseLogger } from 'fastify'
import type { IdSource } from '../base/ids.ts'

/** Hanging up at once would reset the connection of a client that still sends, before it sees the answer. */
const LINGER_MS = 1000

const REASONS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: 'the headers are too large',
  ERR_HTTP_REQUEST_TIMEOUT: 'the request did not arrive in time',
}

/**
 * The JSON that says what is wrong with a request, where it is not memory's own (memory.md 2.4).
 * @param path undefined where that could not be read either
 */
export type Unreadable = (message: string, path: string | undefined, requestId: string) => string | undefined

/** Answers what never became a whole request, by 400, and hangs up; inside of an answer nothing more can be said. */
export function answerUnreadable(
  error: Error & { code?: string; rawPacket?: unknown },
  socket: Duplex,
  { log, ids, unreadable }: { log: FastifyBaseLogger; ids: IdSource; unreadable?: Unreadable | undefined },
): void {
  if (socket.writableEnded) return // what still comes is an error again
  const answer = answerOn(socket)
  if (error.code === 'ECONNRESET' || !socket.writable || answer?.headersSent || isUnused(socket)) {
    socket.destroy()
    return
  }
  const requestId = ids('req_')
  log.info({ status: 400, request_id: requestId, reason: error.code }, 'request')
  const message = REASONS[error.code ?? ''] ?? 'this is not an HTTP/1.1 request'
  const body =
    unreadable?.(message, answer?.req.url?.split('?', 1)[0] ?? pathIn(error.rawPacket), requestId) ??
    JSON.stringify({ error_code: 'invalid_input', message, details: {} })
  const head = [
    `HTTP/1.1 400 ${STATUS_CODES[400]}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-ID: ${requestId}`,
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}

/** A client takes what it is told on such a connection for the answer to the request that it is just about to send. */
const isUnused = (socket: Duplex): boolean => socket instanceof Socket && socket.bytesRead === 0

/** The answer that a connection is at: its request has come as far as its head. Node itself looks here. */
export function answerOn(socket: Duplex): ServerResponse | undefined {
  const answer: unknown = Reflect.get(socket, '_httpMessage')
  return answer instanceof ServerResponse ? answer : undefined
}

const PATH_WITHIN = 1024

/** Of the bytes that could not be read, where the request begins with them. */
function pathIn(bytes: unknown): string | undefined {
  const text = Buffer.isBuffer(bytes) ? bytes.toString('latin1', 0, PATH_WITHIN) : ''
  return /^\s*[A-Za-z]+ (?:https?:\/\/[^/ ]*)?(\/[^ ?\r\n]*)/.exec(text)?.[1]
}
