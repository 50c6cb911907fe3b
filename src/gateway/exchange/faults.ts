import type { Clock } from '../../base/clock.ts'
import { parseJson } from '../chat/json.ts'
import { GatewayError, type GatewayErrorCode } from '../errors.ts'
import type { FailureClass } from '../model.ts'
import { UpstreamFault, type AnswerFacts } from './exchange.ts'
import { readProviderError, type ProviderError } from './provider-error.ts'
import { retryAfterOf } from './retry-after.ts'

const MAX_MESSAGE = 4096

/** Names that say the class whatever the status. Contract: gateway.md 4.4. */
const NAMED: ReadonlyMap<string, FailureClass> = new Map([
  ['insufficient_quota', 'auth'],
  ['API_KEY_INVALID', 'auth'],
  ['AccessDeniedException', 'auth'],
  ['ExpiredTokenException', 'auth'],
  ['UnrecognizedClientException', 'auth'],
  ['ThrottlingException', 'rate'],
  ['throttlingException', 'rate'],
  ['RESOURCE_EXHAUSTED', 'rate'],
  ['DeploymentNotFound', 'missing'],
  ['context_length_exceeded', 'context'],
  ['content_filter', 'filtered'],
  ['ResponsibleAIPolicyViolation', 'filtered'],
])

/** Names of failures inside a stream, where no status says it. */
const IN_STREAM: ReadonlyMap<string, FailureClass> = new Map([
  ['rate_limit_error', 'rate'],
  ['rate_limit_exceeded', 'rate'],
  ['overloaded_error', 'rate'],
  ['authentication_error', 'auth'],
  ['billing_error', 'auth'],
  ['permission_error', 'auth'],
  ['invalid_api_key', 'auth'],
  ['PERMISSION_DENIED', 'auth'],
  ['UNAUTHENTICATED', 'auth'],
  ['not_found_error', 'missing'],
  ['model_not_found', 'missing'],
  ['NOT_FOUND', 'missing'],
  ['invalid_request_error', 'client'],
  ['request_too_large', 'client'],
  ['INVALID_ARGUMENT', 'client'],
  ['validationException', 'client'],
  ['ValidationException', 'client'],
])

/** How providers that give it no code tell of a prompt that is too long. */
const CONTEXT =
  /context[ _](?:length|window|size)|(?:prompt|input|request) is too long|too many (?:input )?tokens|maximum (?:number of|input) tokens|input token count|reduce the length of/i

const CODES: Readonly<Partial<Record<FailureClass, GatewayErrorCode>>> = {
  rate: 'upstream_rate_limited',
  auth: 'upstream_credentials_rejected',
  missing: 'model_not_found',
  context: 'context_length_exceeded',
  filtered: 'content_filter',
  client: 'invalid_value',
}

/** What to know in order to say what a failure means. */
export interface FaultView {
  /** The dialects are equal: the client gets type, param and code as the provider gave them. */
  readonly isRelay: boolean
  /** Takes secrets out of a text, those of the credential in use too. */
  readonly redact: (text: string) => string
  readonly clock: Clock
}

/** What a refusal of the provider means, and how the client is told. Contract: gateway.md 3.4, 4.4. */
export function refusalFault(
  status: number,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
  view: FaultView,
): UpstreamFault {
  const error = readProviderError(body.toString('utf8'), headers['x-amzn-errortype'])
  const failure = named(error) ?? byStatus(status, error)
  const retryAfterMs = failure === 'rate' ? retryAfterOf(headers, view.clock.now(), error.retryDelay) : undefined
  return faultOf(failure, error, view, { status, retryAfterMs })
}

/** What an error inside a 200 means. @param exception the name that stands beside it */
export function eventFault(data: string, view: FaultView, exception?: string, facts?: AnswerFacts): UpstreamFault {
  const error = readProviderError(data, exception)
  const status = Number([...error.names].find((name) => /^[45]\d\d$/.test(name)) ?? Number.NaN)
  const listed = [...error.names].map((name) => IN_STREAM.get(name)).find((each) => each !== undefined)
  const failure = named(error) ?? (listed === 'client' && isContext(error) ? 'context' : listed)
  return faultOf(failure ?? (status ? byStatus(status, error) : 'transient'), error, view, { facts })
}

/** An answer that is none, or ends too early. */
export const brokenFault = (
  code: 'upstream_invalid_response' | 'upstream_truncated',
  message: string,
  facts?: AnswerFacts,
): UpstreamFault => new UpstreamFault('transient', new GatewayError(code, message), { facts })

/** An answer that says nothing, and not why. */
export const emptyFault = (facts: AnswerFacts): UpstreamFault =>
  brokenFault('upstream_invalid_response', 'the provider sent an empty answer', facts)

/** Whole or in a stream. Contract: gateway.md 5.5. */
export const malformedFault = (facts: AnswerFacts): UpstreamFault =>
  brokenFault('upstream_invalid_response', 'the model answered with a call that is none', facts)

const named = ({ names }: ProviderError): FailureClass | undefined =>
  [...names].map((name) => NAMED.get(name)).find((failure) => failure !== undefined)

const isContext = ({ message = '' }: ProviderError): boolean => CONTEXT.test(message)

function byStatus(status: number, error: ProviderError): FailureClass {
  if (status === 429 || status === 529) return 'rate'
  if (status === 401 || status === 402 || status === 403) return 'auth'
  if (status === 404 || status === 405 || status === 410 || status < 400) return 'missing'
  if (status >= 500 || TRANSIENT.has(status)) return 'transient'
  return isContext(error) ? 'context' : 'client'
}

/** 424 is a model of Bedrock's that failed. */
const TRANSIENT: ReadonlySet<number> = new Set([408, 409, 423, 424, 425])

/** Statuses that the client is told as the provider gave them. */
const KEPT: ReadonlySet<number> = new Set([400, 404, 413, 422])

function faultOf(
  failure: FailureClass,
  error: ProviderError,
  { isRelay, redact }: FaultView,
  told: { status?: number; retryAfterMs?: number | undefined; facts?: AnswerFacts | undefined },
): UpstreamFault {
  const { status } = told
  const shown = (text: string): string => redact(text).slice(0, MAX_MESSAGE)
  const message = shown(error.message ?? `the provider answered ${status ?? 'with an error'}`)
  if (failure === 'auth') {
    const refused = rejectedCredential()
    return new UpstreamFault(failure, refused, { ...told, message })
  }
  const isKept = status !== undefined && KEPT.has(status) && failure !== 'rate' && failure !== 'transient'
  const code = status === 413 && failure === 'client' ? 'request_too_large' : (CODES[failure] ?? 'upstream_error')
  // A page, or what a proxy on the way says, is none of the dialect's errors.
  const own = isKept && isRelay && (error.type ?? error.code) !== undefined
  const refused = new GatewayError(code, message, {
    ...(isKept && { status }),
    ...(own && {
      param: error.param && shown(error.param),
      providerCode: error.code === undefined ? null : shown(error.code),
      details: detailsOf(error, redact),
    }),
    ...(own && error.type !== undefined && { type: shown(error.type) }),
    retryAfterMs: told.retryAfterMs,
  })
  return new UpstreamFault(failure, refused, told)
}

function detailsOf({ details }: ProviderError, redact: FaultView['redact']): object | undefined {
  const text = details && JSON.stringify(details)
  return text !== undefined && text.length <= MAX_MESSAGE ? parseJson(redact(text)) : undefined
}

/** The client is not told what the provider said: that may name the key. */
export const rejectedCredential = (): GatewayError =>
  new GatewayError(
    'upstream_credentials_rejected',
    'the provider refused the credential that was used; your own token is fine. Ask who keeps the credential to enter its key anew',
  )
