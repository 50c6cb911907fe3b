import { route, type Route } from '../../platform/routes/route.ts'
import type { Analytics } from '../metering/analytics.ts'
import { GATEWAY } from './actor.ts'
import { intervalOf, summaryQuery } from './usage-query.ts'

/** Contract: gateway.md 3.5. */
export const analyticsRoutes = (analytics: Analytics): Route[] => [
  route({ method: 'GET', path: `${GATEWAY}/analytics`, needs: 'session' }, async (request) =>
    analytics.read(request.caller, { ...summaryQuery(request, []), interval: intervalOf(request) }),
  ),
]
