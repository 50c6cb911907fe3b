import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../errors.ts'

/** The client went before its body was whole. */
export class GoneError extends Error {
  override readonly name = 'GoneError'
}

/**
 * Reads the body of a request. One that says it is too large is refused unread, another as soon as it is.
 * @param done gets the body, GatewayError 413 `request_too_large`, or GoneError; once
 */
export function readBody(request: IncomingMessage, maxBytes: number, done: (body: Buffer | Error) => void): void {
  const tooLarge = (): GatewayError =>
    new GatewayError('request_too_large', `the body is larger than ${maxBytes} bytes, the most that is taken`)
  // Who went while it was found out who it is: nothing more comes of it.
  if (request.destroyed) return done(new GoneError())
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) return done(tooLarge())
  let chunks: Buffer[] | undefined = []
  let size = 0
  const finish = (body: Buffer | Error): void => {
    chunks = undefined
    done(body)
  }
  request.on('data', (chunk: Buffer) => {
    size += chunk.length
    chunks?.push(chunk)
    if (chunks && size > maxBytes) finish(tooLarge())
  })
  request.on('end', () => {
    const first = chunks?.[0]
    if (chunks) finish(first && chunks.length === 1 ? first : Buffer.concat(chunks))
  })
  // It comes without an error too, which is told only to who listens for it.
  request.on('close', () => {
    if (chunks) finish(new GoneError())
  })
}
