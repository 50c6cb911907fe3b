import { capabilityDocument } from '../capabilities.ts'
import type { Kernel } from '../service.ts'
import { scopeOfQuery } from './query.ts'
import type { Handlers } from './route.ts'

/** What a kernel says of itself: in no capability, always served. Contract: kernel-1.md 2. */
export const serviceRoutes = (kernel: Kernel): Handlers => ({
  'GET /health': async () => {
    const health = await kernel.health.read()
    return { status: health.status === 'down' ? 503 : 200, body: health }
  },
  'GET /capabilities': async ({ query }) => {
    scopeOfQuery(query)
    return { status: 200, body: capabilityDocument(kernel.wiring) }
  },
})
