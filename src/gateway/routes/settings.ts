import { bodyRoute, route, type Route } from '../../platform/routes/route.ts'
import type { MetricsTokens } from '../metrics-token.ts'
import { settingsRequest } from '../requests/settings.ts'
import type { SettingsService } from '../settings.ts'
import { actorOf, GATEWAY } from './actor.ts'

const SETTINGS = `${GATEWAY}/settings`
const METRICS_TOKEN = `${GATEWAY}/metrics-token`

/** Settings, and the token that shows metrics. Contract: gateway.md 3.5. */
export const settingsRoutes = (settings: SettingsService, metricsTokens: MetricsTokens): Route[] => [
  route({ method: 'GET', path: SETTINGS, needs: 'session' }, ({ caller }) => settings.get(caller)),
  bodyRoute({ method: 'PUT', path: SETTINGS, needs: 'admin' }, settingsRequest, (request, body) =>
    settings.replace(actorOf(request), body),
  ),
  route({ method: 'GET', path: METRICS_TOKEN, needs: 'admin' }, ({ caller }) => metricsTokens.get(caller)),
  route({ method: 'POST', path: METRICS_TOKEN, needs: 'admin', status: 201 }, (request) =>
    metricsTokens.create(actorOf(request)),
  ),
  route({ method: 'DELETE', path: METRICS_TOKEN, needs: 'admin', status: 204 }, (request) =>
    metricsTokens.revoke(actorOf(request)),
  ),
]
