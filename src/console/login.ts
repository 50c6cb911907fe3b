import type { FastifyInstance } from 'fastify'
import { sendPage } from './pages/page.ts'
import { SESSION_COOKIE, SESSION_SECONDS } from './session.ts'
import type { Console } from './settings.ts'

const LOGIN = { template: './login', title: 'Sign in' }

/** Signing in and out; where no key is needed both lead to the console. Contract: memory.md 14, Sign-in. */
export function mountLogin(app: FastifyInstance, console: Console): void {
  const { sessions } = console
  app.get('/login', async (request, reply) => {
    if (!sessions || sessions.isValid(request.cookies[SESSION_COOKIE])) return reply.redirect('/ui/', 303)
    return sendPage(console, request, reply, '', { ...LOGIN, data: { isWrong: false } })
  })
  app.post('/login', async (request, reply) => {
    const session = sessions?.open(request.form.text('api_key') ?? '')
    if (sessions && session === undefined) {
      return sendPage(console, request, reply, '', { ...LOGIN, status: 401, data: { isWrong: true } })
    }
    if (session !== undefined) {
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
  app.post('/logout', async (_request, reply) => {
    reply.clearCookie(SESSION_COOKIE, { path: '/ui' })
    return reply.redirect('/ui/login', 303)
  })
}
