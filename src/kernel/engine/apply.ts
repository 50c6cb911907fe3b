import type { Agent } from '../actions/resolve.ts'
import type { PreparedAction } from '../actions/propose.ts'
import { aboutRun, type Change } from '../change.ts'
import { conflict, KernelError } from '../errors.ts'
import type { Run } from '../model/run.ts'
import type { Turn } from '../model/turn.ts'
import { isTerminal, moveRun } from '../run-states.ts'
import { settleTurn } from '../runs/reservations.ts'
import { saveMoved } from '../runs/save.ts'
import { saveRecord } from '../store/records.ts'
import { turns } from '../store/turns.ts'
import { hasNewer, withoutShown } from './envelope.ts'
import { changeHeld, type Held } from './held.ts'
import { keepOutcome } from './keep.ts'
import type { Outcome, Shown, StoredOutcome } from '../model/outcome.ts'
import type { TurnParts } from './parts.ts'
import { hasProposal, propose, refuse } from './propose.ts'

export interface Application extends StoredOutcome {
  turn: Turn
  /** T4 and T5 are one: the outcome is kept with what it does. */
  isUnstored?: boolean
  /** Judged before the transaction. */
  prepared?: PreparedAction
  agent?: Agent
  /** The worker gives the run back after this turn. */
  isLast: boolean
}

/** What was proposed cannot be: the model is told, and may do better. */
class Refused extends Error {}

/**
 * Applies a finished turn in one transaction, with what it proposes: T5. False where the run went on without it: paused,
 * canceled, given newer guidance, or another's. Contract: kernel-1.md 14.4
 */
export async function applyTurn(parts: TurnParts, held: Held, application: Application): Promise<boolean> {
  try {
    return await attempt(parts, held, application, (change, run) => proposed(change, run, application))
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    return attempt(parts, held, application, async (change, run) => refuse(change, run, application, error.message))
  }
}

type Proposing = (change: Change, run: Run) => Promise<Run>

async function proposed(change: Change, run: Run, application: Application): Promise<Run> {
  try {
    return await propose(change, run, application)
  } catch (error) {
    if (error instanceof KernelError) throw new Refused(error.message)
    throw error
  }
}

async function attempt(parts: TurnParts, held: Held, application: Application, next: Proposing): Promise<boolean> {
  const { turn, outcome, shown, isUnstored = false } = application
  const applied = await changeHeld(parts, held, async (change, run) => {
    if (hasNewer(run, shown)) {
      held.abort('newer_guidance')
      return undefined
    }
    if (turn.sequence !== run.lastAppliedTurn + 1) throw conflict(`turn ${turn.sequence} does not follow the last one`)
    const taken = withContent(settleTurn(change, run, turn), outcome, shown)
    const moved = hasProposal(outcome)
      ? await next(change, taken)
      : moveBy(taken, outcome, change.now, application.isLast)
    if (!hasProposal(outcome) && !isTerminal(moved.status)) change.wakesNobody()
    const refused = refusalOf(moved, turn)
    if (refused !== undefined) {
      await saveRecord(change.tx, turns, { ...turn, error: { code: 'refused', message: refused } }, change.now)
    }
    const [saved, kept] = await Promise.all([
      saveMoved(change, run, moved),
      isUnstored ? keepOutcome(change, held, turn, { outcome, shown }) : turn,
    ])
    if (!kept) throw conflict(`turn ${turn.sequence} is not held any more`)
    reportTransition(change, run, saved, turn, refused)
    if (saved.status === 'queued' && !hasProposal(outcome)) reportYield(change, saved, turn)
    return saved
  })
  if (applied) held.run = applied
  return applied !== undefined
}

const withContent = (run: Run, { checkpoint, plan, output }: Outcome, shown: Shown): Run => ({
  ...withoutShown(run, shown),
  ...(checkpoint && { checkpoint }),
  ...(plan !== undefined && { plan }),
  ...(output !== undefined && { output }),
})

/** Where a turn leads that proposes nothing. */
function moveBy(run: Run, { status, summary, error, wakeCondition: wake }: Outcome, now: number, isLast: boolean): Run {
  if (status === 'running') return moveRun(run, { to: isLast ? 'queued' : 'running', now })
  const moved = moveRun(run, { to: status, now, ...(wake && { wake }) })
  return status === 'failed' ? { ...moved, error: error ?? { code: 'agent_failed', message: summary } } : moved
}

/** Why the proposal of a turn came to nothing; undefined where there was none, or it was taken. */
function refusalOf({ pendingResults }: Run, turn: Turn): string | undefined {
  const refusal = pendingResults.findLast(({ id, status }) => id === turn.id && status === 'refused')?.['error']
  return typeof refusal === 'string' ? refusal : undefined
}

/** What the turn made of its run. @param refused why its proposal came to nothing */
export function reportTransition(change: Change, before: Run, after: Run, turn: Turn, refused?: string): void {
  const { skillSelections, decisions, usage, definitionId, definitionVersion, requestedActions } = turn
  change.report({
    ...aboutRun(before),
    turnId: turn.id,
    eventType: 'run.transitioned',
    severity: after.status === 'failed' ? 'error' : 'info',
    summary: turn.outputSummary ?? turn.error?.message ?? `Turn ${turn.sequence}`,
    payload: {
      from: before.status,
      to: after.status,
      turnSequence: turn.sequence,
      skillSelections,
      decisions,
      usage,
      ...(definitionId !== undefined && { definitionId, definitionVersion }),
      ...(requestedActions.length > 0 && { requestedActions }),
      ...(refused !== undefined && { refused }),
      ...(after.budgetAdmission && { admission: after.budgetAdmission }),
    },
  })
}

function reportYield(change: Change, run: Run, { id: turnId, sequence }: Turn): void {
  const payload = { turnSequence: sequence }
  change.report({ ...aboutRun(run), turnId, eventType: 'run.yielded', summary: 'Another turn follows', payload })
}
