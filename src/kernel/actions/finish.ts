import { toTimestamp } from '../../base/clock.ts'
import { finishAttempt, moveCall, type Outcome, type RetryPolicy } from '../call-states.ts'
import { BY_KERNEL, makeChange, type Change } from '../change.ts'
import type { KernelContext } from '../context.ts'
import { conflict } from '../errors.ts'
import type { ActionCall } from '../model/action.ts'
import type { Scope } from '../model/fields.ts'
import type { HumanIntervention, Run, RunCommand } from '../model/run.ts'
import { isTerminal, waitRun } from '../run-states.ts'
import { ONE_ACTION, settleCall } from '../runs/reservations.ts'
import { saveMoved } from '../runs/save.ts'
import { waitOf } from '../runs/wake.ts'
import { endCallLease } from '../store/call-leases.ts'
import { calls } from '../store/calls.ts'
import { lockRecord, readRecord, saveRecord } from '../store/records.ts'
import { runs } from '../store/runs.ts'
import { giveBack } from './give-back.ts'
import { reportCall } from './report.ts'

/** T8: call, run, settlement and events in one transaction. Contract: kernel-1.md 9, 14.4 */

export interface Attempt {
  scope: Scope
  callId: string
  fencingToken: number
  outcome: Outcome
  retry: RetryPolicy
}

/**
 * Ends an attempt of a call; undefined when the lease is another's by now: then the outcome is dropped.
 * The run is locked before the call, as everywhere.
 */
export async function finishCall(context: KernelContext, attempt: Attempt): Promise<ActionCall | undefined> {
  const { scope, callId, fencingToken, outcome, retry } = attempt
  const { runId } = await readRecord(context.store.database, calls, scope, callId)
  const { result } = await makeChange(context, scope, BY_KERNEL, async (change) => {
    const { tx, now } = change
    const run = await lockRecord(tx, runs, scope, runId)
    const before = await lockRecord(tx, calls, scope, callId)
    if (!(await endCallLease(tx, scope, callId, { fencingToken, outcome: outcome.kind, now }))) return undefined
    const after = finishAttempt(before, outcome, retry, now)
    // Of a run at its end nothing is sent again.
    const isOver = after.status === 'ready' && isTerminal(run.status)
    const call = await saveRecord(tx, calls, isOver ? moveCall(after, 'canceled', now) : after, now)
    await tell(change, run, call)
    return call
  })
  return result
}

/** Tells the run, and whoever reads the events, what became of an attempt. */
async function tell(change: Change, run: Run, call: ActionCall): Promise<void> {
  const { action, error: reason } = call
  const why = reason === undefined ? {} : { reason }
  switch (call.status) {
    case 'succeeded':
      reportCall(change, run, call, 'succeeded', { summary: `${action} succeeded` })
      break
    case 'ready':
      reportCall(change, run, call, 'retry_scheduled', {
        summary: `${action} is tried again`,
        severity: 'warning',
        availableAt: call.availableAt,
        ...why,
      })
      return
    case 'ambiguous':
      return askWhatHappened(change, run, call)
    default:
      reportCall(change, run, call, call.status, { summary: `${action} ${call.status}`, severity: 'error', ...why })
  }
  const wake = { type: 'action' as const, reference: call.id }
  await saveMoved(change, run, giveBack(change, run, call, { wake, used: ONE_ACTION }))
}

/** What may have been done is for a person to find out: the run waits for it, unless it is at its end. */
async function askWhatHappened(change: Change, run: Run, call: ActionCall): Promise<void> {
  const summary = `It is not known whether ${call.action} was done`
  const why = call.error === undefined ? {} : { reason: call.error }
  reportCall(change, run, call, 'ambiguous', { summary, severity: 'warning', ...why })
  const asked: HumanIntervention = {
    id: change.context.newId(),
    kind: 'action_outcome',
    status: 'pending',
    actionCallId: call.id,
    summary,
    challenge: [`Find out what ${call.skillId} ${call.action} did under key ${call.idempotencyKey}`],
    createdAt: change.at,
  }
  const wake = { type: 'human_intervention' as const, reference: asked.id }
  const next = isTerminal(run.status)
    ? settleCall(change, run, call, ONE_ACTION)
    : waitRun(run, 'waiting_for_event', wake, change.now)
  await saveMoved(change, run, { ...next, humanInterventions: [...run.humanInterventions, asked] })
  reportCall(change, run, call, 'human_intervention_required', { summary, severity: 'warning', reason: asked.id })
}

/**
 * Ends an ambiguous call as a person says, and gives the run as saved: queued with the result, or waiting for the same call to
 * be sent again under its key; one at its end, which was charged for the call already, as it is.
 * @throws conflict when the call is not ambiguous, or is to be sent again for a run at its end
 */
export async function resolveAmbiguous(
  change: Change,
  run: Run,
  ambiguous: ActionCall,
  { outcome, output }: NonNullable<RunCommand['resolution']>,
): Promise<Run> {
  const { tx, now } = change
  if (ambiguous.status !== 'ambiguous') throw conflict(`action call ${ambiguous.id} is ${ambiguous.status} already`)
  const reason = 'told by a person'
  const isOver = isTerminal(run.status)
  if (outcome === 'retry') {
    if (isOver) throw conflict(`the run is ${run.status}, and nothing of it is sent again: say succeeded or failed`)
    const again = { ...moveCall(ambiguous, 'ready', now), availableAt: toTimestamp(now) }
    const { availableAt, ...call } = await saveRecord(tx, calls, again, now)
    reportCall(change, run, { ...call, availableAt }, 'retry_scheduled', {
      summary: `${call.action} is sent again`,
      reason,
      availableAt,
    })
    return saveMoved(change, run, waitRun(run, 'waiting_for_dependency', { type: 'action', reference: call.id }, now))
  }
  const ended = moveCall(ambiguous, outcome === 'succeeded' ? 'succeeded' : 'failed', now)
  const known = outcome === 'succeeded' && output !== undefined ? { ...ended, output } : ended
  const call = await saveRecord(tx, calls, known, now)
  reportCall(change, run, call, call.status, { summary: `${call.action} ${call.status}`, reason })
  if (isOver) return saveMoved(change, run, run)
  const { reference = '' } = waitOf(run) ?? {}
  const wake = { type: 'human_intervention' as const, reference }
  return saveMoved(change, run, giveBack(change, run, call, { wake, used: ONE_ACTION }))
}
