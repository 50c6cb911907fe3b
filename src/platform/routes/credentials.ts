import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isJson, isTrustedOrigin } from '../../http/origin.ts'
import { bearersOf, sessionsIn } from '../../http/tokens.ts'
import { PlatformError } from '../errors.ts'

/** The token that a request brings, and whether a browser added it by itself. */
export interface Credential {
  token: string
  fromCookie: boolean
}

/** @throws unauthorized 401 when there is none, or two that differ. Contract: git-host.md 2.3 */
export function credentialOf(request: Pick<IncomingMessage, 'headers' | 'rawHeaders'>): Credential {
  const bearers = bearersOf(request).map((bearer) => {
    if (bearer === undefined) throw unauthorized('Authorization must be Bearer <token>')
    return bearer
  })
  const [token, ...others] = new Set([...bearers, ...sessionsIn(request.headers.cookie)])
  if (token === undefined) throw unauthorized('a session is required: log in with POST /rest/v1/platform/login')
  if (others.length > 0) throw unauthorized('the request brings two different sessions')
  return { token, fromCookie: bearers.length === 0 }
}

export const unauthorized = (message: string): PlatformError => new PlatformError('unauthorized', message)

/**
 * A page of another site must not act with the session that the browser adds by itself.
 * @throws forbidden 403 for a write with a body that is no JSON, or from a foreign origin. Contract: git-host.md 2.3
 */
export function refuseForeignWrite(method: string, headers: IncomingHttpHeaders, allowed: readonly string[]): void {
  if (method === 'GET' || method === 'HEAD' || method === 'OPTIONS') return
  const { 'content-type': type, 'content-length': length = '0', 'transfer-encoding': encoding } = headers
  const hasBody = length !== '0' || encoding !== undefined
  if (hasBody && !isJson(type)) {
    throw new PlatformError('forbidden', 'with a session cookie, a body must be application/json', {
      header: 'Content-Type',
    })
  }
  refuseForeignOrigin(headers, allowed)
}

/** @throws forbidden 403 */
export function refuseForeignOrigin({ origin, host = '' }: IncomingHttpHeaders, allowed: readonly string[]): void {
  if (origin === undefined || isTrustedOrigin(origin, host, allowed)) return
  throw new PlatformError('forbidden', `the origin ${origin} is neither this server's nor in server.allowed_origins`, {
    header: 'Origin',
  })
}

/** The cookie of a session; without a token, the one that removes it. */
export function sessionCookie(token: string | undefined, maxAgeSeconds: number, isSecure: boolean): string {
  const age = token === undefined ? 0 : maxAgeSeconds
  const attributes = `Path=/rest/v1; HttpOnly; SameSite=Lax; Max-Age=${age}${isSecure ? '; Secure' : ''}`
  return `session=${token ?? ''}; ${attributes}`
}
