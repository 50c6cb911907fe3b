import { toTimestamp } from '../../base/clock.ts'
import type { Agent } from '../actions/resolve.ts'
import { isDecisionRun } from '../requests/decisions.ts'
import { escalate, isStuck, recipientOf } from '../requests/escalation.ts'
import { saveRun } from '../store/runs.ts'
import { changeHeld, type Held } from './held.ts'
import type { TurnParts } from './parts.ts'

/**
 * Before a turn: asks for help where the rule of the agent says so. True when the run waits for it now, or is not held any
 * more. Contract: kernel-1.md 8
 */
export async function askForHelp(parts: TurnParts, held: Held, { definition }: Agent): Promise<boolean> {
  const { context } = parts
  const { escalation: rule } = definition
  const { run } = held
  if (isDecisionRun(run)) return false
  if (isStuck(run, rule, context.store.now())) {
    held.notice(await escalate(context, run.scope, run.id, recipientOf(rule), held.fencingToken))
  } else if (rule.afterDurationMs !== undefined && !run.escalation) {
    await watchDuration(parts, held, rule.afterDurationMs, recipientOf(rule))
  }
  return held.discard !== undefined
}

/** Notes when the run will have taken too long, so that it asks for help even while nobody works on it. */
const watchDuration = (
  parts: TurnParts,
  held: Held,
  afterMs: number,
  recipient: ReturnType<typeof recipientOf>,
): Promise<unknown> =>
  changeHeld(parts, held, async (change, run) => {
    change.wakesNobody()
    const dueAt = toTimestamp(Date.parse(run.startedAt ?? change.at) + afterMs)
    held.run = await saveRun(change.tx, { ...run, escalation: { recipient, dueAt } }, change.now)
  })
