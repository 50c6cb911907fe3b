/** Who asks, and under which request: what the ledger tells of a mutation. */
export interface Caller {
  requestId: string
  /** Monotonic ms (`performance.now`) at which the request began. */
  startedAt: number
  /** The writing agent, verified; `agent_system` where a mutation names none. */
  agentId: string
  /** First 8 hex digits of SHA-256 of the key in use. */
  apiKeyId?: string
  /** `console` for console actions. */
  userId?: string
  ip?: string
  userAgent?: string
  idempotency?: Idempotency
  /** Ends work nobody waits for any more. */
  signal: AbortSignal
}

export interface Idempotency {
  key: string
  route: string
  bodyHash: string
}
