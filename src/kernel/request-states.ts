import { toTimestamp } from '../base/clock.ts'
import { conflict } from './errors.ts'
import type { AgentRequest, RequestStatus } from './model/request.ts'

/** The life of a request between agents. Contract: kernel-1.md 8. */

const MOVES: Record<RequestStatus, readonly RequestStatus[]> = {
  pending: ['clarification_requested', 'accepted', 'rejected', 'canceled'],
  clarification_requested: ['pending', 'accepted', 'rejected', 'canceled'],
  accepted: ['completion_review', 'completed', 'failed', 'canceled'],
  completion_review: ['completed', 'rejected', 'canceled'],
  completed: [],
  rejected: [],
  failed: [],
  canceled: [],
}

export const isOpen = (status: RequestStatus): boolean => MOVES[status].length > 0
export const OPEN_STATES = ['pending', 'clarification_requested', 'accepted', 'completion_review'] as const

/** The request in its next state, with what follows from the state alone. @throws conflict when the move is illegal */
export function moveRequest(request: AgentRequest, to: RequestStatus, now: number): AgentRequest {
  if (request.status === to) throw conflict(`the ${request.kind} is ${to} already`)
  if (!MOVES[request.status].includes(to))
    throw conflict(`a ${request.kind} that is ${request.status} cannot become ${to}`)
  const at = toTimestamp(now)
  const isReviewed = request.status === 'completion_review' && to !== 'canceled'
  return {
    ...request,
    status: to,
    ...(to === 'accepted' && { acceptedAt: at }),
    ...(isReviewed && { reviewedAt: at }),
    ...(to === 'completed' && { completedAt: at }),
    ...(!isOpen(to) && { resolvedAt: at }),
  }
}

export interface Verdict {
  to: Extract<RequestStatus, 'completed' | 'rejected' | 'completion_review'>
  /** As many votes as the quorum asks for are there, and they differ. */
  split: boolean
}

/**
 * What the reviews come to: the first side with a quorum of votes decides; after a split vote one more review that resolves
 * it does, whatever the votes.
 */
export function verdictOf(
  votes: readonly { approve: boolean }[],
  quorum: number,
  resolvedBy?: { approve: boolean },
): Verdict {
  if (resolvedBy) return { to: resolvedBy.approve ? 'completed' : 'rejected', split: false }
  const approvals = votes.filter(({ approve }) => approve).length
  const rejections = votes.length - approvals
  if (approvals >= quorum) return { to: 'completed', split: false }
  if (rejections >= quorum) return { to: 'rejected', split: false }
  return { to: 'completion_review', split: votes.length >= quorum }
}
