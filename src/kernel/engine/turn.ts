import { prepareAction } from '../actions/propose.ts'
import type { Agent } from '../actions/resolve.ts'
import { aboutRun, type Change } from '../change.ts'
import type { Outcome, StoredOutcome } from '../model/outcome.ts'
import type { Run } from '../model/run.ts'
import type { Turn } from '../model/turn.ts'
import { resolveDeployment } from '../registry/resolve.ts'
import { storeOutcome } from '../store/turns.ts'
import { applyTurn } from './apply.ts'
import { askModel, type Answer } from './ask.ts'
import { beginTurn, type Begun } from './begin.ts'
import { discardTurn } from './discard.ts'
import { shownBy, type Surroundings } from './envelope.ts'
import { askForHelp } from './escalation.ts'
import type { Held } from './held.ts'
import type { TurnParts } from './parts.ts'
import { requestedBy } from './propose.ts'
import { failTurn, failUnresolved, retryLater } from './setbacks.ts'

export type ReadSurroundings = (run: Run, agent?: Agent) => Promise<Surroundings>

/**
 * One turn of a claimed run: resolve, begin (T3), ask the model, store what it says (T4), judge what it proposes, apply (T5).
 * True when the run is still held and takes another. Contract: kernel-1.md 14.1
 */
export async function takeTurn(
  parts: TurnParts,
  held: Held,
  { readSurroundings, isLast }: { readSurroundings: ReadSurroundings; isLast: boolean },
): Promise<boolean> {
  const { context, onStep } = parts
  const { run } = held
  const agent = context.agents ? await resolveDeployment(context.store.database, run.scope, run) : undefined
  if (context.agents && !agent) {
    await failUnresolved(parts, held, 'no agent that is installed and active executes this run')
    return false
  }
  if (agent && (await askForHelp(parts, held, agent))) return false
  const begun = await beginTurn(parts, held, await readSurroundings(run, agent), agent)
  if (!begun) return false
  onStep?.('begun')
  const { stored: before } = begun
  const ready = before ? { turn: begun.turn, stored: before } : await answered(parts, held, begun)
  if (!ready) return false
  const { turn, stored } = ready
  const { action } = stored.outcome
  const prepared = action && agent && (await prepareAction(context, held.run, agent, action))
  const application = { turn, ...stored, ...(agent && { agent }), ...(prepared && { prepared }), isLast }
  if (!(await applyTurn(parts, held, application))) {
    await discardTurn(parts, held, turn)
    return false
  }
  onStep?.('applied')
  return held.run.status === 'running'
}

interface Ready {
  turn: Turn
  stored: StoredOutcome
}

/** Asks the model and stores its outcome; undefined where there is none to apply, and what follows from that is done. */
async function answered(parts: TurnParts, held: Held, begun: Begun): Promise<Ready | undefined> {
  const answer = await askModel(parts, held, begun)
  parts.onStep?.('answered')
  const { turn } = answer
  switch (answer.kind) {
    case 'outcome':
      return store(parts, held, begun, answer)
    case 'discarded':
      await discardTurn(parts, held, turn, answer.reason)
      return undefined
    case 'malformed':
      await failTurn(parts, held, turn, {
        code: 'invalid_model_output',
        message: answer.errors.join('; ').slice(0, 1024),
      })
      return undefined
    case 'failed':
      if (answer.failure.kind === 'unavailable') await retryLater(parts, held, turn, answer.failure)
      else await failTurn(parts, held, turn, { code: 'model_rejected', message: answer.failure.message })
      return undefined
  }
}

/** T4, with what there is to tell of repairs. */
async function store(
  parts: TurnParts,
  held: Held,
  { envelope }: Begun,
  { turn, outcome }: Extract<Answer, { kind: 'outcome' }>,
): Promise<Ready | undefined> {
  const { fencingToken, run } = held
  const now = parts.context.store.now()
  const stored: StoredOutcome = { outcome, shown: shownBy(envelope) }
  const kept = { turn: completed(turn, outcome, new Date(now).toISOString()), outcome: stored }
  const saved = await parts.changes.make(async (change) => {
    change.wakesNobody()
    const written = await storeOutcome(change.tx, kept, { fencingToken, now })
    if (written && turn.usage.repairAttempts) reportRepairs(change, run, turn)
    return written
  })
  if (saved) {
    parts.onStep?.('stored')
    return { turn: saved, stored }
  }
  await discardTurn(parts, held, turn)
  return undefined
}

function reportRepairs(change: Change, run: Run, { id: turnId, usage: { repairAttempts } }: Turn): void {
  const payload = { turnId, repairAttempt: repairAttempts, code: 'invalid_model_output' }
  const summary = `Repaired after ${repairAttempts} malformed answers`
  change.report({ ...aboutRun(run), turnId, eventType: 'turn.repaired', summary, payload })
}

/** A model that was down before it answered is no error of the turn. */
const completed = ({ error: _, ...turn }: Turn, outcome: Outcome, at: string): Turn => ({
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
