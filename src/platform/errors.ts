import { CodedError } from '../base/errors.ts'

type Details = Record<string, unknown>
type Headers = Readonly<Record<string, string>>

/**
 * A refusal under `/rest/v1`, with its status and what its answer's head says. The platform and each service that stands
 * on it have a table of their own from codes to statuses, and a class that looks there.
 */
export class RestError<Code extends string = string> extends CodedError<Code> {
  readonly status: number
  readonly headers: Headers

  constructor(status: number, code: Code, message: string, details: Details = {}, headers: Headers = {}) {
    super(code, message, details)
    this.status = status
    this.headers = headers
  }
}

/** The codes that every service under `/rest/v1` answers with. Contract: git-host.md 2.6. */
export const PLATFORM_ERRORS = {
  invalid_request: 400,
  unauthorized: 401,
  forbidden: 403,
  feature_disabled: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  provider_conflict: 409,
  payload_too_large: 413,
  rate_limited: 429,
  internal: 500,
  not_initialized: 503,
} as const

export type PlatformErrorCode = keyof typeof PLATFORM_ERRORS

/** A refusal of the platform; `details` as listed beside the code in git-host.md 2.6. */
export class PlatformError extends RestError<PlatformErrorCode> {
  constructor(code: PlatformErrorCode, message: string, details?: Details, headers?: Headers) {
    super(PLATFORM_ERRORS[code], code, message, details, headers)
  }
}

/** A 400 that names the field at fault. */
export const invalidRequest = (message: string, field?: string): PlatformError =>
  new PlatformError('invalid_request', message, field === undefined ? {} : { field })

/** A 404 that names what is absent. */
export const notFound = (resource: string, id: string | number): PlatformError =>
  new PlatformError('not_found', `${resource} ${id} does not exist`, { resource, id })

/** A 409; `reason` is for programs. */
export const conflict = (reason: string, message: string): PlatformError =>
  new PlatformError('conflict', message, { reason })

/** A 429 that says when to come again. */
export const rateLimited = (message: string, waitMs: number): PlatformError =>
  new PlatformError('rate_limited', message, {}, { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1000))) })
