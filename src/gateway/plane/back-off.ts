import type { UpstreamFault } from '../exchange/exchange.ts'
import type { Selection } from '../routing/candidate.ts'
import type { FinishedAttempt, PlaneParts } from './parts.ts'

const FIRST_BACK_OFF_MS = 250
const MAX_BACK_OFF_MS = 4000
/** A timer may be a little early. */
const EARLY_MS = 2

interface Failed {
  readonly latest: UpstreamFault
  /** From 1. */
  readonly times: number
  readonly attempts: readonly FinishedAttempt[]
  /** Until the request must be over. */
  readonly leftMs: number
}

/**
 * How long to wait before those that failed are tried again: they may be picked from then on. Contract: gateway.md 4.4.
 * @throws UpstreamFault when that would be too long, or none is left
 */
export function backOffMs(
  { random, settings }: Pick<PlaneParts, 'random' | 'settings'>,
  selection: Selection,
  { latest, times, attempts, leftMs }: Failed,
): number {
  const restMs = selection.again() ? selection.waitMs() : undefined
  if (restMs === undefined) throw latest
  const bound = Math.min(FIRST_BACK_OFF_MS * 2 ** (times - 1), MAX_BACK_OFF_MS)
  const waitMs = restMs > 0 ? restMs + EARLY_MS : bound * (0.5 + random() / 2)
  const isTooLong = restMs > settings.maxRetryAfterMs || waitMs > leftMs
  const wasLimited = attempts.some((each) => each.class === 'rate')
  // Who asked to wait is waited for; who rests after failures is not.
  if (isTooLong || (restMs > 0 && !wasLimited)) throw latest
  return waitMs
}
