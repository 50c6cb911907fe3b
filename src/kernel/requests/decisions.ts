import * as z from 'zod'
import { clip } from '../../base/clip.ts'
import type { Change } from '../change.ts'
import { respondToRequest, reviewCompletion, type AgentRequest } from '../model/request.ts'
import type { Run, RunSource } from '../model/run.ts'
import { createRun } from '../runs/create.ts'
import { executorOf } from '../store/slots.ts'
import { hasDecisionRun, insertDecisionRun } from '../store/request-runs.ts'
import { findReviewers } from './parties.ts'
import { contextOf, respond } from './respond.ts'
import { review } from './review.ts'

/** Runs in which an agent decides on a request, and may do nothing else. Contract: kernel-1.md 8. */

const BUDGET = {
  maxAttempts: 5,
  maxTurns: 3,
  maxInputTokens: 64_000,
  maxOutputTokens: 4_096,
  maxTotalTokens: 68_096,
  maxDurationMs: 180_000,
}

/** Runs that end with a decision as their output: no action, fork or delegation is theirs. */
export const isDecisionRun = ({ source }: { source: RunSource }): boolean =>
  source === 'agent_request_decision' || source === 'agent_request_completion_review'

/** Whether to take it on. */
const answer = z
  .object({
    decision: z.enum(['accept', 'reject', 'request_clarification']),
    message: respondToRequest.shape.message,
    assignedAgentId: respondToRequest.shape.assignedAgentId,
  })
  .refine(({ decision, message }) => decision !== 'request_clarification' || message !== undefined)

/** Whether what was done is good. */
const vote = reviewCompletion.pick({ approve: true, summary: true })

const HOW = {
  decide:
    'End at once with status completed and this output: {"decision": "accept" | "reject" | "request_clarification", ' +
    '"message": "..."}. A question goes into message; it is needed to ask.',
  review:
    'End at once with status completed and this output: {"approve": true | false, "summary": "..."}. ' +
    'Judge by the acceptance criteria and the evidence.',
} as const

/** Makes the run that decides on a request, locked by the caller, where there is an agent to ask and none is at it. */
export async function startDecisionRun(change: Change, request: AgentRequest, source: Run): Promise<Run | undefined> {
  if (await hasDecisionRun(change.tx, request)) return undefined
  const isReview = request.status === 'completion_review'
  const agentId = isReview ? (await findReviewers(change, request, source))[0] : deciderOf(request)
  if (agentId === undefined) return undefined
  const { goal, completionSummary, acceptanceEvidence, artifacts, candidates } = request
  const run = await createRun(change, {
    kind: 'agent_work',
    source: isReview ? 'agent_request_completion_review' : 'agent_request_decision',
    owner: { type: 'agent', id: agentId },
    goal: isReview
      ? clip(`Review what was done for this request. ${HOW.review}\n\n${goal}`, 65_536)
      : clip(`Decide whether to take this request on. ${HOW.decide}\n\n${goal}`, 65_536),
    priority: source.priority,
    context: {
      ...contextOf(request),
      ...(isReview
        ? {
            completion: {
              summary: completionSummary ?? '',
              artifacts,
              ...(acceptanceEvidence !== undefined && { acceptanceEvidence }),
            },
          }
        : { candidates: candidates.map(({ deploymentId }) => deploymentId) }),
    },
    budget: BUDGET,
  })
  await insertDecisionRun(change.tx, request, run.id)
  return run
}

/** The agent itself; of a team, who is assigned or ranks first. */
const deciderOf = ({ recipient, assignedAgentId, candidates }: AgentRequest): string | undefined =>
  recipient.type === 'agent' ? recipient.id : (assignedAgentId ?? candidates[0]?.deploymentId)

/**
 * Does what a decision run came to; gives false where its output is no decision, which leaves the request to others.
 * @throws as `respond` and `review`
 */
export async function applyDecision(change: Change, request: AgentRequest, run: Run): Promise<boolean> {
  if (run.status !== 'completed') return false
  const { id, revision: expectedRevision } = request
  const agentId = executorOf(run) ?? ''
  const principal = { type: 'agent', id: agentId }
  if (request.status === 'completion_review') {
    const { data } = vote.safeParse(run.output)
    if (data) await review(change, id, { ...data, expectedRevision, principal })
    return data !== undefined
  }
  const { data } = answer.safeParse(run.output)
  if (!data) return false
  const executor = data.assignedAgentId ?? request.assignedAgentId ?? agentId
  await respond(change, id, { ...data, assignedAgentId: executor, expectedRevision, principal, decisionRunId: run.id })
  return true
}
