import { aboutRun, BY_KERNEL, makeChange, type Change } from '../change.ts'
import type { KernelContext } from '../context.ts'
import type { Scope } from '../model/fields.ts'
import type { Run } from '../model/run.ts'
import { isTerminal, moveRun } from '../run-states.ts'
import { endCascade, findLiveDescendants, listCascades, openCascade } from '../store/run-cascades.ts'
import { lockRecord, readRecord } from '../store/records.ts'
import { runs } from '../store/runs.ts'
import { closeOwnWork } from './own-work.ts'
import { saveMoved } from './save.ts'

/** What ends before it is done. Contract: kernel-1.md 6.5, 14.5 */

/**
 * Cancels a run that the caller has locked, with its approval, calls and open questions to people, and tells of it; its
 * descendants follow in further transactions (`cancelDescendants`). @throws conflict when it is at its end already
 */
export async function cancelRun(change: Change, run: Run, reason: string): Promise<Run> {
  const canceled = await endCanceled(change, run)
  change.report({
    ...aboutRun(canceled),
    eventType: 'run.canceled',
    summary: reason,
    payload: { from: run.status, to: 'canceled', reason },
  })
  return canceled
}

/** The same, told by the caller. */
export async function endCanceled(change: Change, run: Run): Promise<Run> {
  const { now, at } = change
  const moved = moveRun(run, { to: 'canceled', now })
  return saveMoved(change, run, {
    ...(await closeOwnWork(change, moved, run)),
    pendingInterventions: [],
    humanInterventions: run.humanInterventions.map((asked) =>
      asked.status === 'pending' ? { ...asked, status: 'canceled', resolvedAt: at } : asked,
    ),
  })
}

/** Of `context.endings`: what a run left behind is canceled once its end is committed; a note tells of it until then. */
export async function leaveDescendants(change: Change, run: Run): Promise<void> {
  const { context, tx, scope } = change
  const [child] = await findLiveDescendants(tx, scope, run, 1)
  if (child === undefined) return
  await openCascade(tx, scope, run.id)
  change.leaves(() => cancelDescendants(context, scope, run.id))
}

const AT_ONCE = 100

/**
 * Cancels what a run left behind at its end, the deepest first, 100 in a transaction; gives their number.
 * What an accepted handoff passed on lives on. Does nothing where all is done, so that it may be called again.
 */
export async function cancelDescendants(context: KernelContext, scope: Scope, runId: string): Promise<number> {
  let canceled = 0
  for (;;) {
    const { result } = await makeChange(context, scope, BY_KERNEL, async (change) => {
      const { tx } = change
      const root = await readRecord(tx, runs, scope, runId)
      const page = isTerminal(root.status) ? await findLiveDescendants(tx, scope, root, AT_ONCE) : []
      for (const id of page) {
        const run = await lockRecord(tx, runs, scope, id)
        if (!isTerminal(run.status)) await cancelRun(change, run, `Run ${runId} ended`)
      }
      if (page.length === 0) await endCascade(tx, scope, runId)
      return page.length
    })
    if (result === 0) return canceled
    canceled += result
  }
}

/** Finishes cascades that were interrupted, of 100 runs at most; gives the number of runs it canceled. */
export async function reconcileCascades(context: KernelContext, scope: Scope): Promise<number> {
  let canceled = 0
  for (const runId of await listCascades(context.store.database, scope, AT_ONCE)) {
    canceled += await cancelDescendants(context, scope, runId)
  }
  return canceled
}
