import { MemoryApiError, MemoryNetworkError, MemoryRequestError, MemoryTimeoutError } from './errors.ts'

/** A list goes with commas. */
type Scalar = string | number | boolean | readonly string[]

export interface Call {
  method: string
  path: Path
  query?: object
  body?: object
  headers?: Record<string, string | undefined>
  /** True for an error status whose body is an answer all the same. */
  accepts?: (status: number, body: string) => boolean
  /** Gives the call up. */
  signal?: AbortSignal | undefined
}

export interface Connection {
  endpoint: string
  fetch: typeof fetch
  headers: Record<string, string | undefined>
  timeoutMs: number
}

/** Literal text and the ids between, which are encoded when the call is sent: `` path`/v1/workspaces/${id}` ``. */
export interface Path {
  literals: readonly string[]
  segments: readonly string[]
}

export const path = (literals: TemplateStringsArray, ...segments: string[]): Path => ({ literals, segments })

/**
 * Sends one call, once, and gives the parsed answer.
 * @throws MemoryApiError, MemoryTimeoutError, MemoryNetworkError; MemoryRequestError when nothing could be sent.
 */
export async function ask<Body>(connection: Connection, call: Call): Promise<Body> {
  const text = await send(connection, call)
  const foreign = `${connection.endpoint} answers, but not as a mem server does`
  let answer: Body // the wire's promise: these types are tested against the server's schemas
  try {
    answer = JSON.parse(text)
  } catch (cause) {
    throw new MemoryNetworkError(foreign, cause)
  }
  if (typeof answer !== 'object' || answer === null) throw new MemoryNetworkError(foreign, text)
  return answer
}

/** Sends one call, once, and gives the body of a successful answer. @throws as `ask`. */
export async function send(connection: Connection, call: Call): Promise<string> {
  const { status, ok, text } = await exchange(connection, call)
  if (ok || call.accepts?.(status, text)) return text
  throw new MemoryApiError(status, text)
}

/** What came back, whatever it says. */
export interface Answer {
  status: number
  ok: boolean
  headers: Headers
  text: string
}

/** Sends one call, once. @throws MemoryTimeoutError, MemoryNetworkError; MemoryRequestError when nothing could be sent. */
export async function exchange(connection: Connection, call: Call): Promise<Answer> {
  const url = buildUrl(connection.endpoint, call)
  const timeout = timeoutSignal(connection.timeoutMs)
  const init: RequestInit = {
    method: call.method,
    headers: buildHeaders({ ...connection.headers, ...call.headers }, call.body !== undefined),
    redirect: 'manual', // following one would turn a POST into a GET
    signal: call.signal ? AbortSignal.any([timeout, call.signal]) : timeout,
    ...(call.body !== undefined && { body: encodeBody(call.body) }),
  }
  const { fetch } = connection // called without a receiver: the platform's own refuses a foreign one
  try {
    const response = await fetch(url, init)
    const { status, ok, headers } = response
    return { status, ok, headers, text: await response.text() }
  } catch (error) {
    call.signal?.throwIfAborted()
    if (timeout.aborted) throw new MemoryTimeoutError(connection.endpoint, connection.timeoutMs)
    throw new MemoryNetworkError(`cannot reach ${connection.endpoint}`, error)
  }
}

/** The most that a timer holds: some 25 days. */
const LONGEST_MS = 2 ** 31 - 1

function timeoutSignal(ms: number): AbortSignal {
  if (!(ms > 0)) throw new MemoryRequestError(`timeoutMs must be above 0, not ${ms}`)
  return AbortSignal.timeout(Math.min(Math.ceil(ms), LONGEST_MS))
}

function encodeBody(body: object): string {
  try {
    return JSON.stringify(body)
  } catch (cause) {
    throw new MemoryRequestError('the request holds what JSON cannot carry', cause)
  }
}

function buildUrl(endpoint: string, call: Call): URL {
  const base = URL.canParse(endpoint) ? new URL(endpoint) : undefined
  if (!base || !/^https?:$/.test(base.protocol)) {
    throw new MemoryRequestError(`the endpoint must be a URL such as http://127.0.0.1:7777, not '${endpoint}'`)
  }
  if (base.username || base.password || base.search || base.hash) {
    throw new MemoryRequestError('the endpoint must be a URL without user, password, query and fragment')
  }
  const { literals, segments } = call.path
  const encoded = literals.map((literal, i) => (i < segments.length ? literal + encodeSegment(segments[i]) : literal))
  const url = new URL(base.href.replace(/\/+$/, '') + encoded.join(''))
  const given: [string, Scalar | undefined][] = Object.entries(call.query ?? {})
  for (const [key, value] of given) if (value !== undefined) url.searchParams.set(key, String(value))
  return url
}

/** A missing, empty, `.` or `..` segment would change which resource the URL names: `forget('..')` must not reach the workspace. */
function encodeSegment(segment: string | undefined): string {
  if (segment === undefined || segment === '' || segment === '.' || segment === '..') {
    throw new MemoryRequestError(`'${segment}' cannot name anything in a path`)
  }
  try {
    return encodeURIComponent(segment)
  } catch (cause) {
    throw new MemoryRequestError(`'${segment}' is not well-formed Unicode`, cause)
  }
}

/** Headers are bytes, which `fetch` takes one a character: what is beyond ASCII travels as UTF-8. */
export const inUtf8 = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : String.fromCharCode(...new TextEncoder().encode(text))

function buildHeaders(given: Record<string, string | undefined>, hasBody: boolean): Headers {
  const headers = new Headers({ Accept: 'application/json' })
  if (hasBody) headers.set('Content-Type', 'application/json')
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue
    try {
      headers.set(name, value)
    } catch {
      throw new MemoryRequestError(`the value for ${name} has characters that no HTTP header can carry`)
    }
  }
  headers.delete('Mem-Identity-Provider') // the client never chooses the provider (memory.md 13)
  return headers
}
