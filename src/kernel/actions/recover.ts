import type { Outcome, RetryPolicy } from '../call-states.ts'
import type { KernelContext } from '../context.ts'
import type { ActionCall } from '../model/action.ts'
import type { Scope } from '../model/fields.ts'
import { bindings } from '../store/bindings.ts'
import { findLapsedCalls } from '../store/calls.ts'
import { findRecord } from '../store/records.ts'
import { DEFAULT_RETRY } from './dispatch.ts'
import { finishCall } from './finish.ts'
import { skillOf } from './resolve.ts'

const AT_ONCE = 100

/**
 * Takes calls of a scope, 100 at most, from workers that are lost: what was not sent is ready again, what was is tried again
 * where that does no harm, else it is ambiguous. Gives the number of those it took. Contract: kernel-1.md 9, 14.5
 */
export async function recoverCalls(context: KernelContext, scope: Scope): Promise<number> {
  const { store } = context
  const lapsed = await findLapsedCalls(store.database, scope, store.now(), AT_ONCE)
  let taken = 0
  for (const call of lapsed) {
    const { id: callId, fencingToken = 0, dispatchedAt } = call
    const outcome: Outcome =
      dispatchedAt === undefined ? { kind: 'not_sent' } : { kind: 'unknown', error: 'the worker was lost' }
    const retry = await retryOf(context, call)
    if (await finishCall(context, { scope, callId, fencingToken, outcome, retry })) taken++
  }
  return taken
}

async function retryOf({ actions, store }: KernelContext, call: ActionCall): Promise<RetryPolicy> {
  const binding = await findRecord(store.database, bindings, call.scope, call.bindingId)
  const skill = actions && binding && skillOf(actions.catalog, binding)
  return skill?.actions[call.action]?.retry ?? DEFAULT_RETRY
}
