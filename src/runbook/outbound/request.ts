import { buildConnector, Agent, fetch } from 'undici'
import { portOf } from '../../base/network.ts'
import { NodeError } from '../errors.ts'
import { connectionError, type Guard } from './guard.ts'

export interface HttpRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** 5 unless given. */
  readonly maxRedirects?: number
  /** After decompression; 10 MiB unless given. */
  readonly maxResponseBytes?: number
}

export interface HttpResponse {
  readonly status: number
  readonly statusText: string
  readonly headers: Headers
  readonly body: Buffer
  /** After redirects. */
  readonly url: string
  readonly redirects: number
}

const MAX_REDIRECTS = 5
const MAX_RESPONSE_BYTES = 10 * 1024 * 1024

/** What the connection itself decides. */
const RESERVED = new Set(['host', 'content-length', 'transfer-encoding', 'connection'])
const CREDENTIALS = ['authorization', 'cookie', 'proxy-authorization', 'x-api-key', 'x-goog-api-key', 'api-key']
const CONTENT = ['content-type', 'content-encoding', 'content-language', 'content-location']

type Response = Pick<globalThis.Response, 'status' | 'statusText' | 'headers' | 'body'>

/** One exchange, without following redirects. */
export type Transport = (
  url: URL,
  init: { method: string; headers: Headers; body?: string | Buffer; signal: AbortSignal; redirect: 'manual' },
) => Promise<Response>

/** One connection pool; each connection goes to an address that the guard has allowed, and ends with `closed`. */
export function guardedTransport(guard: Guard, closed: AbortSignal): Transport {
  const dispatcher = new Agent({ connect: (options, callback) => void connect(guard, closed, options, callback) })
  return (url, init) => fetch(url, { ...init, headers: [...init.headers], dispatcher })
}

/** A transport of the embedding program; the guard sees where it goes, but not the connection. */
export const foreignTransport =
  (guard: Guard, send: typeof globalThis.fetch): Transport =>
  async (url, init) => {
    await guard.addresses(url.hostname, portOf(url))
    return send(url, init)
  }

const secured = buildConnector({})

async function connect(
  guard: Guard,
  signal: AbortSignal,
  ...[options, callback]: Parameters<buildConnector.connector>
): Promise<void> {
  try {
    const socket = await guard.connect(options.hostname, portOf(options), signal)
    if (options.protocol === 'https:') secured({ ...options, httpSocket: socket }, callback)
    else callback(null, socket)
  } catch (error) {
    callback(error instanceof Error ? error : new Error(String(error)), null)
  }
}

/** A hop of a request: what is sent where. */
interface Hop {
  readonly url: URL
  readonly method: string
  readonly headers: Headers
  readonly body: string | Buffer | undefined
}

/**
 * Sends a request and follows its redirects under the rules of runbook.md 5.1.
 * @throws NodeError config_invalid, header_invalid, address_refused, network_error, tls_failed, refused,
 *   too_many_redirects, response_too_large
 */
export async function sendRequest(
  transport: Transport,
  url: string,
  request: HttpRequest,
  signal: AbortSignal,
): Promise<HttpResponse> {
  const { method = 'GET', body, maxRedirects = MAX_REDIRECTS, maxResponseBytes = MAX_RESPONSE_BYTES } = request
  let hop: Hop = { ...target(url, request.headers), method, body }
  for (let redirects = 0; ; redirects++) {
    const response = await exchange(transport, hop, signal)
    const location = isRedirect(response.status) ? response.headers.get('location') : null
    if (location === null || maxRedirects === 0) return answer(response, hop.url, redirects, maxResponseBytes)
    await response.body?.cancel()
    if (redirects >= maxRedirects) {
      throw new NodeError('too_many_redirects', `more than ${maxRedirects} redirects from ${hop.url.host}`)
    }
    hop = redirected(hop, location, response.status)
  }
}

const isRedirect = (status: number): boolean => [301, 302, 303, 307, 308].includes(status)

function target(text: string, given: HttpRequest['headers'] = {}): Pick<Hop, 'url' | 'headers'> {
  const url = parseUrl(text)
  const headers = checkedHeaders(given)
  const { username, password } = url
  if ((username !== '' || password !== '') && !headers.has('authorization')) {
    headers.set('authorization', basicAuth(decoded(username), decoded(password)))
  }
  return { url: withoutUser(url), headers }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new NodeError('config_invalid', 'the user in the URL is not URL-encoded')
  }
}

const basicAuth = (username: string, password: string): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`

function parseUrl(text: string, base?: URL): URL {
  const url = URL.canParse(text, base?.href) ? new URL(text, base?.href) : undefined
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url
  throw new NodeError('config_invalid', 'the URL must be absolute, with http or https')
}

function withoutUser(url: URL): URL {
  const plain = new URL(url)
  plain.username = ''
  plain.password = ''
  return plain
}

function checkedHeaders(given: Readonly<Record<string, string>>): Headers {
  const headers = new Headers({ 'user-agent': 'mem' })
  for (const [name, value] of Object.entries(given)) {
    if (RESERVED.has(name.toLowerCase())) throw new NodeError('header_invalid', `the header ${name} cannot be set`)
    // the platform would trim or refuse these, depending on the place
    if (/[\r\n\0]/.test(name + value)) throw new NodeError('header_invalid', 'a header holds a line break')
    try {
      headers.set(name, value)
    } catch {
      throw new NodeError('header_invalid', `the header ${JSON.stringify(name)} cannot be sent`)
    }
  }
  return headers
}

async function exchange(
  transport: Transport,
  { url, method, headers, body }: Hop,
  signal: AbortSignal,
): Promise<Response> {
  const init = { method, headers, redirect: 'manual' as const, signal }
  try {
    return await transport(url, body === undefined ? init : { ...init, body })
  } catch (error) {
    signal.throwIfAborted()
    throw connectionError(error, url.host)
  }
}

/** The next hop: another origin gets no credentials, and encryption is never given up. */
function redirected(hop: Hop, location: string, status: number): Hop {
  const url = withoutUser(parseUrl(location, hop.url))
  if (hop.url.protocol === 'https:' && url.protocol === 'http:') {
    throw new NodeError('refused', `${hop.url.host} redirects from https to http`)
  }
  const headers = new Headers(hop.headers)
  if (url.origin !== hop.url.origin) for (const name of CREDENTIALS) headers.delete(name)
  const becomesGet = (status === 303 && hop.method !== 'HEAD') || (status < 303 && hop.method === 'POST')
  if (!becomesGet) return { ...hop, url, headers }
  for (const name of CONTENT) headers.delete(name)
  return { url, method: 'GET', headers, body: undefined }
}

async function answer(response: Response, url: URL, redirects: number, limit: number): Promise<HttpResponse> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of response.body ?? []) {
      size += chunk.byteLength
      if (size > limit) throw new NodeError('response_too_large', `${url.host} answers more than ${limit} bytes`)
      chunks.push(chunk)
    }
  } catch (error) {
    throw connectionError(error, url.host)
  }
  const { status, statusText } = response
  return {
    status,
    statusText,
    headers: new Headers([...response.headers]),
    body: Buffer.concat(chunks),
    url: url.href,
    redirects,
  }
}
