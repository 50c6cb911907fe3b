import { accountOf, budgetAlarm, reserve, settle, withBudgetState, type Shortage } from '../budgets.ts'
import { aboutRun, type Change } from '../change.ts'
import type { ActionCall } from '../model/action.ts'
import type { Dimension, Usage } from '../model/budget.ts'
import type { Run } from '../model/run.ts'
import type { Turn, TurnUsage } from '../model/turn.ts'
import { pauseRun } from '../run-states.ts'

/** What turns and calls take of the budget of a run. Runs are given back unsaved. Contract: kernel-1.md 5 */

/** What it is for: a turn or a call of it. */
interface Purpose {
  id: string
  turnId?: string
  summary: string
}

const aboutPurpose = (run: Run, { turnId }: Purpose): ReturnType<typeof aboutRun> => ({
  ...aboutRun(run),
  ...(turnId !== undefined && { turnId }),
})

/** The run with this set aside. */
export function reserveBudget(change: Change, run: Run, purpose: Purpose, usage: Usage): Run {
  const { budgetAdmission: _past, ...rest } = run
  change.report({
    ...aboutPurpose(run, purpose),
    eventType: 'budget.reserved',
    severity: 'debug',
    summary: purpose.summary,
    payload: { reservation: purpose.id, usage },
  })
  return { ...rest, budgetReservations: reserve(run.budgetReservations, purpose.id, usage, change.now) }
}

/** The run with what was really used, in place of what was set aside. Tells when its budget comes to an end. */
function settleBudget(change: Change, run: Run, purpose: Purpose, used: Usage): Run {
  const { id, summary } = purpose
  const about = aboutPurpose(run, purpose)
  const { usage, reservations } = settle(accountOf(run), id, used)
  const settled = withBudgetState({ ...run, budgetUsage: usage, budgetReservations: reservations })
  if (Object.hasOwn(run.budgetReservations, id)) {
    change.report({
      ...about,
      eventType: 'budget.reservation_reconciled',
      severity: 'debug',
      summary,
      usageDelta: used,
      payload: { reservation: id, usage: used },
    })
  }
  const alarm = budgetAlarm(accountOf(settled))
  if (alarm && alarm.state !== run.budgetState) {
    const { state, dimension, limit, used: spent } = alarm
    change.report({
      ...about,
      eventType: `budget.${state}`,
      severity: 'warning',
      summary: isClosed(settled, dimension)
        ? COST_UNKNOWN
        : `${state === 'warning' ? 'Little' : 'Nothing'} is left of ${dimension}`,
      payload: { dimension, limit, used: spent },
    })
  }
  return settled
}

const COST_UNKNOWN = 'What the model costs is not known: give it a price, or take the limit in dollars away'

const isClosed = ({ unpriced = false }: Run, dimension: Dimension): boolean => unpriced && dimension === 'maxCostMicros'

/** What an action costs of a budget. */
export const ONE_ACTION = { actions: 1 }

/** The run with what a call used, in place of what was set aside for it. */
export const settleCall = (change: Change, run: Run, { id, turnId }: ActionCall, used: Usage): Run =>
  settleBudget(change, run, { id, ...(turnId !== undefined && { turnId }), summary: 'An action settled' }, used)

/** The run with what a turn used, in place of what was set aside for it; the next turn is another one. */
export function settleTurn(change: Change, { unpriced: _, ...run }: Run, { id, sequence, usage }: Turn): Run {
  const charged = isUnpriced(usage) ? { ...run, unpriced: true } : run
  const settled = settleBudget(change, charged, { id, turnId: id, summary: 'A turn settled' }, chargeOf(usage))
  return { ...settled, lastAppliedTurn: sequence }
}

/** Tokens were used, and nobody knows what they cost: that is not nothing. */
const isUnpriced = ({ inputTokens = 0, outputTokens = 0, costMicros }: TurnUsage): boolean =>
  costMicros === undefined && inputTokens + outputTokens > 0

const chargeOf = ({ inputTokens = 0, outputTokens = 0, costMicros, durationMs = 0 }: TurnUsage): Usage => ({
  turns: 1,
  inputTokens,
  outputTokens,
  ...(costMicros !== undefined && { costMicros }),
  durationMs,
})

/** Pauses a run that cannot afford what comes next. */
export function pauseForBudget(
  change: Change,
  run: Run,
  turnId: string,
  { reservation, shortage }: { reservation: Usage; shortage: Shortage },
): Run {
  const { dimension, required, remaining } = shortage
  const isInput = required > 1 && (dimension === 'maxInputTokens' || dimension === 'maxTotalTokens')
  const isExhausted = remaining === 0
  const about = { ...aboutRun(run), severity: 'warning' as const }
  if (isExhausted && run.budgetState !== 'exhausted') {
    const limit = run.budget?.[dimension]
    const summary = `Nothing is left of ${dimension}`
    change.report({ ...about, eventType: 'budget.exhausted', summary, payload: { dimension, limit, used: limit } })
  }
  change.report({
    ...about,
    eventType: 'run.paused',
    summary: isClosed(run, dimension)
      ? COST_UNKNOWN
      : `Paused: ${required} of ${dimension} is needed, ${remaining} is left`,
    payload: { from: run.status, to: 'paused', reason: 'budget' },
  })
  return {
    ...pauseRun(run, 'budget'),
    ...(isExhausted && { budgetState: 'exhausted' }),
    budgetAdmission: {
      reason: isInput ? 'hosted_input_preflight' : 'reservation_exceeds_remaining',
      dimension,
      required,
      remaining,
      reservation,
      turnId,
      evaluatedAt: change.at,
    },
  }
}
