import * as z from 'zod'
import { checkDecision, decideApproval, type AskedDecision } from '../actions/decide.ts'
import { APPROVAL_STATES, decideApproval as decisionBody } from '../model/action.ts'
import { id } from '../model/fields.ts'
import { shownRun } from '../runs/shown.ts'
import { approvals, listApprovals } from '../store/approvals.ts'
import { calls } from '../store/calls.ts'
import { readRecord } from '../store/records.ts'
import { runs } from '../store/runs.ts'
import { page, read, write } from './handlers.ts'
import { ownerFilter, ownerOf, several } from './query.ts'
import type { Asked, Handler, Handlers } from './route.ts'

/** A decision as it stands, made before under the same key or id. */
async function replay({ context, scope }: Asked<unknown>, approvalId: string): Promise<object> {
  const { database } = context.store
  const approval = await readRecord(database, approvals, scope, approvalId)
  const call = await readRecord(database, calls, scope, approval.actionCallId)
  const run = shownRun(await readRecord(database, runs, scope, approval.runId))
  return { approval, call, run, resolved: false }
}

const decide = write(
  decisionBody,
  {
    keyRequired: true,
    replay,
    before: async ({ context, scope, params, query: body }, by) => {
      const asked: AskedDecision = { ...body, decisionId: body.decisionId ?? '' }
      await checkDecision(context, scope, params['id'] ?? '', asked, by)
    },
  },
  async ({ change, params, body, idempotencyKey = '' }) => {
    const approvalId = params['id'] ?? ''
    const asked: AskedDecision = { ...body, decisionId: body.decisionId ?? idempotencyKey }
    const { run, ...settled } = await decideApproval(change, approvalId, asked)
    return {
      recordId: approvalId,
      answer: ([event]) => ({ ...settled, run: shownRun(run), ...(event && { event }) }),
    }
  },
)

/** The id of the decision is its key, where no header gives one. */
const byDecisionId: Handler = (incoming) => {
  const decisionId = incoming.idempotencyKey ?? incoming.body?.['decisionId']
  return decide({ ...incoming, ...(typeof decisionId === 'string' && { idempotencyKey: decisionId }) })
}

/** Contract: kernel-1.md 10 */
export const approvalRoutes: Handlers = {
  'GET /action-approvals': page(
    {
      ...ownerFilter,
      runId: id.exactOptional(),
      status: several(APPROVAL_STATES).exactOptional(),
      order: z.enum(['created_asc', 'created_desc']).default('created_asc'),
    },
    ({ context, scope, query: { order, runId, status, ...owner } }, request) => {
      const filter = { ...ownerOf(owner), ...(runId !== undefined && { runId }), ...(status && { status }) }
      return listApprovals(context.store.database, scope, filter, order, request)
    },
  ),
  'GET /action-approvals/{id}': read({}, ({ context, scope, params }) =>
    readRecord(context.store.database, approvals, scope, params['id'] ?? ''),
  ),
  'POST /action-approvals/{id}/decisions': byDecisionId,
}
