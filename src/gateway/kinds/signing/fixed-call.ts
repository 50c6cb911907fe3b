import type { Dispatcher } from 'undici'
import { UpstreamAuthError } from '../upstream.ts'

const PATIENCE_MS = 5000
const MAX_BYTES = 1024 * 1024

export interface FixedCall {
  readonly method?: 'GET' | 'POST' | 'PUT'
  readonly headers?: Record<string, string> | string[]
  readonly body?: string
}

export interface FixedAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

/** One of the calls by which credentials are had: to an address that no user wrote, small, soon over. */
export async function fixedCall(dispatcher: Dispatcher, url: string, call: FixedCall = {}): Promise<FixedAnswer> {
  const signal = AbortSignal.timeout(PATIENCE_MS)
  const { origin, pathname, search } = new URL(url)
  const target = { origin, path: pathname + search, method: call.method ?? 'GET' }
  const { statusCode: status, headers, body } = await dispatcher.request({ ...call, ...target, signal })
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    if (!Buffer.isBuffer(chunk)) continue
    size += chunk.length
    if (size > MAX_BYTES) throw new Error(`${origin} answers more than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return { status, headers, text: Buffer.concat(chunks).toString() }
}

/**
 * A refusal of such a call: of the credential where the other side is sure of it, else trouble that may pass.
 * @param reason as the other side told it
 */
export function refusal(what: string, status: number, reason: string | undefined): Error {
  const message = `${what} answered ${status}${reason === undefined ? '' : `: ${reason.slice(0, 300)}`}`
  const mayPass = status >= 500 || status === 429 || status === 408
  return mayPass ? new Error(message) : new UpstreamAuthError(message)
}
