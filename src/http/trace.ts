import type { FastifyInstance, FastifyRequest } from 'fastify'
import { requestSpan, type RequestSpan } from '../base/trace.ts'
import { templateOf } from './path-template.ts'

/**
 * A span for each request, by the HTTP conventions of OpenTelemetry, around all that it does. Paths and queries are left
 * out: they hold what users name and ask.
 */
export function traceRequests(app: FastifyInstance): void {
  const spans = new WeakMap<FastifyRequest, RequestSpan>()
  app.addHook('onRequest', async (request, reply) => {
    const { method, headers, protocol } = request
    const started = requestSpan(headers, method, {
      'http.request.method': method,
      'url.scheme': protocol,
      'network.protocol.version': request.raw.httpVersion,
      'mem.request_id': request.id,
    })
    if (!started) return
    spans.set(request, started)
    reply.raw.once('close', () => {
      const status = reply.raw.headersSent ? reply.raw.statusCode : reply.sent ? 101 : 499
      const route = templateOf(request)
      const isFault = status >= 500
      const ended = {
        'http.response.status_code': status,
        ...(route !== undefined && { 'http.route': route }),
        ...(isFault && { 'error.type': String(status) }),
      }
      started.end(route === undefined ? method : `${method} ${route}`, ended, isFault)
    })
  })
  // Behind the reading of the body, whose events come from outside the request.
  app.addHook('preValidation', (request, _reply, done) => {
    const started = spans.get(request)
    if (started) started.within(done)
    else done()
  })
}
