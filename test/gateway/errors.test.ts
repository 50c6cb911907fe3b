import { expect, test } from 'vitest'
import { GatewayError, type GatewayErrorCode } from '../../src/gateway/errors.ts'

/** Rows of gateway.md 3.4: codes, status, type in the OpenAI family, in the Anthropic family. */
const ROWS: readonly [string, number, string, string][] = [
  [
    'invalid_json missing_required_parameter invalid_value unsupported_parameter unsupported_content',
    400,
    'invalid_request_error',
    'invalid_request_error',
  ],
  ['invalid_api_key', 401, 'authentication_error', 'authentication_error'],
  [
    'model_not_allowed model_blocked credential_not_allowed price_unknown origin_refused',
    403,
    'permission_error',
    'permission_error',
  ],
  ['model_not_found unknown_url', 404, 'invalid_request_error', 'not_found_error'],
  ['method_not_allowed', 405, 'invalid_request_error', 'not_found_error'],
  ['request_too_large', 413, 'invalid_request_error', 'request_too_large'],
  ['rate_limit_exceeded concurrency_exceeded upstream_rate_limited', 429, 'rate_limit_error', 'rate_limit_error'],
  ['budget_exceeded', 429, 'insufficient_quota', 'rate_limit_error'],
  ['internal_error', 500, 'server_error', 'api_error'],
  [
    'upstream_error upstream_invalid_response upstream_truncated upstream_credentials_rejected',
    502,
    'server_error',
    'api_error',
  ],
  [
    'no_available_credential overloaded metering_unavailable shutting_down not_initialized',
    503,
    'server_error',
    'overloaded_error',
  ],
  ['upstream_timeout', 504, 'server_error', 'timeout_error'],
]

test.each(ROWS)('%s: %i %s, %s', (codes, status, type, anthropicType) => {
  for (const code of codes.split(' ') as GatewayErrorCode[]) {
    const error = new GatewayError(code, 'no', { param: 'model' })
    expect(error.status).toBe(status)
    expect(error.toOpenAi()).toEqual({ error: { message: 'no', type, param: 'model', code } })
    expect(error.toAnthropic('r')).toEqual({
      type: 'error',
      error: { type: anthropicType, message: 'no', code },
      request_id: 'r',
    })
  }
})
