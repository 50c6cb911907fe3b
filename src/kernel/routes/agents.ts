import {
  installAgent,
  proposeAgentAmendment,
  replaceAgentDeployment,
  rollBack,
  ROLLOUT_STATES,
} from '../model/deployment.ts'
import { agents } from '../registry/agents.ts'
import { scopedId } from '../registry/definitions.ts'
import { readDefinition } from '../registry/family.ts'
import { installAgent as install } from '../registry/install.ts'
import { rollBack as roll } from '../registry/rollback.ts'
import { listCompilations } from '../store/deployments.ts'
import { readRecord } from '../store/records.ts'
import { BOUNDS, deploymentRoutes, stepped, stepReplay } from './deployments.ts'
import { read, write } from './handlers.ts'
import type { Handlers } from './route.ts'

/** Contract: kernel-1.md 11 */
export const agentRoutes: Handlers = {
  ...deploymentRoutes(agents, {
    states: ROLLOUT_STATES,
    replace: replaceAgentDeployment,
    propose: proposeAgentAmendment,
  }),
  'POST /agent-installations': write(
    installAgent,
    {
      keyRequired: true,
      scopes: ({ deployment }) => [deployment.scope],
      replay: async ({ context, scope, query: { manifest } }, id) => {
        const { database } = context.store
        const version = { id: scopedId(scope, manifest.id), version: manifest.version }
        return {
          definition: await readDefinition(database, 'agent', scope, version),
          deployment: await readRecord(database, agents.deployments, scope, id),
          replayed: true,
        }
      },
    },
    async ({ change, body, creation }) => {
      const { isNew, ...installation } = await install(change, body, creation)
      return {
        recordId: installation.deployment.id,
        status: isNew ? 201 : 200,
        answer: () => installation,
      }
    },
  ),
  'POST /agent-deployments/{id}/rollbacks': write(
    rollBack,
    { replay: stepReplay(agents) },
    async ({ change, params: { id = '' }, body }) => stepped(await roll(change, id, body)),
  ),
  'GET /agent-deployments/{id}/compilations': read(BOUNDS, async ({ context, scope, params: { id = '' }, query }) => {
    const { database } = context.store
    await readRecord(database, agents.deployments, scope, id)
    const items = await listCompilations(database, scope, id, query)
    const [latest] = query.offset ? await listCompilations(database, scope, id, { limit: 1 }) : items
    return { apiVersion: 'agent-kernel/v1', ...(latest && { latest }), items }
  }),
}
