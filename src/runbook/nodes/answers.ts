import { systemClock } from '../../base/clock.ts'
import { NodeError, type NodeErrorCode } from '../errors.ts'
import { parseJson } from '../hcl/json.ts'
import type { Value } from '../hcl/values.ts'
import type { HttpResponse } from '../outbound/request.ts'

/** So much of an unexpected answer is kept. */
const KEPT_BYTES = 64 * 1024

type ResponseType = 'auto' | 'json' | 'text' | 'base64'

/** The body of an answer; `auto` is JSON where it is declared or parses. @throws NodeError data_invalid */
export function decodeBody({ body, headers, url }: HttpResponse, type: ResponseType = 'auto'): Value {
  if (type === 'base64') return body.toString('base64')
  const text = new TextDecoder().decode(body)
  if (type === 'text') return text
  const isDeclared = type === 'json' || /[/+]json\b/i.test(headers.get('content-type') ?? '')
  if (text.trim() === '') return isDeclared ? null : text
  try {
    return parseJson(text)
  } catch {
    if (!isDeclared) return text
    throw new NodeError('data_invalid', `${new URL(url).host} answers broken JSON`)
  }
}

/** An answer nobody asked for. 429 is always `rate_limited`; the answer is kept in the details. */
export function statusError(response: HttpResponse, code: NodeErrorCode = 'http_status'): NodeError {
  const { status, statusText, url } = response
  const details = { statusCode: status, headers: plainHeaders(response), body: excerpt(response) }
  const message = `${new URL(url).host} answers ${status}${statusText === '' ? '' : ` ${statusText}`}`
  return new NodeError(status === 429 ? 'rate_limited' : code, message, details, { retryAfterMs: retryAfter(response) })
}

/** By lower-case name, repeats joined; `set-cookie` is a list. */
export function plainHeaders({ headers }: HttpResponse): Record<string, string | string[]> {
  const cookies = headers.getSetCookie()
  return { ...Object.fromEntries(headers), ...(cookies.length > 0 && { 'set-cookie': cookies }) }
}

function excerpt(response: HttpResponse): Value {
  const text = new TextDecoder().decode(response.body.subarray(0, KEPT_BYTES))
  if (response.body.length > KEPT_BYTES) return text
  try {
    return decodeBody(response)
  } catch {
    return text
  }
}

/** Milliseconds of `Retry-After`: seconds or a date. */
function retryAfter({ headers }: HttpResponse): number | undefined {
  const value = headers.get('retry-after')
  if (value === null) return undefined
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - systemClock.now()
  return ms >= 0 ? ms : undefined
}
