import { errorText } from '../../base/errors.ts'
import type { KernelContext } from '../context.ts'
import type { Scope } from '../model/fields.ts'
import { isStopping, renewCallLease } from '../store/call-leases.ts'
import { claimCall, type ClaimedCall } from './claim-call.ts'
import { performCall } from './dispatch.ts'

/** Calls made by workers of this process. Contract: kernel-1.md 14.1, 14.2 */

export interface ActionWorker {
  scope: Scope
  /** Its name in leases. */
  id: string
  leaseMs: number
  heartbeatMs: number
  /** The process ends: what was not sent goes back, what was is left as it is. */
  abandoned: AbortSignal
}

/** How soon a canceled run reaches who makes its call. */
const WATCH_MS = 1000

/** Takes the call that is next, and gives how to make it; undefined where there is none. */
export async function claimAction(
  context: KernelContext,
  worker: ActionWorker,
): Promise<(() => Promise<void>) | undefined> {
  const { scope, id, leaseMs } = worker
  const claimed = await claimCall(context.store, scope, { worker: id, leaseMs })
  return claimed && (() => makeCall(context, claimed, worker))
}

async function makeCall(context: KernelContext, claimed: ClaimedCall, worker: ActionWorker): Promise<void> {
  const lost = new AbortController()
  const canceled = new AbortController()
  const ended = new AbortController()
  const watching = watch(context, claimed, worker, { lost, canceled, ended: ended.signal })
  const lose = (): void => lost.abort()
  if (worker.abandoned.aborted) lose()
  worker.abandoned.addEventListener('abort', lose)
  try {
    await performCall(context, claimed, { abandoned: lost.signal, canceled: canceled.signal })
  } finally {
    worker.abandoned.removeEventListener('abort', lose)
    ended.abort()
    await watching
  }
}

interface Watch {
  lost: AbortController
  canceled: AbortController
  ended: AbortSignal
}

/** Renews the lease, and looks whether the run was canceled, until the call has ended. */
async function watch(
  { store, log }: KernelContext,
  { call: { scope, id }, fencingToken }: ClaimedCall,
  { leaseMs, heartbeatMs }: ActionWorker,
  { lost, canceled, ended }: Watch,
): Promise<void> {
  let renewedAt = store.now()
  while (await pause(Math.min(WATCH_MS, heartbeatMs), ended)) {
    const now = store.now()
    try {
      if (await isStopping(store.database, scope, id, fencingToken)) canceled.abort()
      if (now - renewedAt < heartbeatMs) continue
      if (!(await renewCallLease(store.database, scope, id, { fencingToken, now, leaseMs }))) return lost.abort()
      renewedAt = now
    } catch (error) {
      log.warn({ scope, call: id, err: error }, `lease of a call not renewed: ${errorText(error)}`)
    }
  }
}

/** False when it was cut short. */
const pause = (ms: number, signal: AbortSignal): Promise<boolean> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve(false)
    const onAbort = (): void => {
      clearTimeout(timer)
      resolve(false)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', onAbort)
      resolve(true)
    }, ms)
    signal.addEventListener('abort', onAbort, { once: true })
  })
