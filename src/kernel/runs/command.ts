import { canonicalJson } from '../../base/canonical-json.ts'
import { sha256 } from '../../base/hash.ts'
import { accountOf, shortageOf, withBudgetState } from '../budgets.ts'
import { aboutRun, type Change } from '../change.ts'
import { conflict, expectRevision } from '../errors.ts'
import type { BudgetTopUp, Usage } from '../model/budget.ts'
import type { NewEvent } from '../model/event.ts'
import type { Run, RunCommand, RunStatus } from '../model/run.ts'
import { isTerminal, moveRun, pauseRun, resumeRun } from '../run-states.ts'
import { useKey } from '../store/keys.ts'
import { lockRecord } from '../store/records.ts'
import { runs } from '../store/runs.ts'
import { raiseBudget } from './allocations.ts'
import { endCanceled } from './cancel.ts'
import { withGuidance } from './guidance.ts'
import { settleHumanIntervention } from './human-interventions.ts'
import { saveMoved } from './save.ts'

/** Commands to a run: T10. Contract: kernel-1.md 6.5 */

export interface Commanded {
  run: Run
  /** Absent when the command was carried out before. */
  event?: NewEvent
}

type Carried = Promise<{ run: Run; event: NewEvent }>

const COMMANDS: Record<RunCommand['kind'], (change: Change, run: Run, command: RunCommand) => Carried> = {
  pause,
  resume,
  cancel,
  intervene,
}

/**
 * Carries out a command; the same `interventionId` again does nothing.
 * @throws not_found; conflict for a state in which it is not legal, another revision, an `interventionId` of another command
 * or no room in a budget
 */
export async function commandRun(change: Change, runId: string, command: RunCommand): Promise<Commanded> {
  const run = await lockRecord(change.tx, runs, change.scope, runId)
  if (await wasCarriedOut(change, run, command)) return { run }
  checkLegal(run.status, command)
  expectRevision(command.expectedRevision, run.revision)
  return COMMANDS[command.kind](change, run, command)
}

/** @throws conflict when another command had this id */
async function wasCarriedOut(
  { tx, scope, by, now }: Change,
  run: Run,
  { kind, instruction, humanInterventionId, resolution, budgetTopUp, interventionId }: RunCommand,
): Promise<boolean> {
  if (interventionId === undefined) return false
  const content = { kind, instruction, humanInterventionId, resolution, budgetTopUp, actor: by.actor }
  const use = {
    scope,
    route: `interventions of ${run.id}`,
    keyHash: sha256(interventionId),
    fingerprint: sha256(canonicalJson(content)),
  }
  return (await useKey(tx, use, run.id, now)) !== undefined
}

/** Whether a question to a person is open is not the run's to say. @throws conflict */
function checkLegal(status: RunStatus, { kind, humanInterventionId }: RunCommand): void {
  if (humanInterventionId !== undefined) return
  const isLegal =
    kind === 'resume' ? status === 'paused' : !isTerminal(status) && (kind !== 'pause' || status !== 'paused')
  if (!isLegal) throw conflict(`${kind} is not possible: the run is ${status}`)
}

/** Of a command, in the words of the caller where it has any. */
const told = (change: Change, before: Run, run: Run, eventType: string, command: RunCommand): NewEvent =>
  change.report({
    ...aboutRun(run),
    eventType,
    summary: command.summary ?? `${command.kind} by ${change.by.actor.type}:${change.by.actor.id}`,
    payload: {
      from: before.status,
      to: run.status,
      ...(command.summary !== undefined && { reason: command.summary }),
      ...(command.interventionId !== undefined && { interventionId: command.interventionId }),
    },
  })

async function pause(change: Change, before: Run, command: RunCommand): Carried {
  const run = await saveMoved(change, before, pauseRun(before, 'command'))
  return { run, event: told(change, before, run, 'run.paused', command) }
}

async function resume(change: Change, before: Run, command: RunCommand): Carried {
  // Whoever resumes a run that was paused because its cost is unknown lets it go on without knowing.
  const { budgetAdmission: _a, unpriced: _u, ...rest } = before
  const raised = withBudgetState(await withTopUp(change, rest, command.budgetTopUp))
  if (before.pauseReason === 'budget') checkAffordable(raised, before.budgetAdmission)
  const run = await saveMoved(change, before, resumeRun(raised, change.now))
  const event = told(change, before, run, 'run.resumed', command)
  reportTopUp(change, run, command)
  return { run, event }
}

async function cancel(change: Change, before: Run, command: RunCommand): Carried {
  const run = await endCanceled(change, before)
  return { run, event: told(change, before, run, 'run.canceled', command) }
}

async function intervene(change: Change, before: Run, command: RunCommand): Carried {
  const { instruction, interventionId, humanInterventionId } = command
  if (humanInterventionId !== undefined) return settleHumanIntervention(change, before, humanInterventionId, command)
  const raised = await withTopUp(change, before, command.budgetTopUp)
  const guided = instruction === undefined ? raised : withGuidance(change, raised, instruction, interventionId)
  const next = before.status === 'sleeping' ? moveRun(guided, { to: 'queued', now: change.now }) : guided
  const run = await saveMoved(change, before, next)
  const event = told(change, before, run, 'run.intervened', command)
  reportTopUp(change, run, command)
  return { run, event }
}

const withTopUp = async (change: Change, run: Run, added: BudgetTopUp | undefined): Promise<Run> =>
  added ? raiseBudget(change, run, added) : run

function reportTopUp(change: Change, run: Run, { budgetTopUp: added }: RunCommand): void {
  if (!added) return
  change.report({
    ...aboutRun(run),
    eventType: 'run.budget_topped_up',
    summary: 'Budget raised',
    payload: { added, budget: run.budget },
  })
}

/** The least that another attempt and turn take. */
const LEAST: Usage = { attempts: 1, turns: 1, inputTokens: 1, outputTokens: 1, costMicros: 1, durationMs: 1 }

/** @throws conflict naming the dimension that a run was paused for, where it still has too little */
function checkAffordable(run: Run, admission: Run['budgetAdmission']): void {
  const wanted = { ...LEAST, ...admission?.reservation }
  const shortage = shortageOf(accountOf(run), wanted)
  if (!shortage) return
  const { dimension, required, remaining } = shortage
  throw conflict(`the budget is exhausted: ${dimension} needs ${required}, ${remaining} is left; add a budgetTopUp`)
}
