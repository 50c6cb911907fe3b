import { toTimestamp } from '../../base/clock.ts'
import { aboutRun, type Change } from '../change.ts'
import type { Run } from '../model/run.ts'
import type { Turn } from '../model/turn.ts'
import type { ModelFailure } from '../ports.ts'
import { moveRun, pauseRun } from '../run-states.ts'
import { settleTurn } from '../runs/reservations.ts'
import { saveMoved } from '../runs/save.ts'
import { saveRecord } from '../store/records.ts'
import { findTurn, turns } from '../store/turns.ts'
import { reportTransition } from './apply.ts'
import { discardTurn } from './discard.ts'
import { changeHeld, type Held } from './held.ts'
import type { TurnParts } from './parts.ts'

/** What follows when a model gives no outcome. Contract: kernel-1.md 14.3 */

const WAITS_MS = [5000, 10_000, 20_000, 40_000]
const MAX_JITTER = 0.2
const MAX_WAIT_MS = 600_000
/** In a row. */
const MAX_FAILURES = 20

/** When a model that is down is asked again: what it asked for wins. */
function waitOf(attempt: number, { retryAfterMs }: ModelFailure, random: number): number {
  if (retryAfterMs !== undefined) return Math.min(retryAfterMs, MAX_WAIT_MS)
  const wait = WAITS_MS[Math.min(attempt, WAITS_MS.length) - 1] ?? 0
  return Math.round(wait * (1 + MAX_JITTER * random))
}

/** Makes a change to a run that is held; of one that is not any more, paused or canceled meanwhile, the turn is closed. */
async function changeOrDiscard(
  parts: TurnParts,
  held: Held,
  turn: Turn,
  fn: (change: Change, run: Run) => Promise<void>,
): Promise<void> {
  const isMade = await changeHeld(parts, held, async (change, run) => {
    await fn(change, run)
    return true
  })
  if (!isMade) await discardTurn(parts, held, turn)
}

/** The run sleeps and goes on with the same turn; after 20 failures in a row it is paused. */
export async function retryLater(parts: TurnParts, held: Held, turn: Turn, failure: ModelFailure): Promise<void> {
  const { hostAttempts = 1 } = turn.usage
  const inRow = ((hostAttempts - 1) % MAX_FAILURES) + 1
  const wait = waitOf(inRow, failure, parts.random())
  await changeOrDiscard(parts, held, turn, async (change, run) => {
    const { tx, now } = change
    change.wakesNobody()
    await saveRecord(tx, turns, { ...turn, error: { code: 'model_unavailable', message: failure.message } }, now)
    const about = { ...aboutRun(run), turnId: turn.id, severity: 'warning' as const }
    if (inRow === MAX_FAILURES) {
      held.run = await saveMoved(change, run, pauseRun(run, 'model_unavailable'))
      const payload = { from: run.status, to: 'paused', reason: 'model_unavailable' }
      change.report({ ...about, eventType: 'run.paused', summary: failure.message, payload })
      return
    }
    const retryAt = toTimestamp(now + wait)
    const wake = { type: 'timer' as const, wakeAt: retryAt }
    held.run = await saveMoved(change, run, moveRun(run, { to: 'sleeping', now, wake }))
    const payload = { turnId: turn.id, hostAttempt: hostAttempts, retryAt, code: 'model_unavailable' }
    change.report({ ...about, eventType: 'turn.retry_scheduled', summary: failure.message, payload })
  })
}

const FAULT_WAIT_MS = 5000
const MAX_FAULT_WAIT_MS = 300_000

/**
 * After a fault of ours the run is given back, and waits longer with each in a row; its turn is gone on with. The event says
 * that, and the log why.
 */
export async function retryAfterFault(parts: TurnParts, held: Held): Promise<void> {
  await changeHeld(parts, held, async (change, run) => {
    if (run.status !== 'running') return
    const { tx, scope, now } = change
    change.wakesNobody()
    const turn = run.lastAppliedTurn + 1
    const count = run.faults?.turn === turn ? run.faults.count + 1 : 1
    const bound = Math.min(FAULT_WAIT_MS * 2 ** (count - 1), MAX_FAULT_WAIT_MS)
    const availableAt = now + Math.round(bound * (1 + MAX_JITTER * parts.random()))
    const begun = await findTurn(tx, scope, run.id, turn)
    const turnId = begun && { turnId: begun.turn.id }
    const queued = moveRun(run, { to: 'queued', now, availableAt })
    held.run = await saveMoved(change, run, { ...queued, faults: { turn, count } })
    change.report({
      ...aboutRun(run),
      ...turnId,
      eventType: 'turn.failed',
      severity: 'error',
      summary: 'internal error: the log of the server says why',
      payload: { ...turnId, code: 'internal_error', retryAt: toTimestamp(availableAt) },
    })
  })
}

/** Turn and run end: the model refuses, or does not learn to answer. */
export async function failTurn(
  parts: TurnParts,
  held: Held,
  turn: Turn,
  error: NonNullable<Run['error']>,
): Promise<void> {
  await changeOrDiscard(parts, held, turn, async (change, run) => {
    const { tx, now, at } = change
    const failed: Turn = { ...turn, status: 'failed', error, nextRunStatus: 'failed', runError: error, completedAt: at }
    await saveRecord(tx, turns, failed, now)
    change.report({
      ...aboutRun(run),
      turnId: turn.id,
      eventType: 'turn.failed',
      severity: 'error',
      summary: error.message,
      payload: { turnId: turn.id, code: error.code },
    })
    const settled = { ...settleTurn(change, run, turn), error }
    held.run = await saveMoved(change, run, moveRun(settled, { to: 'failed', now }))
    reportTransition(change, run, held.run, failed)
  })
}

/** A run that nothing here can work on ends before its turn begins. */
export async function failUnresolved(parts: TurnParts, held: Held, message: string): Promise<void> {
  await changeHeld(parts, held, async (change, run) => {
    const error = { code: 'runner_unresolved', message }
    held.run = await saveMoved(change, run, { ...moveRun(run, { to: 'failed', now: change.now }), error })
    change.report({
      ...aboutRun(run),
      eventType: 'run.transitioned',
      severity: 'error',
      summary: message,
      payload: { from: run.status, to: 'failed', turnSequence: run.lastAppliedTurn, reason: error.code },
    })
  })
}

/** Its agent was paused or retired since the claim: the run is queued, as it would be had nobody claimed it. Contract: kernel-1.md 6.4 */
export async function waitForAgent(parts: TurnParts, held: Held): Promise<void> {
  await changeHeld(parts, held, async (change, run) => {
    held.run = await saveMoved(change, run, moveRun(run, { to: 'queued', now: change.now }))
    change.report({
      ...aboutRun(run),
      eventType: 'run.yielded',
      summary: 'The agent takes no runs now',
      payload: { turnSequence: run.lastAppliedTurn, reason: 'agent_unavailable' },
    })
  })
}
