import { resolveAmbiguous } from '../actions/finish.ts'
import { aboutRun, type Change } from '../change.ts'
import { conflict, invalid, notFound } from '../errors.ts'
import type { NewEvent } from '../model/event.ts'
import type { HumanIntervention, Run, RunCommand } from '../model/run.ts'
import { isTerminal, wakeRun } from '../run-states.ts'
import { calls } from '../store/calls.ts'
import { lockRecord } from '../store/records.ts'
import { withGuidance } from './guidance.ts'
import { saveMoved } from './save.ts'
import { waitOf } from './wake.ts'

/** Questions to people, and what an answer does. Contract: kernel-1.md 6.5, 9 */

type Resolution = NonNullable<RunCommand['resolution']>

/**
 * Settles a question with the answer of a person. What a call did is still asked when its run is at its end: until then nobody
 * may do the same again.
 * @throws not_found; conflict when it is settled already; invalid without the outcome that it asks for
 */
export async function settleHumanIntervention(
  change: Change,
  before: Run,
  humanInterventionId: string,
  { resolution = {}, summary }: Pick<RunCommand, 'resolution' | 'summary'>,
): Promise<{ run: Run; event: NewEvent }> {
  const asked = before.humanInterventions.find(({ id }) => id === humanInterventionId)
  if (!asked) throw notFound('human intervention', humanInterventionId)
  const isAboutCall = asked.kind === 'action_outcome'
  const isOpen = asked.status === 'pending' || (isAboutCall && asked.status === 'canceled')
  if (!isOpen) throw conflict(`human intervention ${asked.id} is ${asked.status} already`)
  if (!isAboutCall && isTerminal(before.status))
    throw conflict(`intervene is not possible: the run is ${before.status}`)
  const answered = withAnswer(change, before, asked, resolution)
  const run = isAboutCall
    ? await settleAction(change, answered, asked, resolution)
    : await saveMoved(change, before, isAwaited(answered, asked) ? wakeRun(answered, change.now) : answered)
  const event = change.report({
    ...aboutRun(run),
    eventType: 'run.human_intervention_resolved',
    summary: summary ?? `Answered: ${asked.summary}`,
    payload: { interventionId: asked.id, ...(resolution.outcome && { outcome: resolution.outcome }) },
  })
  return { run, event }
}

/** The note of an answer guides the next turn, if there is one. */
function withAnswer(change: Change, run: Run, asked: HumanIntervention, resolution: Resolution): Run {
  const { actor: resolvedBy } = change.by
  const resolved = { ...asked, status: 'resolved' as const, resolution, resolvedBy, resolvedAt: change.at }
  const humanInterventions = run.humanInterventions.map((other) => (other.id === asked.id ? resolved : other))
  const answered = { ...run, humanInterventions }
  return resolution.note === undefined || isTerminal(run.status)
    ? answered
    : withGuidance(change, answered, resolution.note)
}

function isAwaited(run: Run, { id }: HumanIntervention): boolean {
  const wake = waitOf(run)
  const isAsking = wake?.type === 'human_intervention' || wake?.type === 'credential_request'
  return isAsking && (wake.reference === undefined || wake.reference === id)
}

async function settleAction(
  change: Change,
  run: Run,
  { id, actionCallId }: HumanIntervention,
  resolution: Resolution,
): Promise<Run> {
  if (!resolution.outcome) throw invalid('resolution.outcome is required: succeeded, failed or retry')
  if (actionCallId === undefined) throw new Error(`human intervention ${id} names no action call`)
  const call = await lockRecord(change.tx, calls, change.scope, actionCallId)
  return resolveAmbiguous(change, run, call, resolution)
}
