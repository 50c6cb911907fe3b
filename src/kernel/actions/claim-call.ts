import { toTimestamp } from '../../base/clock.ts'
import { moveCall } from '../call-states.ts'
import type { ActionCall } from '../model/action.ts'
import type { Scope } from '../model/fields.ts'
import { grantCallLease } from '../store/call-leases.ts'
import { calls, findReadyCall } from '../store/calls.ts'
import { saveRecord } from '../store/records.ts'
import type { KernelStore } from '../store/store.ts'

/** A call in the hands of a worker. */
export interface ClaimedCall {
  call: ActionCall
  fencingToken: number
}

/**
 * Gives the call that is next to a worker, or undefined when there is none. T6: status, attempt, lease and journal in one
 * transaction. Contract: kernel-1.md 9, 14.4
 */
export const claimCall = (
  store: KernelStore,
  scope: Scope,
  { worker: owner, leaseMs }: { worker: string; leaseMs: number },
): Promise<ClaimedCall | undefined> =>
  store.database.transaction(async (tx) => {
    const now = store.now()
    const ready = await findReadyCall(tx, scope, now)
    if (!ready) return undefined
    const call = await saveRecord(tx, calls, moveCall(ready, 'running', now), now)
    const { attempt } = call
    const { fencingToken, expiresAt } = await grantCallLease(tx, scope, call.id, { owner, attempt, now, leaseMs })
    return { fencingToken, call: { ...call, leaseOwner: owner, fencingToken, leaseExpiresAt: toTimestamp(expiresAt) } }
  })
