import { BY_KERNEL, makeChange, type Change } from '../change.ts'
import type { KernelContext } from '../context.ts'
import { KernelError } from '../errors.ts'
import type { Scope } from '../model/fields.ts'
import type { AgentRequest } from '../model/request.ts'
import { isTerminal } from '../run-states.ts'
import { cancelRun } from '../runs/cancel.ts'
import { lockRecord } from '../store/records.ts'
import { findDecisionRuns, findUndecided, settleDecisionRun, type DecisionRun } from '../store/request-runs.ts'
import { runs } from '../store/runs.ts'
import { applyDecision, startDecisionRun } from './decisions.ts'
import { lockRequest } from './lock.ts'
import { respond } from './respond.ts'

const AT_ONCE = 100

/**
 * Brings the requests of a scope on: applies what decision runs came to, accepts what was accepted ahead of time, and has
 * agents decide on the rest. One request that cannot be brought on hinders no other. Contract: kernel-1.md 8.
 * @returns how many requests it brought on
 */
export async function reconcileRequests(context: KernelContext, scope: Scope): Promise<number> {
  return (await settleDecisions(context, scope)) + (await startDecisions(context, scope))
}

async function settleDecisions(context: KernelContext, scope: Scope): Promise<number> {
  let settled = 0
  for (;;) {
    const open = await findDecisionRuns(context.store.database, scope, AT_ONCE)
    for (const decision of open) {
      const step = (change: Change): Promise<boolean> => settleDecision(change, decision)
      // A decision that is refused, because its time is over or the budget too small, leaves the request as it is.
      if (!(await attempt(context, scope, decision.requestId, step))) {
        await makeChange(context, scope, BY_KERNEL, ({ tx }) => settleDecisionRun(tx, scope, decision.runId))
      }
      settled++
    }
    if (open.length < AT_ONCE) return settled
  }
}

async function settleDecision(change: Change, { requestId, revision, runId }: DecisionRun): Promise<boolean> {
  const { tx, scope, context } = change
  const { request, source } = await lockRequest(change, requestId)
  const isOutdated = request.revision !== revision
  // What is handed over must go on: this is looked at again when the source is resumed.
  if (!isOutdated && request.kind === 'handoff' && source.status === 'paused') return true
  const run = await lockRecord(tx, runs, scope, runId)
  if (!(await settleDecisionRun(tx, scope, runId))) return true
  if (isOutdated) {
    if (!isTerminal(run.status)) await cancelRun(change, run, `Request ${requestId} was decided`)
  } else if (!(await applyDecision(change, request, run))) {
    context.log.warn({ requestId, runId, status: run.status }, 'a decision run ended without a decision')
  }
  return true
}

async function startDecisions(context: KernelContext, scope: Scope): Promise<number> {
  let started = 0
  let after: AgentRequest | undefined
  do {
    const undecided = await findUndecided(context.store.database, scope, { ...(after && { after }), limit: AT_ONCE })
    for (const { id } of undecided) {
      if (await attempt(context, scope, id, (change) => decideNext(change, id))) started++
    }
    after = undecided.length === AT_ONCE ? undecided.at(-1) : undefined
  } while (after)
  return started
}

/** False where there is nobody to ask. */
async function decideNext(change: Change, id: string): Promise<boolean> {
  const { request, source } = await lockRequest(change, id)
  const { status, acceptancePolicy, candidates, assignedAgentId = candidates[0]?.deploymentId } = request
  if (status !== 'pending' && status !== 'completion_review') return false
  if (status === 'pending' && acceptancePolicy === 'preauthorized') {
    await respond(change, id, {
      expectedRevision: request.revision,
      decision: 'accept',
      principal: request.recipient,
      ...(request.recipient.type === 'team' && assignedAgentId !== undefined && { assignedAgentId }),
    })
    return true
  }
  return (await startDecisionRun(change, request, source)) !== undefined
}

/** False where the rules refuse it. */
async function attempt(
  context: KernelContext,
  scope: Scope,
  requestId: string,
  step: (change: Change) => Promise<boolean>,
): Promise<boolean> {
  try {
    return (await makeChange(context, scope, BY_KERNEL, step)).result
  } catch (error) {
    if (!(error instanceof KernelError)) throw error
    context.log.debug({ requestId, reason: error.message }, 'a request could not be brought on')
    return false
  }
}
