import type { Change } from '../change.ts'
import type { Run } from '../model/run.ts'
import { isTerminal } from '../run-states.ts'
import { lockRecord } from '../store/records.ts'
import { findRequestOfChild, listRequests, requests } from '../store/requests.ts'
import { runs } from '../store/runs.ts'
import { cancelRun } from '../runs/cancel.ts'
import { isOpen, moveRequest, OPEN_STATES } from '../request-states.ts'
import { completionOf, submit } from './complete.ts'
import { endRequest } from './end.ts'

/** What follows for requests when a run came to its end, in its transaction. Contract: kernel-1.md 8. */

/**
 * The request that a run was made for ends with it. One that asks for artifacts stays open where the run's output does not
 * bring them: the recipient submits them.
 */
export async function settleRequestOfChild(change: Change, run: Run): Promise<void> {
  const found = await findRequestOfChild(change.tx, change.scope, run.id)
  if (found?.status !== 'accepted') return
  const source = await lockRecord(change.tx, runs, change.scope, found.sourceRunId)
  const request = await lockRecord(change.tx, requests, change.scope, found.id)
  if (request.status !== 'accepted') return
  if (run.status === 'completed') {
    const completion = completionOf(request, run)
    if (completion) await submit(change, { request, source }, completion, run)
    return
  }
  const status = run.status === 'failed' ? 'failed' : 'canceled'
  const resolutionReason = run.error?.message ?? `agent run ${run.id} was ${run.status}`
  await endRequest(change, { ...moveRequest(request, status, change.now), resolutionReason }, source, run)
}

/** The open requests of a run that ended go with it, and their runs; what it handed off goes on. */
export async function cancelRequestsOf(change: Change, run: Run): Promise<void> {
  const { tx, scope, now } = change
  const resolutionReason = `agent run ${run.id} is ${run.status}`
  for (;;) {
    const page = { limit: 100 }
    const { items } = await listRequests(tx, scope, { sourceRunId: run.id, status: OPEN_STATES }, page)
    const open = items.filter(({ kind, acceptedAt }) => kind !== 'handoff' || acceptedAt === undefined)
    if (open.length === 0) return
    for (const { id } of open) {
      const request = await lockRecord(tx, requests, scope, id)
      if (!isOpen(request.status)) continue
      await endRequest(change, { ...moveRequest(request, 'canceled', now), resolutionReason }, run)
      const child = request.childRunId === undefined ? undefined : await lockRecord(tx, runs, scope, request.childRunId)
      if (child && !isTerminal(child.status)) await cancelRun(change, child, resolutionReason)
    }
  }
}
