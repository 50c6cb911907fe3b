import { aboutRun, type Change } from '../change.ts'
import type { ActionCall } from '../model/action.ts'
import type { Usage } from '../model/budget.ts'
import type { PendingResult, Run, WakeType } from '../model/run.ts'
import { isTerminal, moveRun, wakeRun } from '../run-states.ts'
import { settleCall } from '../runs/reservations.ts'
import { addResult } from '../runs/results.ts'
import { waitOf } from '../runs/wake.ts'
import { exhaustion, noteFailure, noteSuccess } from './failures.ts'
import { actionName } from './propose.ts'

interface Ended {
  /** What the run waits for. */
  wake: { type: WakeType; reference: string }
  /** What the call really used. */
  used: Usage
  /** More of it than the call tells. */
  more?: Partial<PendingResult>
}

/** What the next turn sees of a call that ended. */
export const resultOf = (call: ActionCall, at: string): PendingResult => ({
  kind: call.status === 'denied' ? 'denied' : 'action',
  id: call.id,
  at,
  status: call.status,
  action: actionName(call.skillId, call.action),
  ...(call.output !== undefined && { output: call.output }),
  ...(call.error !== undefined && { error: call.error }),
})

/**
 * The run, not yet saved, with the end of its call: budget settled, result kept for the next turn, and queued, or failed when
 * too much came to nothing. One at its end is only charged.
 */
export function giveBack(change: Change, run: Run, call: ActionCall, { wake, used, more }: Ended): Run {
  const settled = settleCall(change, run, call, used)
  if (isTerminal(run.status)) return settled
  const told = addResult(settled, { ...resultOf(call, change.at), ...more })
  if (call.status === 'succeeded') return wakeFor(noteSuccess(told), wake, change.now)
  const noted = noteFailure(told, { name: actionName(call.skillId, call.action), digest: call.invocationDigest })
  const error = run.status === 'paused' ? undefined : exhaustion(noted)
  if (!error) return wakeFor(noted, wake, change.now)
  change.report({
    ...aboutRun(run),
    eventType: 'run.transitioned',
    severity: 'error',
    summary: error.message,
    payload: { from: run.status, to: 'failed', reason: error.code },
  })
  return { ...moveRun(noted, { to: 'failed', now: change.now }), error }
}

/** Queued, where it waits for just this. */
function wakeFor(run: Run, { type, reference }: Ended['wake'], now: number): Run {
  const wake = waitOf(run)
  return wake?.type === type && wake.reference === reference ? wakeRun(run, now) : run
}
