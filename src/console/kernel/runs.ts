import { RUN_STATES } from '../../kernel/model/run.ts'
import { listRuns } from '../../kernel/store/runs.ts'
import { invalidInput } from '../../memory/errors.ts'
import type { Page, PageRequest } from '../pages/page.ts'
import { pageOf, scopeOf, shared, type KernelConsole } from './kernel.ts'

/** The runs of a scope, the newest first. @throws invalid_input 400 */
export async function runsPage(console: KernelConsole, request: PageRequest): Promise<Page> {
  const scope = scopeOf(console, request.query('scope'))
  const [status, q] = [request.query('status'), request.query('q')]
  const known = RUN_STATES.find((state) => state === status)
  if (status !== undefined && known === undefined) throw invalidInput(`${status} is not a state of runs`, 'status')
  const { database } = console.kernel.context.store
  const filter = { ...(known && { status: [known] }), ...(q !== undefined && { q }) }
  const list = `runs ${status ?? ''} ${q ?? ''}`
  const found = await pageOf(console, request, list, scope, (page) =>
    listRuns(database, scope, filter, 'created_desc', page),
  )
  return {
    template: './kernel/runs',
    title: 'Runs',
    data: {
      ...shared(console, scope),
      runs: found.items,
      isFirst: found.isFirst,
      nextCursor: found.nextCursor,
      states: RUN_STATES,
      asked: { status: status ?? '', q: q ?? '' },
      operation: console.kernel.context.newId(),
    },
  }
}
