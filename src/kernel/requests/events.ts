import { clip } from '../../base/clip.ts'
import { aboutRun, type Change } from '../change.ts'
import type { AgentRequest } from '../model/request.ts'
import type { Run } from '../model/run.ts'

/** What is told of a request. Contract: kernel-1.md 16. */

export type Step =
  | 'requested'
  | 'accepted'
  | 'rejected'
  | 'clarification_requested'
  | 'clarification_provided'
  | 'completed'
  | 'review_submitted'
  | 'failed'
  | 'canceled'
  | 'split'
  | 'agreed'

/** A split vote is an escalation of its own, where the team wants it told. */
const ANY = { split: 'escalation.raised', agreed: 'escalation.resolved' } as const

/** Steps that handoffs and escalations have names of their own for. */
const NAMES: Record<AgentRequest['kind'], Partial<Record<Step, string>>> = {
  request: ANY,
  handoff: {
    ...ANY,
    requested: 'handoff.proposed',
    accepted: 'handoff.accepted',
    completed: 'handoff.completed',
    failed: 'handoff.failed',
    canceled: 'handoff.canceled',
  },
  escalation: { ...ANY, requested: 'escalation.raised', completed: 'escalation.resolved' },
}

const SEVERITY: Partial<Record<Step, 'warning'>> = { failed: 'warning', split: 'warning' }

/** Tells of a step, in the stream of the source run. */
export function report(change: Change, request: AgentRequest, step: Step, source: Run): void {
  const { id: requestId, kind, status, childRunId, goal } = request
  const severity = SEVERITY[step]
  change.report({
    ...aboutRun(source),
    ...(request.conversationRefs.length > 0 && { conversationRefs: request.conversationRefs }),
    eventType: NAMES[kind][step] ?? `collaboration.${step}`,
    ...(severity && { severity }),
    summary: `${kind} ${step.replace('_', ' ')}: ${clip(goal, 200)}`,
    payload: { requestId, kind, status, ...(childRunId !== undefined && { childRunId }) },
  })
}
