import type { Usage } from './budget.ts'
import type { Party, Scope, Visibility } from './fields.ts'

/** Contract: kernel-1.md 2, 16. */

export const SEVERITIES = ['debug', 'info', 'warning', 'error'] as const
export type Severity = (typeof SEVERITIES)[number]

/** What an event says before the store numbers it. Written in the transaction of the change, and never changed. */
export interface NewEvent {
  id: string
  scope: Scope
  eventType: string
  severity?: Severity
  agentId?: string
  objectiveId?: string
  projectId?: string
  runId?: string
  turnId?: string
  parentRunId?: string
  teamId?: string
  /** The first names the stream where there is no run, project or objective. */
  conversationRefs?: string[]
  actor: Party
  actorSource: 'claimed' | 'host' | 'kernel'
  summary: string
  usageDelta?: Usage
  payload?: Record<string, unknown>
  visibility?: Visibility
  requestId?: string
  correlationId?: string
  causationId?: string
  createdAt: string
}

export interface ActivityEvent extends NewEvent {
  /** Gapless within the stream: the run, else project, objective, conversation; else the scope. */
  sequence: number
  severity: Severity
  visibility: Visibility
  conversationRefs: string[]
}

export const CATEGORIES = [
  'run',
  'turn',
  'action',
  'approval',
  'skill',
  'artifact',
  'handoff',
  'objective',
  'project',
  'message',
  'system',
  'activity',
] as const
const categories: ReadonlySet<string> = new Set(CATEGORIES)

/** The first part of an event's name, where it is a category of its own. */
export function categoryOf(eventType: string): string {
  const first = eventType.slice(0, eventType.indexOf('.'))
  return categories.has(first) ? first : 'activity'
}
