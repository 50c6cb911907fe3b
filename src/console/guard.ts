import type { FastifyReply, FastifyRequest } from 'fastify'
import { isLoopbackHost, isTrustedOrigin } from '../http/origin.ts'
import { ConsoleError } from './errors.ts'
import { SESSION_COOKIE } from './session.ts'
import type { Console } from './settings.ts'

/** No script, style or anything else but our own files, and no frame of another site around us. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Of every page. */
export const HEADERS = {
  'Content-Security-Policy': CONTENT_SECURITY_POLICY,
  'X-Content-Type-Options': 'nosniff',
  // With `no-referrer` browsers send `Origin: null` along with forms, which is a foreign one.
  'Referrer-Policy': 'same-origin',
  'Cache-Control': 'no-store',
}

const WITHOUT_SESSION = /^\/ui\/(?:login|static\/[^/]+)$/
const FOR_PROGRAMS = /^\/ui\/(?:api|events|audit\/export)(?:\/|$)/

/**
 * Lets in who may see the console; a page sends others to the sign-in, the rest answers 401. Contract: memory.md 14, 2.7.
 * @throws forbidden 403, signed_out 401, foreign_host 401.
 */
export async function guard(console: Console, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  reply.headers(HEADERS)
  const { origin, host = '' } = request.headers
  if (origin !== undefined && !isTrustedOrigin(origin, host, [])) {
    throw new ConsoleError('forbidden', 'Requests from other sites are refused.')
  }
  if (console.settings.guardLoopback && !isLoopbackHost(host)) {
    throw new ConsoleError('foreign_host', 'Without an API key this server answers only to a loopback host name.')
  }
  const path = pathOf(request)
  if (!console.sessions || WITHOUT_SESSION.test(path)) return
  if (console.sessions.isValid(request.cookies[SESSION_COOKIE])) return
  if (FOR_PROGRAMS.test(path)) throw new ConsoleError('signed_out', 'Your session has ended. Sign in again.')
  await reply.redirect('/ui/login', 303)
}

/** Whether the answer is shown as a page: to a browser that goes somewhere, and not to a script on a page. */
export function wantsPage(request: FastifyRequest): boolean {
  const { method, headers } = request
  if (headers['hx-request'] !== undefined) return false
  if (headers['sec-fetch-mode'] === 'navigate' || headers['upgrade-insecure-requests'] === '1') return true
  return (method === 'GET' || method === 'HEAD') && !FOR_PROGRAMS.test(pathOf(request))
}

/** Whether htmx asks for a page, to show a piece of it in the one that is there. */
export const wantsPiece = (request: FastifyRequest): boolean =>
  request.headers['hx-request'] !== undefined && request.method === 'GET' && !FOR_PROGRAMS.test(pathOf(request))

const pathOf = ({ url }: FastifyRequest): string => url.split('?', 1)[0] ?? ''
