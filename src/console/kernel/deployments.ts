import { listActivations } from '../../kernel/store/activations.ts'
import { listDeployed } from '../../kernel/store/deployments.ts'
import { listWorkers } from '../../kernel/store/workers.ts'
import type { Page, PageRequest } from '../pages/page.ts'
import { scopeOf, shared, type KernelConsole } from './kernel.ts'

const MOST = 200
const STEPS = 10
/** A pool that was silent for so long is gone. */
const SILENT_MS = 30_000

/** The agents and teams of a scope, how they came to their versions, and who works for them. */
export async function deploymentsPage(console: KernelConsole, request: PageRequest): Promise<Page> {
  const scope = scopeOf(console, request.query('scope'))
  const { store, newId } = console.kernel.context
  const { database } = store
  const [agents, teams, workers] = await Promise.all([
    listDeployed(database, 'agent', scope, { limit: MOST }),
    listDeployed(database, 'team', scope, { limit: MOST }),
    listWorkers(database, scope, store.now() - SILENT_MS),
  ])
  const withSteps = await Promise.all(
    agents.map(async ({ deployment, definition }) => ({
      deployment,
      definition,
      steps: (await listActivations(database, 'agent', scope, deployment.id, { limit: STEPS })).items,
    })),
  )
  return {
    template: './kernel/deployments',
    title: 'Deployments',
    data: { ...shared(console, scope), agents: withSteps, teams, workers, operation: newId() },
  }
}
