import cookie from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Clock } from '../base/clock.ts'
import { get, mountRoutes } from '../http/routes.ts'
import type { MemoryService } from '../memory/service.ts'
import { csrfToken, requireCsrf } from './csrf.ts'
import { ConsoleError, toRefusal, type Refusal } from './errors.ts'
import { readForm, type Form } from './form.ts'
import { guard, wantsPage, wantsPiece } from './guard.ts'
import type { KernelConsole } from './kernel/kernel.ts'
import { kernelRoutes } from './kernel/routes.ts'
import { loginRoutes } from './login.ts'
import { sendPage } from './pages/page.ts'
import { actionRoutes, pageRoutes, referenceRoutes, streamRoutes } from './routes.ts'
import { Sessions } from './session.ts'
import type { Console, ConsoleSettings } from './settings.ts'
import { serveStatic } from './static.ts'
import { createStreams } from './stream.ts'
import { renderFragment } from './view.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** What a request of the console other than GET sent. */
    form: Form
  }
}

const READING = ['GET', 'HEAD']

/** Mounts the operator console under `/ui`. Contract: memory.md 14. */
export function mountConsole(
  app: FastifyInstance,
  service: MemoryService,
  clock: Clock,
  settings: ConsoleSettings,
  kernel?: KernelConsole,
): void {
  const { apiKey } = settings
  const sessions = apiKey === undefined ? undefined : new Sessions(apiKey, clock)
  const console: Console = { service, settings, clock, sessions, kernel }
  const streams = createStreams()
  app.register(
    async (ui) => {
      await ui.register(cookie)
      ui.decorateRequest('form')
      const routes = [
        get('/static/:file', serveStatic),
        ...loginRoutes(console),
        ...pageRoutes(console),
        ...actionRoutes(console),
        ...referenceRoutes(console),
        ...streamRoutes(console, streams),
        ...(kernel ? kernelRoutes(console, kernel) : []),
      ]
      mountRoutes(ui, routes, { refusal: noPage })
      ui.addHook('onRequest', (request, reply) => guard(console, request, reply))
      ui.addHook('preHandler', async (request) => {
        if (READING.includes(request.method)) return
        request.form = await readForm(request)
        if (request.url !== '/ui/login') requireCsrf(sessions, request, request.form)
      })
      ui.addHook('preClose', async () => streams.close())
      ui.setErrorHandler((error, request, reply) => answerError(console, error, request, reply))
    },
    { prefix: '/ui' },
  )
}

const noPage = (): ConsoleError => new ConsoleError('not_found', 'There is no such page.')

/** What a program fills in, and what nobody may read from a page. */
const UNSEEN = /_id$|^(?:csrf_token|expected_watermark|watermark|edit|operation)$/
const SECRET = ['api_key', 'identity_proof']

/**
 * The form that was refused, with what was written into it, so that it can be mended and sent again. Not one that another
 * site may have filled in.
 */
function againOf({ status, code }: Refusal, request: FastifyRequest): object | undefined {
  const isOurs = code !== 'forbidden' && status !== 401 && status < 500
  // What could not be read is not there.
  const form: Form | undefined = request.form
  if (request.method !== 'POST' || !isOurs || !form) return undefined
  const fields = form.fields().filter(([name]) => name !== 'csrf_token' && !SECRET.includes(name))
  return {
    // What came too late is reviewed again, beside what stands there now.
    action: code === 'cas_conflict' && form.text('edit') ? '/ui/api/memories/preview' : request.url,
    wantsFile: /\/(?:upload|import|replay)$/.test(request.url),
    hidden: Object.fromEntries(fields.filter(([name]) => UNSEEN.test(name))),
    fields: fields.filter(([name]) => !UNSEEN.test(name)),
  }
}

/** The REST status, with a page for a browser that came here, or is told to, and a fragment for all others. */
function answerError(console: Console, error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const refusal = toRefusal(error)
  if (refusal.status >= 500) request.log.error({ err: error, request_id: request.id }, 'a request failed')
  const data = { refusal, requestId: request.id, again: againOf(refusal, request) }
  if (wantsPage(request)) {
    const page = { template: './error', title: 'Not possible', status: refusal.status, data }
    return sendPage(console, request, reply, '', page)
  }
  const csrf = csrfToken(console.sessions, request, reply)
  // A form of before the last sign-in can be sent again with the token of now: see console.js.
  if (refusal.code === 'forbidden') reply.header('X-CSRF-Token', csrf)
  if (wantsPiece(request)) reply.header('HX-Redirect', request.url)
  return reply
    .code(refusal.status)
    .type('text/html; charset=utf-8')
    .send(renderFragment('./partials/refusal', data, console.clock.now(), csrf))
}
