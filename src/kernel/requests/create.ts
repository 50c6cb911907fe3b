import type * as z from 'zod'
import { accountOf, allocate, withBudgetState } from '../budgets.ts'
import type { Change } from '../change.ts'
import { conflict, invalid } from '../errors.ts'
import type { Creation } from '../model/fields.ts'
import type { AgentRequest, createRequest as bodySchema } from '../model/request.ts'
import type { Run } from '../model/run.ts'
import { isTerminal, isWaiting, moveRun } from '../run-states.ts'
import { objectives } from '../store/objectives.ts'
import { insertRecord, readRecord } from '../store/records.ts'
import { requests } from '../store/requests.ts'
import { assign, rankCandidates } from './candidates.ts'
import { checkDelegation, takePlace } from './delegation.ts'
import { report } from './events.ts'
import { expectAuthority } from './parties.ts'

type Body = z.output<typeof bodySchema>

/** What a client, a turn or an escalation rule asks for. */
export type RequestFields = Omit<Body, 'scope' | 'actor' | 'idempotencyKey' | 'kind' | 'sourceRunId'> &
  Pick<AgentRequest, 'kind'> &
  Creation

/**
 * Asks another to do something for a run (T5, T12). Gives the request, and the source run in its next state, unsaved: one that
 * is not paused and waits for nothing yet waits for the agent.
 * @throws forbidden without authority over the run or against the team's limits; conflict for a run at its end, a delegation
 * limit, or a budget without room; invalid, not_found for what the fields name. Contract: kernel-1.md 8
 */
export async function createRequest(
  change: Change,
  fields: RequestFields,
  source: Run,
): Promise<{ request: AgentRequest; source: Run }> {
  const { tx, scope, now, at } = change
  if (fields.acceptancePolicy === 'preauthorized' && !['agent', 'team'].includes(fields.recipient.type)) {
    throw invalid('acceptancePolicy preauthorized is for agents and teams: a person is asked')
  }
  expectAuthority(fields.requester, source)
  const policy = await checkDelegation(change, fields, source)
  if (isTerminal(source.status)) throw conflict(`agent run ${source.id} is ${source.status}`)
  if (fields.assignedAgentId !== undefined) await assign(tx, scope, fields, fields.assignedAgentId)
  if (fields.objectiveId !== undefined) await readRecord(tx, objectives, scope, fields.objectiveId)
  const { delegationPolicy: _asked, budgetAllocation: _wanted, ...asked } = fields
  const budgetAllocation = allocate(accountOf(source), fields.budgetAllocation)
  const request: AgentRequest = {
    ...asked,
    scope,
    id: fields.id ?? change.context.newId(),
    revision: 1,
    createdAt: at,
    updatedAt: at,
    status: 'pending',
    sourceRunId: source.id,
    candidates: await rankCandidates(tx, scope, fields),
    bids: [],
    artifacts: [],
    completionReviews: [],
    reviewDisagreement: false,
    ...(policy && { delegationPolicy: policy }),
    ...(budgetAllocation && { budgetAllocation }),
  }
  await takePlace(change, request, source)
  await insertRecord(tx, requests, request)
  report(change, request, 'requested', source)
  return { request, source: waiting(given(source, request), request, now) }
}

/** The source with what the request may use taken off its budget. */
const given = (source: Run, { id, budgetAllocation }: AgentRequest): Run =>
  budgetAllocation
    ? withBudgetState({ ...source, budgetAllocations: { ...source.budgetAllocations, [id]: budgetAllocation } })
    : source

/** A paused source, or one that waits for something else, stays where it is and has the result later. */
function waiting(source: Run, { id }: AgentRequest, now: number): Run {
  if (source.status === 'paused' || (isWaiting(source.status) && source.status !== 'sleeping')) return source
  return moveRun(source, { to: 'waiting_for_agent', now, wake: { type: 'agent_request', reference: id } })
}
