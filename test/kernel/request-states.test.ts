import fc from 'fast-check'
import { expect, test } from 'vitest'
import { KernelError } from '../../src/kernel/errors.ts'
import { REQUEST_STATES, type AgentRequest, type RequestStatus } from '../../src/kernel/model/request.ts'
import { isOpen, moveRequest, OPEN_STATES, verdictOf } from '../../src/kernel/request-states.ts'
import { fixture } from './support.ts'

const SEED = 20261122
const { at, newId } = fixture()
const NOW = Date.parse(at())

const requestIn = (status: RequestStatus): AgentRequest => ({
  scope: { kind: 'a', id: 'b' },
  id: newId(),
  revision: 1,
  createdAt: at(),
  updatedAt: at(),
  kind: 'request',
  status,
  requester: { type: 'agent', id: 'ana' },
  recipient: { type: 'agent', id: 'bo' },
  sourceRunId: 'r',
  goal: 'Count',
  acceptancePolicy: 'recipient_review',
  artifactRequirements: [],
  conversationRefs: [],
  candidates: [],
  bids: [],
  artifacts: [],
  completionReviews: [],
  reviewDisagreement: false,
})

function allowed(request: AgentRequest, to: RequestStatus): AgentRequest | undefined {
  try {
    return moveRequest(request, to, NOW)
  } catch (error) {
    if (error instanceof KernelError && error.code === 'conflict') return undefined
    throw error
  }
}

test('kernel#77 the moves of a request are those of the contract, and no others', () => {
  const moves = REQUEST_STATES.flatMap((from) =>
    REQUEST_STATES.filter((to) => allowed(requestIn(from), to)).map((to) => `${from} > ${to}`),
  )
  expect(moves).toEqual([
    'pending > clarification_requested',
    'pending > accepted',
    'pending > rejected',
    'pending > canceled',
    'clarification_requested > pending',
    'clarification_requested > accepted',
    'clarification_requested > rejected',
    'clarification_requested > canceled',
    'accepted > completion_review',
    'accepted > completed',
    'accepted > failed',
    'accepted > canceled',
    'completion_review > completed',
    'completion_review > rejected',
    'completion_review > canceled',
  ])
  expect(REQUEST_STATES.filter(isOpen)).toEqual([...OPEN_STATES])
})

test('whatever moves are made: an end is final and has its time, and nothing is completed that was not accepted', () => {
  const target = fc.constantFrom(...REQUEST_STATES)
  fc.assert(
    fc.property(fc.array(target, { maxLength: 20 }), (targets) => {
      let request = requestIn('pending')
      for (const to of targets) {
        const next = allowed(request, to)
        expect(next && !isOpen(request.status)).toBeFalsy()
        request = next ?? request
        const { status, acceptedAt, reviewedAt, completedAt, resolvedAt } = request
        expect(resolvedAt !== undefined).toBe(!isOpen(status))
        expect(completedAt !== undefined).toBe(status === 'completed')
        const wasAccepted = ['completed', 'failed', 'completion_review'].includes(status)
        expect(wasAccepted && acceptedAt === undefined).toBe(false)
        expect(reviewedAt !== undefined && status !== 'completed' && status !== 'rejected').toBe(false)
      }
    }),
    { seed: SEED, numRuns: 500 },
  )
})

test('kernel#78 the first side with a quorum decides; a split that reached it is resolved by one more vote', () => {
  const vote = fc.record({ approve: fc.boolean() })
  fc.assert(
    fc.property(fc.array(vote, { maxLength: 9 }), fc.integer({ min: 1, max: 5 }), vote, (votes, quorum, last) => {
      const approvals = votes.filter(({ approve }) => approve).length
      const rejections = votes.length - approvals
      const decided = approvals >= quorum ? 'completed' : rejections >= quorum ? 'rejected' : 'completion_review'
      const split = decided === 'completion_review' && votes.length >= quorum
      expect(verdictOf(votes, quorum)).toEqual({ to: decided, split })
      expect(split && approvals * rejections === 0).toBe(false)
      expect(verdictOf(votes, quorum, last)).toEqual({ to: last.approve ? 'completed' : 'rejected', split: false })
    }),
    { seed: SEED, numRuns: 500 },
  )
})
