import type * as z from 'zod'
import type { Change } from '../change.ts'
import { expectRevision } from '../errors.ts'
import type { Party } from '../model/fields.ts'
import type { AgentRequest, respondToRequest } from '../model/request.ts'
import type { Run } from '../model/run.ts'
import { moveRequest } from '../request-states.ts'
import { moveRun } from '../run-states.ts'
import { createChild } from '../runs/create.ts'
import { saveMoved } from '../runs/save.ts'
import { waitOf } from '../runs/wake.ts'
import { readRecord, saveRecord } from '../store/records.ts'
import { requests } from '../store/requests.ts'
import { runs } from '../store/runs.ts'
import { assign } from './candidates.ts'
import { endRequest, type Stepped } from './end.ts'
import { report } from './events.ts'
import { lockRequest, type Locked } from './lock.ts'
import { expectParty, principalOf } from './parties.ts'

export type Response = Pick<
  z.output<typeof respondToRequest>,
  'expectedRevision' | 'decision' | 'principal' | 'assignedAgentId' | 'message' | 'decisionRunId'
>

/**
 * The recipient accepts, rejects or asks; the requester answers what was asked (T12).
 * @throws not_found, also for the run that decided; forbidden for others; conflict in another state or at another revision;
 * what making the run throws
 */
export async function respond(change: Change, id: string, response: Response): Promise<Stepped> {
  const { now, tx, scope } = change
  const { request, source } = await lockRequest(change, id)
  if (response.decisionRunId !== undefined) await readRecord(tx, runs, scope, response.decisionRunId)
  const isAnswer = response.decision === 'provide_clarification'
  const principal = principalOf(change, response.principal)
  await expectParty(
    change,
    principal,
    isAnswer ? request.requester : request.recipient,
    isAnswer ? 'requester' : 'recipient',
  )
  const { message } = response
  switch (response.decision) {
    case 'request_clarification':
    case 'provide_clarification': {
      const moved = moveRequest(request, isAnswer ? 'pending' : 'clarification_requested', now)
      expectRevision(response.expectedRevision, request.revision)
      const told = message === undefined ? {} : isAnswer ? { response: message } : { clarification: message }
      const saved = await saveRecord(tx, requests, { ...moved, ...told }, now)
      report(change, saved, isAnswer ? 'clarification_provided' : 'clarification_requested', source)
      return { request: saved, sourceRun: source }
    }
    case 'reject': {
      const moved = moveRequest(request, 'rejected', now)
      expectRevision(response.expectedRevision, request.revision)
      const reason = message === undefined ? {} : { resolutionReason: message }
      return endRequest(change, { ...moved, ...reason }, source)
    }
    case 'accept': {
      const moved = moveRequest(request, 'accepted', now)
      expectRevision(response.expectedRevision, request.revision)
      return accept(change, { request: moved, source }, response)
    }
  }
}

/** @param request in its next state */
async function accept(
  change: Change,
  { request, source }: Locked,
  { assignedAgentId = request.assignedAgentId, message }: Response,
): Promise<Stepped> {
  const { tx, scope, now } = change
  const agentId = await assign(tx, scope, request, assignedAgentId)
  const { child } = await createChild(change, source, childOf(request, source, agentId))
  const childRun = agentId === undefined ? await outside(change, child, request.id) : child
  const isTeam = request.recipient.type === 'team'
  const saved = await saveRecord(
    tx,
    requests,
    {
      ...request,
      childRunId: child.id,
      ...(message !== undefined && { response: message }),
      ...(agentId !== undefined && { assignedAgentId: agentId }),
      ...(agentId !== undefined && isTeam && { assignmentDecision: { deploymentId: agentId, reason: 'accepted' } }),
    },
    now,
  )
  report(change, saved, 'accepted', source)
  const next = request.kind === 'handoff' ? handedOff(source, now) : depending(source, request.id, now)
  const sourceRun = next === source ? source : await saveMoved(change, source, next)
  return { request: saved, sourceRun, childRun }
}

/** What a person does is no worker's: the run waits for the completion. */
const outside = (change: Change, child: Run, requestId: string): Promise<Run> =>
  saveMoved(
    change,
    child,
    moveRun(child, {
      to: 'waiting_for_agent',
      now: change.now,
      wake: { type: 'agent_request', reference: `${requestId}:completion` },
    }),
  )

const SOURCES = { request: 'agent_request', handoff: 'handoff', escalation: 'escalation' } as const

function childOf(request: AgentRequest, source: Run, agentId: string | undefined): Parameters<typeof createChild>[2] {
  const objectiveId = request.objectiveId ?? source.objectiveId
  return {
    kind: 'agent_work',
    source: SOURCES[request.kind],
    owner: request.kind === 'handoff' ? ownerOf(request.recipient, source) : source.owner,
    goal: request.goal,
    priority: source.priority,
    context: contextOf(request),
    ...(request.childCheckpoint && { checkpoint: request.childCheckpoint }),
    ...(objectiveId !== undefined && { objectiveId }),
    ...(source.projectId !== undefined && { projectId: source.projectId }),
    ...(agentId !== undefined && { assignedAgentId: agentId }),
    ...(request.budgetAllocation && { budget: request.budgetAllocation }),
    isAllocated: true,
  }
}

/** Agents and teams own runs; what a person takes over stays with its owner. */
const ownerOf = ({ type, id }: Party, { owner }: Run): Run['owner'] =>
  type === 'agent' || type === 'team' ? { type, id } : owner

/** What the one who works on it, or decides on it, is told. */
export function contextOf(request: AgentRequest): Record<string, unknown> {
  const { id, kind, requester, instructions, semanticRole, acceptanceCriteria, artifactRequirements, sharedContext } =
    request
  const { clarification, response } = request
  return {
    request: {
      id,
      kind,
      requester,
      ...(instructions !== undefined && { instructions }),
      ...(semanticRole !== undefined && { semanticRole }),
      ...(acceptanceCriteria !== undefined && { acceptanceCriteria }),
      ...(artifactRequirements.length > 0 && { artifactRequirements }),
      ...(sharedContext !== undefined && { sharedContext }),
      ...(clarification !== undefined && { clarification }),
      ...(response !== undefined && { response }),
    },
  }
}

/** @throws conflict where the source neither runs nor waits: it has to be resumed first */
const handedOff = (source: Run, now: number): Run => moveRun(source, { to: 'completed', now, handoff: true })

/** A source that waits for this request waits for its work now. */
function depending(source: Run, requestId: string, now: number): Run {
  const wake = waitOf(source)
  if (wake?.type !== 'agent_request' || wake.reference !== requestId) return source
  if (source.status === 'paused') return { ...source, pausedFrom: 'waiting_for_dependency' }
  return moveRun(source, { to: 'waiting_for_dependency', now, wake })
}
