import * as z from 'zod'
import type { Change } from '../change.ts'
import { conflict, expectRevision, invalid } from '../errors.ts'
import { completeRequest, type AgentRequest } from '../model/request.ts'
import type { Run } from '../model/run.ts'
import { moveRequest } from '../request-states.ts'
import { isTerminal, moveRun } from '../run-states.ts'
import { saveMoved } from '../runs/save.ts'
import { saveRecord } from '../store/records.ts'
import { requests } from '../store/requests.ts'
import { endRequest, type Stepped } from './end.ts'
import { report } from './events.ts'
import { lockChild, lockRequest, type Locked } from './lock.ts'
import { expectParty, principalOf } from './parties.ts'

type Body = z.output<typeof completeRequest>
/** What the recipient brings. */
export type Completion = Pick<Body, 'summary' | 'acceptanceEvidence' | 'artifacts'>

export interface CompletionStep
  extends Completion, Pick<Body, 'expectedRevision' | 'expectedChildRevision' | 'principal'> {
  /** Hash of the key it came with. */
  completionKey?: string
}

/**
 * The recipient submits what was asked for, which completes its run (T12).
 * @throws forbidden for others; invalid without the evidence or an artifact that is required; conflict in another state, at
 * another revision, or while the run is paused
 */
export async function complete(change: Change, id: string, step: CompletionStep): Promise<Stepped> {
  const { expectedRevision, expectedChildRevision, principal, completionKey, ...completion } = step
  const locked = await lockRequest(change, id)
  const { request } = locked
  await expectParty(change, principalOf(change, principal), request.recipient, 'recipient')
  if (request.status !== 'accepted') throw conflict(`a ${request.kind} that is ${request.status} cannot be completed`)
  expectRevision(expectedRevision, request.revision)
  const child = await lockChild(change, request, expectedChildRevision)
  const lack = lackOf(request, completion)
  if (lack !== undefined) throw invalid(lack)
  const key = completionKey === undefined ? {} : { completionKey }
  const childRun = await completeRun(change, child, completion)
  const done = await submit(change, { ...locked, request: { ...request, ...key } }, completion, childRun)
  return { ...done, childRun }
}

/** Who does the work outside of the kernel still ran it: the run passes through `running`. */
async function completeRun(change: Change, child: Run, { summary }: Completion): Promise<Run> {
  if (child.status === 'completed') return child
  if (isTerminal(child.status) || child.status === 'paused') {
    throw conflict(`agent run ${child.id} is ${child.status}`)
  }
  const { now } = change
  const running = child.status === 'running' ? child : moveRun(child, { to: 'running', now })
  const next = { ...moveRun(running, { to: 'completed', now }), output: child.output ?? { summary } }
  return saveMoved(change, child, next)
}

/** An empty list or object is no criterion, and no evidence. */
const says = (value: Completion['acceptanceEvidence']): boolean => value !== undefined && Object.keys(value).length > 0

/** What is missing in a completion; undefined when it has all that the request asks for. */
function lackOf(request: AgentRequest, { acceptanceEvidence, artifacts }: Completion): string | undefined {
  if (says(request.acceptanceCriteria) && !says(acceptanceEvidence)) {
    return 'acceptanceEvidence is required: the request has acceptance criteria'
  }
  const required = request.artifactRequirements.filter((requirement) => requirement.required)
  const missing = required.find(
    ({ name, type }) =>
      !artifacts.some(
        (artifact) =>
          (artifact.requirementName ?? artifact.name) === name && (type === undefined || artifact.type === type),
      ),
  )
  return (
    missing && `artifacts must bring ${missing.name}${missing.type === undefined ? '' : ` of type ${missing.type}`}`
  )
}

const ofOutput = z.object({
  summary: completeRequest.shape.summary.catch('Completed'),
  acceptanceEvidence: completeRequest.shape.acceptanceEvidence,
  artifacts: completeRequest.shape.artifacts,
})

/** What the output of a run that completed brings; undefined where an artifact that is required is not in it. */
export function completionOf(request: AgentRequest, { output }: Run): Completion | undefined {
  const { data } = ofOutput.safeParse(output)
  const completion = data ?? { summary: typeof output === 'string' ? output : 'Completed', artifacts: [] }
  if (request.artifactRequirements.length === 0) return completion
  return lackOf(request, completion) === undefined ? completion : undefined
}

/** An accepted request with its completion: to its end, or, where the team asks for it, to review first. */
export async function submit(
  change: Change,
  { request, source }: Locked,
  { summary, acceptanceEvidence, artifacts }: Completion,
  child: Run,
): Promise<{ request: AgentRequest; sourceRun: Run }> {
  const { now, at } = change
  const isReviewed = request.delegationPolicy?.requireCompletionReview === true
  const submitted: AgentRequest = {
    ...moveRequest(request, isReviewed ? 'completion_review' : 'completed', now),
    completionSummary: summary,
    ...(acceptanceEvidence !== undefined && { acceptanceEvidence }),
    artifacts,
    completionSubmittedAt: at,
  }
  if (!isReviewed) return endRequest(change, submitted, source, child)
  const saved = await saveRecord(change.tx, requests, submitted, now)
  report(change, saved, 'review_submitted', source)
  return { request: saved, sourceRun: source }
}
