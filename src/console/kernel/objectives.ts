import { tame } from '../../base/tame.ts'
import { accountOfObjective, boundedBy, spentOf } from '../../kernel/budgets.ts'
import { OBJECTIVE_STATES } from '../../kernel/model/objective.ts'
import { OBJECTIVE_MOVES } from '../../kernel/objectives/replace.ts'
import { listObjectives, objectives } from '../../kernel/store/objectives.ts'
import { readRecord } from '../../kernel/store/records.ts'
import { listRuns } from '../../kernel/store/runs.ts'
import { invalidInput } from '../../memory/errors.ts'
import type { Page, PageRequest } from '../pages/page.ts'
import { pageOf, scopeOf, shared, type KernelConsole } from './kernel.ts'

const RUNS_SHOWN = 100

/** The objectives of a scope, the most urgent first. @throws invalid_input 400 */
export async function objectivesPage(console: KernelConsole, request: PageRequest): Promise<Page> {
  const scope = scopeOf(console, request.query('scope'))
  const status = request.query('status')
  const known = OBJECTIVE_STATES.find((state) => state === status)
  if (status !== undefined && known === undefined)
    throw invalidInput(`${status} is not a state of objectives`, 'status')
  const { store, newId } = console.kernel.context
  const filter = known ? { status: [known] } : {}
  const found = await pageOf(console, request, `objectives ${status ?? ''}`, scope, (page) =>
    listObjectives(store.database, scope, filter, { ...page, now: store.now() }),
  )
  return {
    template: './kernel/objectives',
    title: 'Objectives',
    data: {
      ...shared(console, scope),
      objectives: found.items,
      isFirst: found.isFirst,
      nextCursor: found.nextCursor,
      states: OBJECTIVE_STATES,
      status: status ?? '',
      operation: newId(),
    },
  }
}

/** One objective: what it wants, what of its budget is given to runs, and those. @throws not_found */
export async function objectivePage(console: KernelConsole, request: PageRequest): Promise<Page> {
  const scope = scopeOf(console, request.query('scope'))
  const { store, newId } = console.kernel.context
  const { database } = store
  const objective = await readRecord(database, objectives, scope, request.param('id'))
  const runs = await listRuns(database, scope, { objectiveId: objective.id }, 'created_desc', { limit: RUNS_SHOWN })
  const allocated = spentOf(accountOfObjective(objective))
  return {
    template: './kernel/objective',
    title: tame(objective.title.slice(0, 80)),
    data: {
      ...shared(console, scope),
      objective,
      moves: OBJECTIVE_MOVES[objective.status],
      bounds: boundedBy(objective.budget ?? {}).map(({ dimension: name, limit }) => ({
        name,
        used: allocated[name] ?? 0,
        limit,
      })),
      runs: runs.items,
      hasMoreRuns: runs.next !== undefined,
      operation: newId(),
    },
  }
}
