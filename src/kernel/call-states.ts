import { clip } from '../base/clip.ts'
import { toTimestamp } from '../base/clock.ts'
import { conflict } from './errors.ts'
import type { ActionCall, CallStatus, FailurePhase } from './model/action.ts'

/** The life of an action call. Contract: kernel-1.md 9. */

const MOVES: Record<CallStatus, readonly CallStatus[]> = {
  waiting_for_approval: ['ready', 'denied', 'canceled'],
  ready: ['running', 'canceled'],
  running: ['succeeded', 'failed', 'ready', 'ambiguous'],
  ambiguous: ['succeeded', 'failed', 'ready'],
  denied: [],
  succeeded: [],
  failed: [],
  canceled: [],
}

/** The call in its next state. @throws conflict when the move is illegal */
export function moveCall(call: ActionCall, to: CallStatus, now: number): ActionCall {
  if (!MOVES[call.status].includes(to)) throw conflict(`a ${call.status} action call cannot become ${to}`)
  const at = toTimestamp(now)
  return {
    ...call,
    status: to,
    ...(to === 'running' && { attempt: call.attempt + 1, startedAt: call.startedAt ?? at }),
    ...(MOVES[to].length === 0 && { completedAt: at }),
  }
}

/** How often and how late a call is tried again. */
export interface RetryPolicy {
  initialBackoffMs: number
  maxBackoffMs: number
}

/** What became of an attempt. */
export type Outcome =
  | { kind: 'succeeded'; output: unknown }
  /** Nothing was done: `retryable` when it was not sent, or the other side says that it may be sent again. */
  | { kind: 'failed'; error: string; phase: FailurePhase; retryable: boolean }
  /** The request left, and no answer came: worker lost, timeout, broken connection. */
  | { kind: 'unknown'; error: string }
  /** The worker was lost before the request left. */
  | { kind: 'not_sent' }

const MAX_ERROR = 1024

/** The call after an attempt. What changes the world and may have been done is not sent again by itself. */
export function finishAttempt(call: ActionCall, outcome: Outcome, retry: RetryPolicy, now: number): ActionCall {
  switch (outcome.kind) {
    case 'succeeded': {
      const { error: _e, failurePhase: _p, ...rest } = moveCall(call, 'succeeded', now)
      return { ...rest, output: outcome.output }
    }
    case 'not_sent':
      return { ...moveCall(call, 'ready', now), availableAt: toTimestamp(now), recoveredRunning: true }
    case 'unknown': {
      const told = { ...call, error: clip(outcome.error, MAX_ERROR), failurePhase: 'unknown' as const }
      const isHarmless = call.sideEffect === 'none' || call.sideEffect === 'read'
      return isHarmless ? tryAgain(told, retry, now) : moveCall(told, 'ambiguous', now)
    }
    case 'failed': {
      const told = { ...call, error: clip(outcome.error, MAX_ERROR), failurePhase: outcome.phase }
      return outcome.retryable ? tryAgain(told, retry, now) : moveCall(told, 'failed', now)
    }
  }
}

function tryAgain(call: ActionCall, retry: RetryPolicy, now: number): ActionCall {
  if (call.attempt >= call.maxAttempts) return moveCall(call, 'failed', now)
  return { ...moveCall(call, 'ready', now), availableAt: toTimestamp(now + backoffMs(call.attempt, retry)) }
}

/** After attempt 1 the initial delay, doubled with each more, up to the greatest. */
export const backoffMs = (attempt: number, { initialBackoffMs, maxBackoffMs }: RetryPolicy): number =>
  Math.min(maxBackoffMs, initialBackoffMs * 2 ** (attempt - 1))
