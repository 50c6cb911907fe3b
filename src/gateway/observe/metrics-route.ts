import type { FastifyInstance, FastifyRequest } from 'fastify'
import { secretEquals, sha256 } from '../../base/hash.ts'
import { get } from '../../http/routes.ts'
import { PlatformError } from '../../platform/errors.ts'
import { mountOpen } from '../../platform/routes/index.ts'
import type { GatewayMetrics } from './metrics.ts'

const PATH = '/metrics/ai-gateway'
const TYPES = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
} as const

interface MetricsAccess {
  metrics: GatewayMetrics
  /** Whose metrics token has this SHA-256 (hex). */
  organizationOf: (tokenHash: string) => number | undefined
  /** Shows every organization's series; none without one. */
  operatorToken: string | undefined
}

/** Mounts the scrape: behind a metrics token, or the operator's. Contract: gateway.md 3.5, 11. */
export function mountGatewayMetrics(app: FastifyInstance, access: MetricsAccess): void {
  const scrape = get('', async (request, reply) => {
    const viewed = viewOf(request, access)
    const format = request.headers.accept?.includes('application/openmetrics-text') ? 'openmetrics' : 'prometheus'
    return reply.type(TYPES[format]).send(await access.metrics.render(viewed, format))
  })
  app.register(async (scope) => mountOpen(scope, [scrape]), { prefix: PATH })
}

/** The organization whose series are shown; undefined for all. @throws unauthorized 401 */
function viewOf({ headers }: FastifyRequest, { organizationOf, operatorToken }: MetricsAccess): number | undefined {
  const [, token] = /^bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? []
  if (token !== undefined) {
    if (operatorToken !== undefined && secretEquals(token, operatorToken)) return undefined
    const organization = organizationOf(sha256(token))
    if (organization !== undefined) return organization
  }
  const message = 'a metrics token is needed as bearer: an admin makes one with `mem gateway metrics-token create`'
  throw new PlatformError('unauthorized', message, {}, { 'WWW-Authenticate': 'Bearer' })
}
