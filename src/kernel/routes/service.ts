import { capabilityDocument } from '../capabilities.ts'
import type { Kernel } from '../service.ts'
import { scopeOfQuery } from './query.ts'
import type { Handlers } from './route.ts'

const RETRY_SOON = { 'Retry-After': '1' }

/** What a kernel says of itself: in no capability, always served. Contract: kernel-1.md 2. */
export const serviceRoutes = (kernel: Kernel): Handlers => ({
  'GET /health': async () => {
    const health = await kernel.health.read()
    return health.status === 'down' ? { status: 503, body: health, headers: RETRY_SOON } : { status: 200, body: health }
  },
  'GET /capabilities': async ({ query }) => {
    scopeOfQuery(query)
    return { status: 200, body: capabilityDocument(kernel.wiring) }
  },
})
