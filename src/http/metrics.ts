import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Counter, Histogram, type Metric } from '../base/metrics.ts'
import { templateOf } from './path-template.ts'

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** Counts and times every request from now on, by the pattern of its route: ids would make a series each. */
export function measureRequests(app: FastifyInstance): Metric[] {
  const total = new Counter('mem_http_requests_total', 'Requests answered.')
  const duration = new Histogram('mem_http_request_duration_seconds', 'How long requests took.', SECONDS)
  const measure = (request: FastifyRequest, status: number): void => {
    const { method } = request
    const route = templateOf(request) ?? 'unknown'
    total.add({ method, route, status: String(status) })
    duration.observe({ method, route }, (performance.now() - request.startedAt) / 1000)
  }
  app.addHook('onResponse', async (request, reply) => measure(request, reply.statusCode))
  app.addHook('onRequestAbort', async (request) => measure(request, 499))
  return [total, duration]
}
