import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { FastifyBaseLogger } from 'fastify'
import type { IdSource } from '../base/ids.ts'

const REASONS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: 'the headers are too large',
  ERR_HTTP_REQUEST_TIMEOUT: 'the request did not arrive in time',
}

/**
 * The JSON that says what is wrong with a request, where it is not memory's own (memory.md 2.4).
 * @param path undefined where that could not be read either
 */
export type Unreadable = (message: string, path: string | undefined) => string | undefined

/** Answers what never became a request, by 400, and hangs up. */
export function answerUnreadable(
  error: Error & { code?: string; rawPacket?: unknown },
  socket: Duplex,
  { log, ids, unreadable }: { log: FastifyBaseLogger; ids: IdSource; unreadable?: Unreadable | undefined },
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const requestId = ids('req_')
  log.info({ status: 400, request_id: requestId, reason: error.code }, 'request')
  const message = REASONS[error.code ?? ''] ?? 'this is not an HTTP/1.1 request'
  const body =
    unreadable?.(message, pathIn(error.rawPacket)) ??
    JSON.stringify({ error_code: 'invalid_input', message, details: {} })
  const head = [
    `HTTP/1.1 400 ${STATUS_CODES[400]}`,
    'Connection: close',
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-ID: ${requestId}`,
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
}

const PATH_WITHIN = 1024

/** Of the bytes that could not be read, where the request begins with them. */
function pathIn(bytes: unknown): string | undefined {
  const text = Buffer.isBuffer(bytes) ? bytes.toString('latin1', 0, PATH_WITHIN) : ''
  return /^[A-Z]+ (\/[^ ?\r\n]*)/.exec(text)?.[1]
}
