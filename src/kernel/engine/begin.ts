import { toTimestamp } from '../../base/clock.ts'
import type { Agent } from '../actions/resolve.ts'
import { narrowed } from '../budgets.ts'
import { BY_KERNEL, type Change } from '../change.ts'
import type { Ahead } from '../claim.ts'
import type { Usage } from '../model/budget.ts'
import type { Envelope } from '../model/envelope.ts'
import type { StoredOutcome } from '../model/outcome.ts'
import type { Run } from '../model/run.ts'
import type { KeptTurn, Turn } from '../model/turn.ts'
import type { ModelHost } from '../ports.ts'
import { resolveDeployment } from '../registry/resolve.ts'
import { pauseForBudget, reserveBudget } from '../runs/reservations.ts'
import { saveMoved } from '../runs/save.ts'
import { makeShared } from '../shared-changes.ts'
import { saveRecord } from '../store/records.ts'
import { holdsLease } from '../store/run-leases.ts'
import { saveRun } from '../store/runs.ts'
import { findTurn, insertTurn, turns } from '../store/turns.ts'
import { composeEnvelope, type Surroundings } from './envelope.ts'
import { changeHeld, type Held } from './held.ts'
import type { TurnParts } from './parts.ts'
import { affordTurn } from './reservation.ts'
import { estimateTokens } from './usage.ts'

/** A turn that the model is to be asked for, or, with `stored`, one whose outcome only has to be applied. */
export interface Begun {
  turn: Turn
  envelope: Envelope
  reservation: Usage
  stored?: StoredOutcome
}

/**
 * Begins the next turn of a run in the transaction that claims it: T3 with T2. Undefined where it is begun as any other: where there
 * is a budget, a rule by which its agent may ask for help first, no agent that works, or a turn that was begun before.
 */
export async function beginAhead(
  change: Change,
  run: Run,
  fencingToken: () => Promise<number>,
): Promise<Ahead | undefined> {
  const { tx, scope, now, context } = change
  const agent = context.agents ? await resolveDeployment(tx, scope, run) : undefined
  if ((context.agents && !agent) || underCeilings(run, agent).budget || run.escalation) return undefined
  const { afterFailures, afterDurationMs } = agent?.definition.escalation ?? {}
  if ((afterFailures ?? afterDurationMs) !== undefined) return undefined
  const turn = newTurn(run, context.newId(), now, agent)
  return (await insertTurn(tx, turn, await fencingToken())) ? { turn, ...(agent && { agent }) } : undefined
}

/**
 * Begins the next turn of a run, or goes on with the one that was begun: the same id, sequence and reservation. T3.
 * Undefined where the budget does not reach and the run is paused, or where it is not held any more. Contract: kernel-1.md 14.1
 */
export async function beginTurn(
  parts: TurnParts,
  held: Held,
  surroundings: Surroundings,
  agent?: Agent,
): Promise<Begun | undefined> {
  const { store, newId } = parts.context
  const run = underCeilings(held.run, agent)
  const now = store.now()
  const turn = newTurn(run, newId(), now, agent)
  const insert = (change: Change): Promise<boolean> => {
    change.wakesNobody()
    return insertTurn(change.tx, turn, held.fencingToken)
  }
  // Without a budget nothing else is written.
  if (!run.budget && (await makeShared(parts.context, run.scope, BY_KERNEL, insert)).result) {
    return begunAs(run, turn, surroundings, now)
  }
  return changeHeld(parts, held, (change, current) => {
    change.wakesNobody()
    return beginOrResume(change, held, underCeilings(current, agent), { turn, surroundings, model: parts.model })
  })
}

/** A turn of a run without a budget, that was just written. */
export const begunAs = (run: Run, turn: Turn, surroundings: Surroundings, now: number): Begun => ({
  turn,
  envelope: composeEnvelope(run, surroundings, turn.id, now),
  reservation: affordTurn(run, () => 0).reservation,
})

/** With no more budget than its agent's definition and deployment allow, whatever it was given. Contract: kernel-1.md 11 */
function underCeilings(run: Run, agent: Agent | undefined): Run {
  const budget =
    agent &&
    narrowed(run.budget, agent.definition.authority.budgetCeilings, agent.deployment.restrictions.budgetCeilings)
  return budget ? { ...run, budget } : run
}

async function beginOrResume(
  change: Change,
  held: Held,
  run: Run,
  { turn, surroundings, model }: { turn: Turn; surroundings: Surroundings; model: ModelHost },
): Promise<Begun | undefined> {
  const { tx, scope, now } = change
  const before = await findTurn(tx, scope, run.id, run.lastAppliedTurn + 1)
  if (before) {
    if (await holdsLease(tx, scope, run.id, held.fencingToken)) return resume(change, run, before, surroundings)
    held.abort('lease_lost')
    return undefined
  }
  const envelope = composeEnvelope(run, surroundings, turn.id, now)
  const { reservation, shortage } = affordTurn(
    run,
    () => estimateTokens(JSON.stringify(envelope)),
    (tokens) => model.costOf?.(tokens),
  )
  if (shortage) {
    held.run = await saveMoved(change, run, pauseForBudget(change, run, turn.id, { reservation, shortage }))
    return undefined
  }
  if (!(await insertTurn(tx, turn, held.fencingToken))) {
    held.abort('lease_lost')
    return undefined
  }
  const purpose = { id: turn.id, turnId: turn.id, summary: 'Reserved for a turn' }
  if (run.budget) held.run = await saveRun(tx, reserveBudget(change, run, purpose, reservation), now)
  return { turn, envelope, reservation }
}

/** Writes the turn, so that who had it before can no more. */
async function resume(change: Change, run: Run, before: KeptTurn, surroundings: Surroundings): Promise<Begun> {
  const { outcome } = before
  const isStored = outcome !== undefined
  const turn = isStored ? before.turn : await saveRecord(change.tx, turns, before.turn, change.now)
  return {
    turn,
    envelope: composeEnvelope(run, surroundings, turn.id, change.now),
    reservation: run.budgetReservations[turn.id]?.usage ?? affordTurn(run, () => 0).reservation,
    ...(isStored && { stored: outcome }),
  }
}

function newTurn(run: Run, id: string, now: number, agent?: Agent): Turn {
  const at = toTimestamp(now)
  return {
    scope: run.scope,
    id,
    revision: 1,
    createdAt: at,
    updatedAt: at,
    runId: run.id,
    sequence: run.lastAppliedTurn + 1,
    status: 'running',
    ...(agent && { definitionId: agent.definition.id, definitionVersion: agent.definition.version }),
    skillSelections: [],
    decisions: [],
    requestedActions: [],
    usage: {},
    startedAt: at,
  }
}
