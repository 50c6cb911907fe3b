import { aboutRun, BY_KERNEL, makeChange, type Attribution, type Change } from '../change.ts'
import type { KernelContext } from '../context.ts'
import type { Scope } from '../model/fields.ts'
import type { PendingResult, Run, WakeCondition } from '../model/run.ts'
import { isTerminal, wakeRun } from '../run-states.ts'
import { lockRecord } from '../store/records.ts'
import { consumeSignal, findDueTimers, findWaiting } from '../store/run-wakes.ts'
import { runs } from '../store/runs.ts'
import { matches, type Signal } from '../wake.ts'
import { addResult } from './results.ts'
import { saveMoved } from './save.ts'

/** Waking runs that wait: T11, the run, the signal it consumed and the event. Contract: kernel-1.md 6.2, 14.4 */

const AT_ONCE = 100

/**
 * Wakes the runs that wait for this, each once, each in a transaction of its own; gives their number.
 * They are found by what they wait for: those that wait for something else are not read.
 */
export async function signalRuns(
  context: KernelContext,
  scope: Scope,
  signal: Signal,
  by: Attribution = BY_KERNEL,
): Promise<number> {
  const { type, reference } = signal
  let woken = 0
  for (let after = '', more = true; more;) {
    const found = await findWaiting(context.store.database, scope, {
      type,
      ...(reference !== undefined && { reference }),
      after,
      limit: AT_ONCE,
    })
    for (const id of found) if (await signalRun(context, scope, id, signal, by)) woken++
    after = found.at(-1) ?? after
    more = found.length === AT_ONCE
  }
  return woken
}

async function signalRun(
  context: KernelContext,
  scope: Scope,
  runId: string,
  signal: Signal,
  by: Attribution,
): Promise<boolean> {
  const { result } = await makeChange(context, scope, by, async (change) => {
    const { tx, now } = change
    const run = await lockRecord(tx, runs, scope, runId)
    const wake = waitOf(run)
    if (!wake || !matches(wake, signal, now) || !(await consumeSignal(tx, scope, runId, signal.id))) return false
    await wakeIn(change, run, { ...signal, signalId: signal.id })
    return true
  })
  return result
}

/** Wakes runs of all scopes whose timer has run out, 100 at most; gives their number. What fails of one holds up no other. */
export async function wakeDueRuns(context: KernelContext): Promise<number> {
  const due = await findDueTimers(context.store.database, context.store.now(), AT_ONCE)
  let woken = 0
  for (const { scope, id: runId } of due) {
    try {
      if (await wakeDueRun(context, scope, runId)) woken++
    } catch (error) {
      context.log.error({ err: error, runId }, 'a run whose time has come could not be woken')
    }
  }
  return woken
}

async function wakeDueRun(context: KernelContext, scope: Scope, runId: string): Promise<boolean> {
  const { result } = await makeChange(context, scope, BY_KERNEL, async (change) => {
    const run = await lockRecord(change.tx, runs, scope, runId)
    const { type, wakeAt = '', reference } = waitOf(run) ?? {}
    if (type !== 'timer' || Date.parse(wakeAt) > change.now) return false
    await wakeIn(change, run, { signalId: `timer:${wakeAt}`, type, ...(reference !== undefined && { reference }) })
    return true
  })
  return result
}

/** What a run waits for; one that is paused, what it remembers. */
export const waitOf = (run: Run): WakeCondition | undefined =>
  run.status === 'paused' ? run.pausedWakeCondition : run.wakeCondition

export interface Wake extends Pick<Signal, 'type' | 'reference'> {
  signalId: string
  /** What the next turn sees of it. */
  result?: PendingResult
}

/**
 * Gives a run, which the caller has locked, the result of something, and wakes it when it waits for just that: into the
 * queue, or, while paused, into remembering the queue. One that waits for something else, or for nothing, gets the result
 * alone; one at its end gets nothing.
 */
export async function wakeIn(change: Change, run: Run, { signalId, type, reference, result }: Wake): Promise<Run> {
  if (isTerminal(run.status)) return run
  const told = result ? addResult(run, result) : run
  const wake = waitOf(run)
  if (wake?.type !== type || (wake.reference !== undefined && wake.reference !== reference)) {
    return result ? saveMoved(change, run, told) : run
  }
  const woken = await saveMoved(change, run, { ...wakeRun(told, change.now), lastWakeSignalId: signalId })
  change.report({
    ...aboutRun(woken),
    eventType: 'run.woken',
    summary: `Woken: ${type}`,
    payload: { signalId, wakeType: type, ...(reference !== undefined && { reference }) },
  })
  return woken
}
