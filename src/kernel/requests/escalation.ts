import { toTimestamp } from '../../base/clock.ts'
import { clip } from '../../base/clip.ts'
import { accountOf, boundedBy, remainingIn } from '../budgets.ts'
import { BY_KERNEL, makeChange, type Change } from '../change.ts'
import type { KernelContext } from '../context.ts'
import { KernelError } from '../errors.ts'
import type { BudgetPolicy } from '../model/budget.ts'
import type { AgentDefinition } from '../model/definition.ts'
import type { Party, Scope } from '../model/fields.ts'
import type { Run } from '../model/run.ts'
import { isTerminal } from '../run-states.ts'
import { saveMoved } from '../runs/save.ts'
import { findRecord, lockRecord } from '../store/records.ts'
import { findOverdueEscalations } from '../store/run-escalations.ts'
import { runs, saveRun } from '../store/runs.ts'
import { executorOf } from '../store/slots.ts'
import { createRequest } from './create.ts'

/** The rule by which a run asks for help when its agent does not get on, once. Contract: kernel-1.md 8, 11. */

type Rule = AgentDefinition['escalation']

/** Who is asked where the rule names nobody. */
const OPERATOR: Party = { type: 'role', id: 'operator' }
/** A request that is refused, because too many are open, is tried again so much later. */
const AGAIN_MS = 60_000
const AT_ONCE = 100
const FURTHEST = 256

export const recipientOf = ({ recipient = OPERATOR }: Rule): Party => recipient

/** Whether it has come to nothing so often, or has taken so long, that a run asks for help now. */
export function isStuck({ escalation, actionFailures = [] }: Run, { afterFailures }: Rule, now: number): boolean {
  if (escalation?.requestId !== undefined) return false
  const hasFailed = afterFailures !== undefined && actionFailures.length >= afterFailures
  return hasFailed || (escalation?.dueAt !== undefined && Date.parse(escalation.dueAt) <= now)
}

/**
 * Raises a request of kind escalation for a run and gives the run: it waits for the agent, unless it is paused or waits for
 * something else. One that another works on is left alone.
 * @param fencingToken of who works on it
 */
export async function escalate(
  context: KernelContext,
  scope: Scope,
  runId: string,
  recipient: Party,
  fencingToken?: number,
): Promise<Run> {
  const withRun = async (step: (change: Change, run: Run) => Promise<Run>): Promise<Run> => {
    const { result } = await makeChange(context, scope, BY_KERNEL, async (change) => {
      const run = await lockRecord(change.tx, runs, scope, runId)
      const isOthers = run.status === 'running' && run.fencingToken !== fencingToken
      return isOthers || isTerminal(run.status) || run.escalation?.requestId !== undefined ? run : step(change, run)
    })
    return result
  }
  try {
    return await withRun((change, run) => raise(change, run, recipient))
  } catch (error) {
    if (!(error instanceof KernelError)) throw error
    context.log.warn({ runId, recipient, reason: error.message }, 'a run could not ask for help')
    return withRun(({ tx, now }, run) =>
      saveRun(tx, { ...run, escalation: { recipient, dueAt: toTimestamp(now + AGAIN_MS) } }, now),
    )
  }
}

async function raise(change: Change, run: Run, recipient: Party): Promise<Run> {
  const { goal, actionFailures = [], startedAt } = run
  const agent = { type: 'agent', id: executorOf(run) ?? run.owner.id }
  await refuseCircle(change, run, recipient)
  const { request, source } = await createRequest(
    change,
    {
      kind: 'escalation',
      requester: agent,
      recipient,
      goal: clip(`Help agent ${agent.id}, which does not get on with this: ${goal}`, 65_536),
      sharedContext: {
        runId: run.id,
        failures: actionFailures.map(({ name }) => name),
        ...(startedAt !== undefined && { startedAt }),
      },
      artifactRequirements: [],
      acceptancePolicy: 'recipient_review',
      conversationRefs: [],
      ...halfOfBudget(run),
    },
    run,
  )
  return saveMoved(change, run, { ...source, escalation: { recipient, requestId: request.id } })
}

/** @throws conflict when the agent that is to help is one that asks for help itself, here or further up */
async function refuseCircle({ tx, scope }: Change, run: Run, recipient: Party): Promise<void> {
  let above: Run | undefined = run
  for (let steps = 0; above && steps < FURTHEST; steps++) {
    if (recipient.type === 'agent' && executorOf(above) === recipient.id) {
      throw new KernelError('conflict', `agent ${recipient.id} works on agent run ${above.id} itself`)
    }
    above = above.parentRunId === undefined ? undefined : await findRecord(tx, runs, scope, above.parentRunId)
  }
}

/** The other half stays with the run, for what it waits for. */
function halfOfBudget(run: Run): { budgetAllocation?: BudgetPolicy } {
  const bounded = boundedBy(run.budget ?? {})
  if (bounded.length === 0) return {}
  const account = accountOf(run)
  return {
    budgetAllocation: Object.fromEntries(
      bounded.map(({ dimension }) => [dimension, Math.floor(remainingIn(account, dimension) / 2)]),
    ),
  }
}

/** Raises what is overdue of all scopes, 100 at most; gives their number. What fails of one holds up no other. */
export async function raiseOverdue(context: KernelContext): Promise<number> {
  const { store, log } = context
  const overdue = await findOverdueEscalations(store.database, store.now(), AT_ONCE)
  let raised = 0
  for (const { scope, id: runId, recipient } of overdue) {
    try {
      await escalate(context, scope, runId, recipient)
      raised++
    } catch (error) {
      log.error({ err: error, runId }, 'a run that takes too long could not ask for help')
    }
  }
  return raised
}
