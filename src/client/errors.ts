import { jsonOf } from '../base/json.ts'
import type { ErrorEnvelope } from './types.ts'

/** The server answered with something other than success. Contract: memory.md 13. */
export class MemoryApiError extends Error {
  readonly status: number
  /** The error of memory.md 2.4; absent when the answer is not of that shape (a proxy's page, say). */
  readonly envelope?: ErrorEnvelope
  readonly rawBody: string

  constructor(status: number, rawBody: string) {
    const envelope = parseEnvelope(rawBody)
    super(envelope?.message ?? `HTTP status ${status}`)
    this.name = 'MemoryApiError'
    this.status = status
    this.rawBody = rawBody
    if (envelope) this.envelope = envelope
  }

  /** The Memory moved on since the watermark that the request named. */
  isCasConflict(): boolean {
    return this.status === 412
  }

  isNotFound(): boolean {
    return this.status === 404
  }
}

/** No whole answer within `timeoutMs`; a mutation may or may not have been applied. */
export class MemoryTimeoutError extends Error {
  readonly timeoutMs: number

  constructor(endpoint: string, timeoutMs: number) {
    super(`${endpoint} did not answer within ${timeoutMs / 1000} s`)
    this.name = 'MemoryTimeoutError'
    this.timeoutMs = timeoutMs
  }
}

/**
 * The server could not be reached, went away before its answer was whole (a mutation may or may not have been applied), or
 * what answered does not speak the protocol.
 */
export class MemoryNetworkError extends Error {
  /** The system's code, as `ECONNREFUSED`, where there is one. */
  readonly code?: string

  constructor(message: string, cause: unknown) {
    const { code, reason } = rootOf(cause)
    super(reason ? `${message}: ${reason}` : message, { cause })
    this.name = 'MemoryNetworkError'
    if (code !== undefined) this.code = code
  }
}

/** The request cannot be sent as asked: an address, id or header value that fits no HTTP request. Nothing was sent. */
export class MemoryRequestError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'MemoryRequestError'
  }
}

/** `fetch` hides the reason one or more causes deep; where two addresses were tried, it has a code and no text. */
function rootOf(error: unknown): { code?: string; reason?: string } {
  if (!(error instanceof Error)) return {}
  if (error.cause instanceof Error) return rootOf(error.cause)
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {}
  return { ...code, reason: error.message || (code.code ?? '') }
}

function parseEnvelope(body: string): ErrorEnvelope | undefined {
  const parsed = jsonOf(body)
  return isEnvelope(parsed) ? parsed : undefined
}

const isEnvelope = (value: unknown): value is ErrorEnvelope =>
  typeof value === 'object' &&
  value !== null &&
  'error_code' in value &&
  typeof value.error_code === 'string' &&
  'message' in value &&
  typeof value.message === 'string' &&
  'details' in value &&
  typeof value.details === 'object' &&
  value.details !== null
