import type * as z from 'zod'
import type { Change } from '../change.ts'
import { conflict, expectRevision } from '../errors.ts'
import type { AgentRequest, reviewCompletion } from '../model/request.ts'
import { moveRequest, verdictOf } from '../request-states.ts'
import { saveRecord } from '../store/records.ts'
import { requests } from '../store/requests.ts'
import { endRequest, type Stepped } from './end.ts'
import { report } from './events.ts'
import { lockChild, lockRequest } from './lock.ts'
import { expectReviewer, isSame, principalOf } from './parties.ts'

export interface Review extends Pick<
  z.output<typeof reviewCompletion>,
  'expectedRevision' | 'expectedChildRevision' | 'principal' | 'approve' | 'summary' | 'resolveDisagreement'
> {
  /** Hash of the key it came with. */
  reviewKey?: string
}

/**
 * One vote of the requester's side on a completion (T12): the side that has the quorum first decides.
 * @throws forbidden for the worker and strangers; conflict in another state, at another revision, for a second vote, or
 * where there is no disagreement to resolve
 */
export async function review(change: Change, id: string, vote: Review): Promise<Stepped> {
  const { request, source } = await lockRequest(change, id)
  const reviewer = principalOf(change, vote.principal)
  await expectReviewer(change, reviewer, request, source)
  const { approve, summary, reviewKey, resolveDisagreement: resolves = false } = vote
  if (request.status !== 'completion_review')
    throw conflict(`a ${request.kind} that is ${request.status} is not in review`)
  if (resolves && !request.reviewDisagreement) throw conflict('there is no disagreement to resolve')
  if (!resolves && request.completionReviews.some((given) => isSame(given.reviewer, reviewer))) {
    throw conflict(`${reviewer.type}:${reviewer.id} has reviewed this already`)
  }
  expectRevision(vote.expectedRevision, request.revision)
  const child = await lockChild(change, request, vote.expectedChildRevision)
  const completionReviews = [...request.completionReviews, { reviewer, approve, summary, decidedAt: change.at }]
  const quorum = request.delegationPolicy?.completionReviewQuorum ?? 1
  const { to, split } = verdictOf(completionReviews, quorum, resolves ? { approve } : undefined)
  const voted: AgentRequest = {
    ...request,
    completionReviews,
    reviewDisagreement: split,
    completionReviewer: reviewer,
    completionReviewSummary: summary,
    ...(reviewKey !== undefined && { completionReviewKey: reviewKey }),
  }
  report(change, voted, 'review_submitted', source)
  if (request.delegationPolicy?.escalateOnDisagreement && split !== request.reviewDisagreement) {
    report(change, voted, split ? 'split' : 'agreed', source)
  }
  if (to === 'completion_review') {
    const saved = await saveRecord(change.tx, requests, voted, change.now)
    return { request: saved, sourceRun: source, childRun: child }
  }
  const reason = to === 'rejected' ? { resolutionReason: summary } : {}
  const ended = await endRequest(change, { ...moveRequest(voted, to, change.now), ...reason }, source, child)
  return { ...ended, childRun: child }
}
