import { version } from '../base/version.ts'
import { get, type Route } from './routes.ts'

/** Whether the server lives, and whether what it cannot do without answers. Contract: memory.md 3.7. */
export const healthRoutes = (readiness: () => Promise<{ ok: boolean }>): Route[] => [
  get('/healthz', async () => ({ ok: true, status: 'live', version })),
  get('/readyz', async (_request, reply) => {
    const answer = await readiness()
    return reply.code(answer.ok ? 200 : 503).send(answer)
  }),
]
