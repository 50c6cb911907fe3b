import { aboutRun, type Change } from '../change.ts'
import type { StoredOutcome } from '../model/outcome.ts'
import type { Turn } from '../model/turn.ts'
import { storeOutcome } from '../store/turns.ts'
import type { Held } from './held.ts'
import { requestedBy } from './propose.ts'

/**
 * Keeps the outcome and usage of a turn, with what there is to tell of repairs: T4. Gives the turn as written; undefined where the
 * lease is lost, or another went on with the turn. Contract: kernel-1.md 14.4
 */
export async function keepOutcome(
  change: Change,
  { run, fencingToken }: Held,
  turn: Turn,
  outcome: StoredOutcome,
): Promise<Turn | undefined> {
  const kept = await storeOutcome(change.tx, { turn, outcome }, { fencingToken, now: change.now })
  const { repairAttempts } = turn.usage
  if (kept && repairAttempts) {
    change.report({
      ...aboutRun(run),
      turnId: turn.id,
      eventType: 'turn.repaired',
      summary: `Repaired after ${repairAttempts} malformed answers`,
      payload: { turnId: turn.id, repairAttempt: repairAttempts, code: 'invalid_model_output' },
    })
  }
  return kept
}

/** A turn with what came of it. A model that was down before it answered is no error of the turn. */
export const completed = ({ error: _, ...turn }: Turn, { outcome }: StoredOutcome, at: string): Turn => ({
  ...turn,
  status: 'completed',
  skillSelections: outcome.skillDispositions,
  decisions: outcome.decisions,
  requestedActions: requestedBy(outcome),
  outputSummary: outcome.summary,
  ...(outcome.status !== 'running' && { nextRunStatus: outcome.status }),
  ...(outcome.wakeCondition && { wakeCondition: outcome.wakeCondition }),
  ...(outcome.error && { runError: outcome.error }),
  completedAt: at,
})
