import type { ActionFailure, Run } from '../model/run.ts'
import { moveRun } from '../run-states.ts'

/** What a run proposed in vain, and how often it may go on. Contract: kernel-1.md 14.3 */

const MAX_CORRECTIONS = 2
const MAX_RECOVERED = 4

type Invocation = Pick<ActionFailure, 'name' | 'digest'>

/** Why a proposal is not even looked at; undefined when it is. */
export function repeatRefusal({ actionFailures = [] }: Run, { name, digest }: Invocation): string | undefined {
  const open = actionFailures.filter((failure) => failure.open)
  if (open.some((failure) => failure.digest === digest)) {
    return 'this very call came to nothing already: change it, or do something else'
  }
  return open.filter((failure) => failure.name === name).length > MAX_CORRECTIONS
    ? `${name} came to nothing after ${MAX_CORRECTIONS} corrections: do something else`
    : undefined
}

export const noteFailure = (run: Run, { name, digest }: Invocation): Run => ({
  ...run,
  actionFailures: [...(run.actionFailures ?? []), { name, digest, open: true }],
})

/** An action succeeded: what failed before it may be tried again, but stays counted. */
export const noteSuccess = (run: Run): Run =>
  run.actionFailures?.some(({ open }) => open)
    ? { ...run, actionFailures: run.actionFailures.map((failure) => ({ ...failure, open: false })) }
    : run

/** Why a run that failed so often ends; undefined while it may go on. */
export function exhaustion({ actionFailures = [], pendingResults }: Run): Run['error'] {
  if (actionFailures.length <= MAX_RECOVERED) return undefined
  const last = pendingResults.findLast(({ error }) => error !== undefined)?.['error']
  const why = typeof last === 'string' ? `, at last: ${last}` : ''
  return { code: 'action_failures', message: `${actionFailures.length} proposed actions came to nothing${why}` }
}

/** A run that works on: queued, or failed when too much came to nothing. */
export function workOn(run: Run, now: number): Run {
  const error = exhaustion(run)
  return error ? { ...moveRun(run, { to: 'failed', now }), error } : moveRun(run, { to: 'queued', now })
}
