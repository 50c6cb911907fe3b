import { createObjective, replaceObjective, OBJECTIVE_STATES } from '../model/objective.ts'
import { createObjective as create } from '../objectives/create.ts'
import { replaceObjective as replace } from '../objectives/replace.ts'
import { shownRun } from '../runs/shown.ts'
import { listObjectives, objectives } from '../store/objectives.ts'
import { readRecord } from '../store/records.ts'
import { listRuns } from '../store/runs.ts'
import { page, read, write } from './handlers.ts'
import { ownerFilter, ownerOf, several } from './query.ts'
import type { Handlers } from './route.ts'

const RUNS_SHOWN = 100

/** Contract: kernel-1.md 3 */
export const objectiveRoutes: Handlers = {
  'POST /objectives': write(
    createObjective,
    { replay: ({ context, scope }, id) => readRecord(context.store.database, objectives, scope, id) },
    async ({ change, body, creation }) => {
      const objective = await create(change, body, creation)
      return { recordId: objective.id, status: 201, answer: () => objective }
    },
  ),
  'GET /objectives': page(
    { ...ownerFilter, status: several(OBJECTIVE_STATES).exactOptional() },
    ({ context, scope, query: { status, ...owner } }, request) =>
      listObjectives(
        context.store.database,
        scope,
        { ...ownerOf(owner), ...(status && { status }) },
        { ...request, now: context.store.now() },
      ),
  ),
  'GET /objectives/{id}': read({}, async ({ context, scope, params: { id = '' } }) => {
    const { database } = context.store
    const objective = await readRecord(database, objectives, scope, id)
    const runs = await listRuns(database, scope, { objectiveId: id }, 'created_desc', { limit: RUNS_SHOWN })
    return { objective, runbooks: [], runs: runs.items.map(shownRun) }
  }),
  'PUT /objectives/{id}': write(
    replaceObjective,
    { replay: ({ context, scope }, id) => readRecord(context.store.database, objectives, scope, id) },
    async ({ change, params: { id = '' }, body }) => {
      const objective = await replace(change, id, body)
      return { recordId: objective.id, answer: () => objective }
    },
  ),
}
