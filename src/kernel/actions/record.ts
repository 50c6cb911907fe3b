import { accountOf, shortageOf } from '../budgets.ts'
import type { Change } from '../change.ts'
import type { ActionCall } from '../model/action.ts'
import type { PendingResult, Run } from '../model/run.ts'
import type { Turn } from '../model/turn.ts'
import { moveRun } from '../run-states.ts'
import { ONE_ACTION, pauseForBudget, reserveBudget } from '../runs/reservations.ts'
import { addResult } from '../runs/results.ts'
import { calls, findCallByKey, findTwin, lockOperation } from '../store/calls.ts'
import { insertRecord } from '../store/records.ts'
import { askForApproval } from './ask-for-approval.ts'
import { exhaustion, noteFailure, repeatRefusal, workOn } from './failures.ts'
import { resultOf } from './give-back.ts'
import type { PreparedAction } from './propose.ts'
import { reportCall } from './report.ts'

type Judged = Extract<PreparedAction, { kind: 'judged' }>

/**
 * Records in T5 what a turn proposed: call, approval, reservation and events. Gives the run in its next state, not yet
 * saved: waiting, queued with what came of it, paused without budget, or at its end after too many failures.
 * Contract: kernel-1.md 6.2, 9, 14.3, 14.4
 */
export async function recordAction(change: Change, run: Run, turn: Turn, prepared: PreparedAction): Promise<Run> {
  // A run that was paused when too much had come to nothing ends here.
  if (exhaustion(run)) return workOn(run, change.now)
  const digest = prepared.kind === 'refused' ? prepared.digest : prepared.call.invocationDigest
  const repeated = repeatRefusal(run, { name: prepared.name, digest })
  const refusal = repeated ?? (prepared.kind === 'refused' ? prepared.reason : undefined)
  if (refusal !== undefined || prepared.kind === 'refused') {
    return refuse(change, run, { id: turn.id, name: prepared.name, digest, reason: refusal ?? '' })
  }
  const { tx, scope } = change
  const { idempotencyKey = `turn:${turn.id}:action:0`, ...plan } = prepared.call
  const told = { id: turn.id, name: prepared.name, digest }
  const earlier = await findCallByKey(tx, scope, run.id, idempotencyKey)
  if (earlier) return repeatKey(change, run, earlier, told)
  const call: ActionCall = {
    ...plan,
    scope,
    id: change.context.newId(),
    revision: 1,
    createdAt: change.at,
    updatedAt: change.at,
    runId: run.id,
    turnId: turn.id,
    status: 'ready',
    idempotencyKey,
    attempt: 0,
    availableAt: change.at,
  }
  if (prepared.decision.outcome === 'deny') return deny(change, run, call, prepared)
  const twin = await twinOf(change, call)
  if (twin?.status === 'succeeded') return duplicate(change, run, call, prepared, twin)
  if (twin) return refuse(change, run, { ...told, reason: `call ${twin.id} is at this very operation already` })
  const shortage = shortageOf(accountOf(run), ONE_ACTION)
  if (shortage) {
    // Nothing is recorded of the call: the turn after a top-up may propose it again.
    const undone = addResult(run, refusalOf(change, { ...told, reason: 'no action is left in the budget' }))
    return pauseForBudget(change, undone, turn.id, { reservation: ONE_ACTION, shortage })
  }
  const purpose = { id: call.id, turnId: turn.id, summary: 'Reserved for an action' }
  const paid = run.budget ? reserveBudget(change, run, purpose, ONE_ACTION) : run
  return prepared.decision.outcome === 'allow'
    ? allow(change, paid, call, prepared)
    : askForApproval(change, paid, call, prepared)
}

interface Refused {
  /** Of the turn, or of the call where there is one. */
  id: string
  name: string
  digest: string
  reason: string
}

const refusalOf = ({ at }: Change, { id, name, reason }: Refused): PendingResult => ({
  kind: 'error',
  id,
  at,
  status: 'refused',
  action: name,
  error: reason,
})

/** Back into the queue, so that the next turn may correct it. */
const refuse = (change: Change, run: Run, refused: Refused): Run =>
  workOn(noteFailure(addResult(run, refusalOf(change, refused)), refused), change.now)

/** The same call again gives what it gave; another one under the same key is a mistake. */
function repeatKey(change: Change, run: Run, earlier: ActionCall, told: Omit<Refused, 'reason'>): Run {
  if (earlier.invocationDigest !== told.digest) {
    return refuse(change, run, { ...told, reason: `idempotencyKey was used by call ${earlier.id} with other content` })
  }
  if (earlier.status !== 'succeeded') {
    return refuse(change, run, { ...told, reason: `call ${earlier.id} under this idempotencyKey is ${earlier.status}` })
  }
  return workOn(addResult(run, resultOf(earlier, change.at)), change.now)
}

async function deny(change: Change, run: Run, call: ActionCall, { name, decision, summary }: Judged): Promise<Run> {
  const reason = decision.reason ?? 'the policy denies it'
  const denied = { ...call, status: 'denied' as const, error: reason, completedAt: change.at }
  await insertRecord(change.tx, calls, denied)
  reportCall(change, run, denied, 'denied', { summary, policyReason: reason, severity: 'warning' })
  const told = addResult(run, resultOf(denied, change.at))
  return workOn(noteFailure(told, { name, digest: call.invocationDigest }), change.now)
}

async function twinOf({ tx, scope }: Change, { externalOperationDigest }: ActionCall): Promise<ActionCall | undefined> {
  if (externalOperationDigest === undefined) return undefined
  await lockOperation(tx, scope, externalOperationDigest)
  return findTwin(tx, scope, externalOperationDigest)
}

/** Nothing is sent: what the twin gave is the result. */
async function duplicate(
  change: Change,
  run: Run,
  call: ActionCall,
  { summary }: Judged,
  { id: duplicateOfActionCallId, output }: ActionCall,
): Promise<Run> {
  const copied: ActionCall = { ...call, status: 'succeeded', duplicateOfActionCallId, output, completedAt: change.at }
  await insertRecord(change.tx, calls, copied)
  reportCall(change, run, copied, 'duplicate', { summary, reason: `same operation as call ${duplicateOfActionCallId}` })
  return workOn(addResult(run, resultOf(copied, change.at)), change.now)
}

async function allow(change: Change, run: Run, call: ActionCall, { summary }: Judged): Promise<Run> {
  await insertRecord(change.tx, calls, call)
  reportCall(change, run, call, 'proposed', { summary })
  return moveRun(run, {
    to: 'waiting_for_dependency',
    now: change.now,
    wake: { type: 'action', reference: call.id },
  })
}
