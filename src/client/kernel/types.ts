/**
 * What the wire shapes of the kernel are made of, and those of the service itself (kernel-1.md 1, 2, 5), as plain types: what
 * `KernelClient` sends and receives.
 * Times are RFC 3339 UTC with milliseconds; an absent key has no value (never null).
 */

/** A partition key; no hierarchy. */
export interface Scope {
  kind: string
  id: string
}

/** Who acts, decides or is asked. */
export interface Party {
  type: string
  id: string
}

export interface Owner {
  type: 'agent' | 'team'
  id: string
}

/** A free-form JSON object. */
export type JsonObject = Record<string, unknown>
/** JSON whose shape is the client's own. */
export type Free = string | unknown[] | JsonObject
export type Visibility = 'private' | 'team' | 'scope'

/** A page of a list; `paginate` follows the cursor. */
export interface Page<Item> {
  items: Item[]
  nextCursor?: string
}

export interface PageQuery {
  limit?: number
  offset?: number
  cursor?: string
}

export interface OwnerQuery {
  ownerType?: Owner['type']
  ownerId?: string
}

/** Of what every record carries. */
export interface Recorded {
  scope: Scope
  id: string
  revision: number
  createdAt: string
  updatedAt: string
  idempotencyKeyHash?: string
  creationFingerprint?: string
}

// Health, capabilities, activity (2)

export interface HealthCheck {
  status: 'ok' | 'degraded' | 'down' | 'not_configured'
  detail?: string
  latencyMs?: number
}

export interface KernelHealth {
  status: 'ok' | 'degraded' | 'down'
  error?: string
  version: string
  startedAt: string
  checks: Record<string, HealthCheck>
}

export interface Capability {
  id: string
  version: string
  available: true
  operations: string[]
  context?: JsonObject
}

export interface CapabilityDocument {
  apiVersion: 'agent-kernel/v1'
  capabilities: Capability[]
}

export interface ActivityQuery {
  runId?: string
  agentId?: string
  objectiveId?: string
  teamId?: string
  projectId?: string
  conversationId?: string
  eventType?: readonly string[]
  severity?: readonly string[]
  visibility?: readonly Visibility[]
  category?: readonly string[]
  order?: 'asc' | 'desc'
  cursor?: string
  limit?: number
  includeDetails?: boolean
}

export interface KernelEvent {
  scope: Scope
  id: string
  sequence: number
  eventType: string
  severity: 'debug' | 'info' | 'warning' | 'error'
  agentId?: string
  objectiveId?: string
  projectId?: string
  runId?: string
  turnId?: string
  parentRunId?: string
  teamId?: string
  actor: Party
  actorSource: 'claimed' | 'host' | 'kernel'
  summary: string
  visibility: Visibility
  createdAt: string
  conversationRefs?: string[]
  usageDelta?: Usage
  payload?: JsonObject
  requestId?: string
  correlationId?: string
  causationId?: string
}

export interface ActivityItem extends KernelEvent {
  category: string
  detailAvailable: boolean
}

export interface ActivityPage {
  items: ActivityItem[]
  /** Also of a page that is the last so far: a follower goes on from it. */
  nextCursor?: string
  hasMore: boolean
}

// Budgets (5)

export interface BudgetLimits {
  maxAttempts?: number
  maxTurns?: number
  maxInputTokens?: number
  maxOutputTokens?: number
  maxTotalTokens?: number
  maxCostMicros?: number
  maxDurationMs?: number
  maxActions?: number
}

/** Omitted is unlimited. */
export interface Budget extends BudgetLimits {
  warningPermille?: number
}

export interface Usage {
  attempts?: number
  turns?: number
  inputTokens?: number
  outputTokens?: number
  costMicros?: number
  durationMs?: number
  actions?: number
}
