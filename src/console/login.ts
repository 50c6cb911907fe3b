import type { FastifyReply } from 'fastify'
import { get, post, type Route } from '../http/routes.ts'
import { wantsPiece } from './guard.ts'
import { sendPage } from './pages/page.ts'
import { SESSION_COOKIE, SESSION_SECONDS } from './session.ts'
import type { Console } from './settings.ts'
import { SignInBrake } from './sign-in-brake.ts'

const LOGIN = { template: './login', title: 'Sign in' }

/** Signing in and out; where no key is needed both lead to the console. Contract: memory.md 14, Sign-in. */
export function loginRoutes(console: Console): Route[] {
  const { sessions } = console
  const brake = new SignInBrake(console.clock)
  const form = get('/login', async (request, reply) => {
    // Who asked for a piece of a page was led here without knowing it.
    if (wantsPiece(request)) reply.header('HX-Redirect', '/ui/login')
    if (!sessions || sessions.isValid(request.cookies[SESSION_COOKIE])) return reply.redirect('/ui/', 303)
    return sendPage(console, request, reply, '', { ...LOGIN, data: {} })
  })
  const signIn = post('/login', async (request, reply) => {
    const refuse = (status: number, problem: string): FastifyReply =>
      sendPage(console, request, reply, '', { ...LOGIN, status, data: { problem } })
    if (sessions) {
      const seconds = Math.ceil(brake.waitMs(request.ip) / 1000)
      if (seconds > 0) {
        reply.header('Retry-After', seconds)
        return refuse(429, `Too many wrong keys. Try again in ${durationText(seconds)}.`)
      }
      const session = sessions.open(request.form.text('api_key') ?? '')
      if (session === undefined) {
        brake.failed(request.ip)
        request.log.warn({ request_id: request.id, ip: request.ip }, 'a wrong key at the sign-in')
        return refuse(401, 'That is not the key of this server.')
      }
      brake.succeeded(request.ip)
      const secure = request.protocol === 'https'
      reply.setCookie(SESSION_COOKIE, session, {
        path: '/ui',
        httpOnly: true,
        sameSite: 'lax',
        maxAge: SESSION_SECONDS,
        secure,
      })
    }
    return reply.redirect('/ui/', 303)
  })
  const signOut = post('/logout', async (_request, reply) => {
    reply.clearCookie(SESSION_COOKIE, { path: '/ui' })
    return reply.redirect('/ui/login', 303)
  })
  return [form, signIn, signOut]
}

const durationText = (seconds: number): string => (seconds < 60 ? `${seconds} s` : `${Math.ceil(seconds / 60)} min`)
