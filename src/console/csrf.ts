import { randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { secretEquals } from '../base/hash.ts'
import { ConsoleError } from './errors.ts'
import type { Form } from './form.ts'
import { SESSION_COOKIE, type Sessions } from './session.ts'

const OPEN_COOKIE = 'mem_csrf'

/**
 * The token that this client's forms carry: bound to the session, or where no key is needed the value of a cookie of its
 * own, which is set when absent.
 */
export function csrfToken(sessions: Sessions | undefined, request: FastifyRequest, reply: FastifyReply): string {
  if (sessions) return sessions.csrfToken(request.cookies[SESSION_COOKIE] ?? '')
  const known = request.cookies[OPEN_COOKIE]
  if (known) return known
  const token = randomBytes(24).toString('base64url')
  reply.setCookie(OPEN_COOKIE, token, { path: '/ui', httpOnly: true, sameSite: 'lax' })
  return token
}

/** @throws forbidden 403 unless the token came along, in the field `csrf_token` or the header `X-CSRF-Token`. */
export function requireCsrf(sessions: Sessions | undefined, request: FastifyRequest, form: Form): void {
  const cookie = request.cookies[sessions ? SESSION_COOKIE : OPEN_COOKIE]
  const expected = cookie && (sessions ? sessions.csrfToken(cookie) : cookie)
  const header = request.headers['x-csrf-token']
  const sent = typeof header === 'string' ? header : form.text('csrf_token')
  if (!expected || !sent || !secretEquals(sent, expected)) {
    throw new ConsoleError('forbidden', 'This form is out of date. Reload the page and send it again.')
  }
}
