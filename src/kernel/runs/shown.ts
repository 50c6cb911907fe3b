import type { Run } from '../model/run.ts'

/** A run as routes show it. */
export function shownRun({
  pendingResults: _p,
  actionFailures: _f,
  escalation: _e,
  faults: _s,
  unpriced: _u,
  ...shown
}: Run): Omit<Run, 'pendingResults' | 'actionFailures' | 'escalation' | 'faults' | 'unpriced'> {
  return shown
}
