import { clip } from '../../base/clip.ts'
import { toTimestamp } from '../../base/clock.ts'
import { prepareAction } from '../actions/propose.ts'
import type { Agent } from '../actions/resolve.ts'
import { BY_KERNEL } from '../change.ts'
import type { Ahead } from '../claim.ts'
import type { StoredOutcome } from '../model/outcome.ts'
import type { Run } from '../model/run.ts'
import type { Turn } from '../model/turn.ts'
import { resolveDeployment } from '../registry/resolve.ts'
import { makeShared } from '../shared-changes.ts'
import { executorOf } from '../store/slots.ts'
import { applyTurn, type Application } from './apply.ts'
import { askModel } from './ask.ts'
import { beginTurn, begunAs, type Begun } from './begin.ts'
import { discardTurn } from './discard.ts'
import { shownBy, type Surroundings } from './envelope.ts'
import { askForHelp } from './escalation.ts'
import type { Held } from './held.ts'
import { completed, keepOutcome } from './keep.ts'
import type { TurnParts } from './parts.ts'
import { hasProposal } from './propose.ts'
import { failTurn, failUnresolved, retryLater, waitForAgent } from './setbacks.ts'

export type ReadSurroundings = (run: Run, agent?: Agent) => Promise<Surroundings>

/**
 * One turn of a claimed run: resolve, begin (T3), ask the model, store what it says (T4), judge what it proposes, apply (T5).
 * True when the run is still held and takes another. Contract: kernel-1.md 14.1
 */
export async function takeTurn(
  parts: TurnParts,
  held: Held,
  { readSurroundings, isLast, ahead }: { readSurroundings: ReadSurroundings; isLast: boolean; ahead?: Ahead },
): Promise<boolean> {
  const resolved = ahead ?? (await resolve(parts, held))
  if (!resolved) return false
  const { agent } = resolved
  const surroundings = await readSurroundings(held.run, agent)
  const begun = ahead
    ? begunAs(held.run, ahead.turn, surroundings, parts.context.store.now())
    : await beginTurn(parts, held, surroundings, agent)
  if (!begun) return false
  parts.onStep?.('begun')
  const { turn, stored } = begun
  const under = { ...(agent && { agent }), isLast }
  const isApplied = stored
    ? await apply(parts, held, { turn, ...stored, ...under })
    : await askAndApply(parts, held, begun, under)
  if (isApplied) parts.onStep?.('applied')
  return isApplied && held.run.status === 'running'
}

/** Who takes the turn; undefined where nobody does now, and what follows from that is done. */
async function resolve(parts: TurnParts, held: Held): Promise<{ agent?: Agent } | undefined> {
  const { context } = parts
  if (!context.agents) return {}
  const agent = await resolveDeployment(context.store.database, held.run.scope, held.run)
  if (agent) return (await askForHelp(parts, held, agent)) ? undefined : { agent }
  if (executorOf(held.run) === undefined) await failUnresolved(parts, held, 'the run names no agent that executes it')
  else await waitForAgent(parts, held)
  return undefined
}

type Under = Pick<Application, 'agent' | 'isLast'>

/** Asks the model and applies its outcome; false where there is none, and what follows from that is done. */
async function askAndApply(parts: TurnParts, held: Held, begun: Begun, under: Under): Promise<boolean> {
  const answer = await askModel(parts, held, begun)
  parts.onStep?.('answered')
  const { turn } = answer
  switch (answer.kind) {
    case 'outcome':
      return storeAndApply(parts, held, turn, { outcome: answer.outcome, shown: shownBy(begun.envelope) }, under)
    case 'discarded':
      await discardTurn(parts, held, turn, answer.reason)
      return false
    case 'malformed':
      await failTurn(parts, held, turn, {
        code: 'invalid_model_output',
        message: clip(answer.errors.join('; '), 1024),
      })
      return false
    case 'failed':
      if (answer.failure.kind === 'unavailable') await retryLater(parts, held, turn, answer.failure)
      else await failTurn(parts, held, turn, { code: 'model_rejected', message: answer.failure.message })
      return false
  }
}

/**
 * T4, then T5; of a turn that proposes nothing, where nothing is to be judged between them, in one transaction. When that fails the
 * outcome is stored by itself, so that the model is not asked again.
 */
async function storeAndApply(
  parts: TurnParts,
  held: Held,
  turn: Turn,
  stored: StoredOutcome,
  under: Under,
): Promise<boolean> {
  const { context, onStep } = parts
  const done = completed(turn, stored, toTimestamp(context.store.now()))
  if (!hasProposal(stored.outcome)) {
    const isApplied = await applyTurn(parts, held, { turn: done, ...stored, ...under, isUnstored: true }).catch(
      () => undefined, // what is wrong comes up again
    )
    if (isApplied === false) await discardTurn(parts, held, turn)
    if (isApplied !== undefined) return isApplied
  }
  const { result: saved } = await makeShared(context, turn.scope, BY_KERNEL, (change) => {
    change.wakesNobody()
    return keepOutcome(change, held, done, stored)
  })
  if (!saved) {
    await discardTurn(parts, held, turn)
    return false
  }
  onStep?.('stored')
  return apply(parts, held, { turn: saved, ...stored, ...under })
}

/** T5, with what is to be judged before it. */
async function apply(parts: TurnParts, held: Held, application: Application): Promise<boolean> {
  const {
    turn,
    agent,
    outcome: { action },
  } = application
  const prepared = action && agent && (await prepareAction(parts.context, held.run, agent, action))
  const isApplied = await applyTurn(parts, held, { ...application, ...(prepared && { prepared }) })
  if (!isApplied) await discardTurn(parts, held, turn)
  return isApplied
}
