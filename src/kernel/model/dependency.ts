import type { Recorded } from './fields.ts'

/** Children that a run waits for. Contract: kernel-1.md 14.3, 14.4. */

export type GroupStatus = 'open' | 'waiting' | 'satisfied' | 'failed' | 'canceled'
export type DependencyStatus = 'pending' | 'succeeded' | 'failed' | 'canceled'

/** `open` until it is sealed with the turn that made it: no fast child wakes its parent early. */
export interface DependencyGroup extends Recorded {
  runId: string
  status: GroupStatus
  join: 'all' | 'any' | 'quorum'
  /** With join quorum. */
  quorum?: number
  failure: 'fail_fast' | 'wait'
}

export interface Dependency {
  groupId: string
  childId: string
  /** The key that the turn gave the child. */
  name: string
  status: DependencyStatus
}
