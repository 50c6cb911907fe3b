import { APPROVAL_STATES } from '../../kernel/model/action.ts'
import { listApprovals } from '../../kernel/store/approvals.ts'
import { calls } from '../../kernel/store/calls.ts'
import { findRecord } from '../../kernel/store/records.ts'
import { runs } from '../../kernel/store/runs.ts'
import { invalidInput } from '../../memory/errors.ts'
import type { Page, PageRequest } from '../pages/page.ts'
import { pageOf, scopeOf, shared, type KernelConsole } from './kernel.ts'

/** What waits for a decision, the oldest first; or what was decided, the newest first. @throws invalid_input 400 */
export const approvalsPage = async (console: KernelConsole, request: PageRequest): Promise<Page> => ({
  template: './kernel/approvals',
  title: 'Approvals',
  data: await approvalsData(console, request),
})

/** All of the page, of which a part changes while decisions are waited for. @throws invalid_input 400 */
export async function approvalsData(console: KernelConsole, request: PageRequest): Promise<object> {
  const scope = scopeOf(console, request.query('scope'))
  const asked = request.query('status') ?? 'pending'
  const status = APPROVAL_STATES.find((state) => state === asked)
  if (status === undefined) throw invalidInput(`${asked} is not a state of approvals`, 'status')
  const { context, wiring } = console.kernel
  const { database } = context.store
  const order = status === 'pending' ? 'created_asc' : 'created_desc'
  const found = await pageOf(console, request, `approvals ${status}`, scope, (page) =>
    listApprovals(database, scope, { status: [status] }, order, { ...page, limit: 20 }),
  )
  const approvals = await Promise.all(
    found.items.map(async (approval) => ({
      approval,
      run: await findRecord(database, runs, scope, approval.runId),
      call: await findRecord(database, calls, scope, approval.actionCallId),
    })),
  )
  return {
    ...shared(console, scope),
    approvals,
    isFirst: found.isFirst,
    cursor: request.query('cursor'),
    nextCursor: found.nextCursor,
    status,
    states: APPROVAL_STATES,
    canDecide: wiring.components.has('approval authorizer'),
    // The forms stay those that were shown first, so that one that is sent twice is done once.
    operation: request.query('operation') ?? context.newId(),
  }
}
