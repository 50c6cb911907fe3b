import { errorText } from '../../base/errors.ts'
import { GatewayError } from '../errors.ts'
import type { TestMode } from './test.ts'
import { UpstreamAuthError } from './upstream.ts'

/** What a test found wrong, for people and for programs. */
export interface TestError {
  readonly code: string
  readonly message: string
}

/** What an answer says of the credential; undefined when it is good. */
export function errorOfStatus(status: number, body: unknown, mode: TestMode): TestError | undefined {
  const isJson = typeof body === 'object' && body !== null
  if (status >= 200 && status < 300) {
    return isJson ? undefined : { code: 'upstream_invalid_response', message: 'the provider answers with no JSON' }
  }
  const reason = reasonIn(body)
  const message =
    reason === undefined ? `the provider answered ${status}` : `the provider answered ${status}: ${reason}`
  return { code: codeOf(status, mode, reason), message }
}

/** What stopped a call. */
export function errorOfThrown(error: unknown): TestError {
  const message = errorText(error)
  if (error instanceof UpstreamAuthError) return { code: 'upstream_credentials_rejected', message }
  if (error instanceof GatewayError) return { code: error.code, message }
  if (error instanceof Error && error.name === 'TimeoutError') {
    return { code: 'upstream_timeout', message: 'the provider did not answer in time' }
  }
  return { code: 'unreachable', message: `the provider cannot be reached: ${reasonOf(error)}` }
}

/** Several addresses tried in vain tell their reasons one by one; the text of a TLS error is for whoever builds OpenSSL. */
function reasonOf(error: unknown): string {
  if (error instanceof Error && 'library' in error && 'reason' in error) return `TLS fails, ${String(error.reason)}`
  const reasons = error instanceof AggregateError ? error.errors.map(reasonOf).join('; ') : ''
  return errorText(error) || reasons || 'no reason given'
}

function codeOf(status: number, mode: TestMode, reason = ''): string {
  if (status === 401 || status === 402 || status === 403) return 'upstream_credentials_rejected'
  if (status === 429 || status === 529) return 'upstream_rate_limited'
  if (status === 404 || status === 405) return mode === 'auth' ? 'upstream_error' : 'model_not_found'
  // Some say with a 400 what others have a status for: Gemini of keys, Bedrock of models.
  if (status === 400 && /API key (?:not valid|expired)/i.test(reason)) return 'upstream_credentials_rejected'
  if (status === 400 && /model identifier is invalid/i.test(reason)) return 'model_not_found'
  return 'upstream_error'
}

/** `{error: {message}}`, `{error: "…"}`, `{message}`, `[{error: {message}}]`: as the providers tell errors. */
function reasonIn(body: unknown): string | undefined {
  if (Array.isArray(body)) return reasonIn(body[0])
  const { error, message, Message }: { error?: unknown; message?: unknown; Message?: unknown } = Object(body)
  if (typeof error === 'object' && error !== null) return reasonIn(error)
  return [error, message, Message].find((text) => typeof text === 'string')
}
