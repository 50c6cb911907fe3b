import { bodyRoute, type Route } from '../../platform/routes/route.ts'
import { explainTo } from '../explanation.ts'
import type { GatewayManagement } from '../management.ts'
import type { ExplainRoute } from '../ports.ts'
import { routeRequest } from '../requests/route.ts'
import { GATEWAY } from './actor.ts'
import { aliasRoutes } from './aliases.ts'
import { auditRoutes } from './audit.ts'
import { credentialRoutes } from './credentials.ts'
import { keyRoutes } from './keys.ts'
import { settingsRoutes } from './settings.ts'

/** What people manage of the gateway. Contract: gateway.md 3.5. */
export const gatewayRoutes = (management: GatewayManagement, explain: ExplainRoute): Route[] => [
  ...credentialRoutes(management.credentials, management.trial),
  ...aliasRoutes(management.aliases),
  ...keyRoutes(management.keys, management.states),
  ...settingsRoutes(management.settings, management.metricsTokens),
  ...auditRoutes(management.audit),
  bodyRoute({ method: 'POST', path: `${GATEWAY}/route`, needs: 'session' }, routeRequest, async ({ caller }, body) =>
    explainTo(caller, management.states, explain, { ...body, keyId: body.key_id }),
  ),
]
