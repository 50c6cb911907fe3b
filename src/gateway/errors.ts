import { CodedError } from '../base/errors.ts'

/** What inference routes refuse with, by code: status, and type in either envelope. Contract: gateway.md 3.4. */
const ERRORS = {
  invalid_json: [400, 'invalid_request_error'],
  missing_required_parameter: [400, 'invalid_request_error'],
  invalid_value: [400, 'invalid_request_error'],
  unsupported_parameter: [400, 'invalid_request_error'],
  unsupported_content: [400, 'invalid_request_error'],
  context_length_exceeded: [400, 'invalid_request_error'],
  content_filter: [400, 'invalid_request_error'],
  invalid_api_key: [401, 'authentication_error'],
  model_not_allowed: [403, 'permission_error'],
  model_blocked: [403, 'permission_error'],
  credential_not_allowed: [403, 'permission_error'],
  price_unknown: [403, 'permission_error'],
  origin_refused: [403, 'permission_error'],
  model_not_found: [404, 'invalid_request_error', 'not_found_error'],
  unknown_url: [404, 'invalid_request_error', 'not_found_error'],
  method_not_allowed: [405, 'invalid_request_error', 'not_found_error'],
  request_too_large: [413, 'invalid_request_error', 'request_too_large'],
  rate_limit_exceeded: [429, 'rate_limit_error'],
  concurrency_exceeded: [429, 'rate_limit_error'],
  upstream_rate_limited: [429, 'rate_limit_error'],
  budget_exceeded: [429, 'insufficient_quota', 'rate_limit_error'],
  internal_error: [500, 'server_error', 'api_error'],
  upstream_error: [502, 'server_error', 'api_error'],
  upstream_invalid_response: [502, 'server_error', 'api_error'],
  upstream_truncated: [502, 'server_error', 'api_error'],
  upstream_credentials_rejected: [502, 'server_error', 'api_error'],
  no_available_credential: [503, 'server_error', 'overloaded_error'],
  overloaded: [503, 'server_error', 'overloaded_error'],
  metering_unavailable: [503, 'server_error', 'overloaded_error'],
  shutting_down: [503, 'server_error', 'overloaded_error'],
  not_initialized: [503, 'server_error', 'overloaded_error'],
  upstream_timeout: [504, 'server_error', 'timeout_error'],
} as const satisfies Record<string, readonly [number, string, string?]>

export type GatewayErrorCode = keyof typeof ERRORS

interface Refusal {
  /** The field at fault. */
  param?: string | undefined
  /** When to come again. */
  retryAfterMs?: number | undefined
  /** The provider's own, where they are passed on. */
  status?: number
  type?: string
  providerCode?: string | null
  /** By which clients of Anthropic know what to do: `{error_code, …}`. */
  details?: object | undefined
}

/** A refusal on an inference route. */
export class GatewayError extends CodedError<GatewayErrorCode> {
  readonly status: number
  readonly param: string | undefined
  readonly retryAfterMs: number | undefined
  readonly #refusal: Refusal

  constructor(code: GatewayErrorCode, message: string, refusal: Refusal = {}) {
    super(code, message)
    this.status = refusal.status ?? ERRORS[code][0]
    this.param = refusal.param
    this.retryAfterMs = refusal.retryAfterMs
    this.#refusal = refusal
  }

  /** The body of the OpenAI family. */
  toOpenAi(): { error: { message: string; type: string; param: string | null; code: string | null } } {
    const { type = ERRORS[this.code][1], providerCode = this.code } = this.#refusal
    return { error: { message: this.message, type, param: this.param ?? null, code: providerCode } }
  }

  /** The body of the Anthropic family. */
  toAnthropic(requestId: string): {
    type: 'error'
    error: { type: string; message: string; code: string | null; details?: object }
    request_id: string
  } {
    const [, openAiType, anthropicType = openAiType]: readonly [number, string, string?] = ERRORS[this.code]
    const { type = anthropicType, providerCode = this.code, details } = this.#refusal
    const error = { type, message: this.message, code: providerCode, ...(details && { details }) }
    return { type: 'error', error, request_id: requestId }
  }
}

/** A field that holds what it may not. */
export const invalid = (message: string, param: string): GatewayError =>
  new GatewayError('invalid_value', message, { param })
