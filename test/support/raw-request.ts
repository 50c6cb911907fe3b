import { once } from 'node:events'
import { request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http'
import { text } from 'node:stream/consumers'
import { expect } from 'vitest'

export interface RawReply {
  /** Method and URL, to tell a failure by. */
  asked: string
  status: number
  headers: IncomingHttpHeaders
  text: string
}

interface RawRequest {
  method?: string
  headers?: OutgoingHttpHeaders
  body?: Uint8Array | string
}

/** A request as no HTTP client would send it: any method, any Host; its body is chunked when the headers say so. */
export async function send(url: string, { method = 'GET', headers = {}, body }: RawRequest = {}): Promise<RawReply> {
  const isChunked = Object.hasOwn(headers, 'Transfer-Encoding')
  const length = body === undefined || isChunked ? {} : { 'Content-Length': Buffer.byteLength(body) }
  const request = httpRequest(url, { method, headers: { ...length, ...headers }, agent: false })
  const answered = once(request, 'response')
  request.end(body)
  const [response] = await answered
  return {
    asked: `${method} ${url}`,
    status: response.statusCode,
    headers: response.headers,
    text: await text(response),
  }
}

/** Expects an error as memory.md 2.4 has it, and gives its details. */
export function expectEnvelope(
  { status: given, text: body, asked }: { status: number; text: string; asked?: string },
  status: number,
  code: string,
): Record<string, unknown> {
  expect({ asked, status: given, body }).toEqual({ asked, status, body })
  const envelope: { details: Record<string, unknown> } = JSON.parse(body)
  expect(envelope).toEqual({ error_code: code, message: expect.stringMatching(/./), details: expect.any(Object) })
  expect(Array.isArray(envelope.details)).toBe(false)
  return envelope.details
}
