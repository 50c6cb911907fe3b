import type { Run } from '../model/run.ts'

/** A run as routes show it. */
export function shownRun({
  pendingResults: _p,
  actionFailures: _f,
  ...shown
}: Run): Omit<Run, 'pendingResults' | 'actionFailures'> {
  return shown
}
