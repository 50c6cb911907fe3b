import type { Dispatcher } from '../../outbound/dispatcher.ts'
import { wholeAnswer } from '../../outbound/whole-answer.ts'
import { UpstreamAuthError } from '../upstream.ts'

const PATIENCE_MS = 5000
const MAX_BYTES = 1024 * 1024

export interface FixedCall {
  readonly method?: 'GET' | 'POST' | 'PUT'
  /** Names and values in turn. */
  readonly headers?: readonly string[]
  readonly body?: string
}

export interface FixedAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

/** One of the calls by which credentials are had: to an address that no user wrote, small, soon over. */
export async function fixedCall(
  dispatcher: Dispatcher,
  url: string,
  { method = 'GET', headers = [], body = '' }: FixedCall = {},
): Promise<FixedAnswer> {
  const { origin, pathname, search } = new URL(url)
  const request = { method, origin, path: pathname + search, headers }
  const options = { body: Buffer.from(body), signal: AbortSignal.timeout(PATIENCE_MS), maxBytes: MAX_BYTES }
  const answer = await wholeAnswer(dispatcher, request, options)
  return { status: answer.status, headers: answer.headers, text: answer.body.toString() }
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
