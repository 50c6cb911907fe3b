import { route, type Route } from '../../platform/routes/route.ts'
import type { Costs } from '../metering/costs.ts'
import type { SettingsService } from '../settings.ts'
import { actorOf, GATEWAY } from './actor.ts'
import { summaryQuery } from './usage-query.ts'

const PATH = `${GATEWAY}/cost`

/** Costs, and whether they are tracked. Contract: gateway.md 3.5. */
export const costRoutes = (costs: Costs, settings: Pick<SettingsService, 'trackCost'>): Route[] => [
  route({ method: 'GET', path: PATH, needs: 'session' }, async (request) =>
    costs.read(request.caller, summaryQuery(request, ['provider', 'model'])),
  ),
  route({ method: 'GET', path: `${PATH}/prices`, needs: 'session' }, async () => costs.prices()),
  ...[true, false].map((enabled) =>
    route({ method: 'POST', path: `${PATH}/${enabled ? 'enable' : 'disable'}`, needs: 'admin' }, async (request) => {
      const { cost_tracking } = await settings.trackCost(actorOf(request), enabled)
      return { enabled: cost_tracking }
    }),
  ),
]
