import { listActivations } from '../../kernel/store/activations.ts'
import { listDeployed } from '../../kernel/store/deployments.ts'
import { listWorkers } from '../../kernel/store/workers.ts'
import { invalidInput } from '../../memory/errors.ts'
import type { Page, PageRequest } from '../pages/page.ts'
import { scopeOf, shared, type KernelConsole } from './kernel.ts'

const PAGE = 50
const STEPS = 10
/** A pool that was silent for so long is gone. */
const SILENT_MS = 30_000

/** The agents and teams of a scope, how they came to their versions, and who works for them. @throws invalid_input 400 */
export async function deploymentsPage(console: KernelConsole, request: PageRequest): Promise<Page> {
  const scope = scopeOf(console, request.query('scope'))
  const { store, newId } = console.kernel.context
  const { database } = store
  const offset = Number(request.query('offset') ?? 0)
  if (!Number.isInteger(offset) || offset < 0 || offset > 1_000_000)
    throw invalidInput('offset must be a number', 'offset')
  const page = { limit: PAGE + 1, offset }
  const [agents, teams, workers] = await Promise.all([
    listDeployed(database, 'agent', scope, page),
    listDeployed(database, 'team', scope, page),
    listWorkers(database, scope, store.now() - SILENT_MS),
  ])
  const withSteps = await Promise.all(
    agents.slice(0, PAGE).map(async ({ deployment, definition }) => ({
      deployment,
      definition,
      steps: (await listActivations(database, 'agent', scope, deployment.id, { limit: STEPS })).items,
    })),
  )
  return {
    template: './kernel/deployments',
    title: 'Deployments',
    data: {
      ...shared(console, scope),
      agents: withSteps,
      teams: teams.slice(0, PAGE),
      workers,
      operation: newId(),
      isFirst: offset === 0,
      ...(Math.max(agents.length, teams.length) > PAGE && { nextOffset: `${offset + PAGE}` }),
    },
  }
}
