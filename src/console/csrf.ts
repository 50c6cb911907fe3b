import { randomBytes } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { secretEquals } from '../base/hash.ts'
import { ConsoleError } from './errors.ts'
import type { Form } from './form.ts'
import { SESSION_COOKIE, type Sessions } from './session.ts'

const OPEN_COOKIE = 'mem_csrf'
const TOKEN = /^[\w-]{32}$/

/**
 * The token that this client's forms carry: bound to the session, or where no key is needed the value of a cookie of its
 * own, which is set when absent. Each answer masks it anew: pages are compressed, and their length must not tell it (BREACH).
 */
export const csrfToken = (sessions: Sessions | undefined, request: FastifyRequest, reply: FastifyReply): string =>
  mask(tokenOf(sessions, request, reply))

function tokenOf(sessions: Sessions | undefined, request: FastifyRequest, reply: FastifyReply): string {
  if (sessions) return sessions.csrfToken(request.cookies[SESSION_COOKIE] ?? '')
  const known = request.cookies[OPEN_COOKIE]
  if (known && TOKEN.test(known)) return known
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
  if (!expected || !sent || !(secretEquals(sent, expected) || secretEquals(unmask(sent), expected))) {
    throw new ConsoleError(
      'forbidden',
      'This form is out of date. Send it again; if that does not help, reload the page.',
    )
  }
}

/** base64url of a random pad and the token's bytes under it. */
function mask(token: string): string {
  const bytes = Buffer.from(token, 'base64url')
  const pad = randomBytes(bytes.length)
  return Buffer.concat([pad, xor(bytes, pad)]).toString('base64url')
}

function unmask(masked: string): string {
  const bytes = Buffer.from(masked, 'base64url')
  const half = bytes.length / 2
  return xor(bytes.subarray(half), bytes.subarray(0, half)).toString('base64url')
}

const xor = (bytes: Buffer, pad: Buffer): Buffer => Buffer.from(bytes.map((byte, i) => byte ^ (pad[i] ?? 0)))
