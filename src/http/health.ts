import type { FastifyInstance } from 'fastify'
import { version } from '../base/version.ts'

/** Whether the server lives, and whether what it cannot do without answers. Contract: memory.md 3.7. */
export function mountHealth(app: FastifyInstance, readiness: () => Promise<{ ok: boolean }>): void {
  app.get('/healthz', async () => ({ ok: true, status: 'live', version }))
  app.get('/readyz', async (_request, reply) => {
    const answer = await readiness()
    return reply.code(answer.ok ? 200 : 503).send(answer)
  })
}
