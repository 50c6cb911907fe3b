import { toTimestamp } from '../base/clock.ts'
import type { Queryable } from '../database/database.ts'
import type { NewEvent } from './model/event.ts'
import type { Scope } from './model/fields.ts'
import type { Run } from './model/run.ts'
import { moveRun, pauseRun } from './run-states.ts'
import { appendEvents } from './store/events.ts'
import { findClaimable, markDue, type Candidate, type Claimant } from './store/run-claims.ts'
import { grantLease, lapseLeases, releaseLease } from './store/run-leases.ts'
import { saveRun } from './store/runs.ts'
import { executorOf, takeSlots } from './store/slots.ts'
import type { KernelStore } from './store/store.ts'

export interface ClaimRequest extends Claimant {
  scope: Scope
  /** Its name in leases and events. */
  worker: string
  leaseMs: number
}

export interface Claimed {
  run: Run
  fencingToken: number
}

/** Runs at their attempt limit that one claim pauses before it gives up. */
const PAUSES_AT_ONCE = 20
const ATTEMPTS = 5

/** Another worker took the last slot while this one read: all is undone and looked at again. */
class SlotsTaken extends Error {}

/**
 * Gives the run that is next to a worker, or undefined when there is none. At its attempt limit a run is paused instead.
 * T2: status, attempt, lease, token, slots and event in one transaction. Contract: kernel-1.md 14.1, 14.4
 */
export async function claimRun(
  store: KernelStore,
  newId: () => string,
  request: ClaimRequest,
): Promise<Claimed | undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await store.database.transaction((tx) => claim(tx, newId, request, store.now()))
    } catch (error) {
      if (!(error instanceof SlotsTaken)) throw error
      if (attempt === ATTEMPTS) return undefined
    }
  }
}

async function claim(
  tx: Queryable,
  newId: () => string,
  request: ClaimRequest,
  now: number,
): Promise<Claimed | undefined> {
  const { scope, worker, leaseMs } = request
  const events: NewEvent[] = []
  const report = (run: Run, eventType: string, summary: string, payload: Record<string, unknown>): void =>
    void events.push(claimEvent(newId(), run, { eventType, summary, payload, now }))
  await markDue(tx, scope, now)
  await lapseLeases(tx, scope, now)
  let claimed: Claimed | undefined
  for (let pauses = 0; pauses < PAUSES_AT_ONCE; pauses++) {
    const candidate = await findClaimable(tx, scope, request)
    if (!candidate) break
    const { run, recovered } = candidate
    if (run.budget?.maxAttempts !== undefined && (run.budgetUsage.attempts ?? 0) >= run.budget.maxAttempts) {
      await releaseLease(tx, scope, run.id)
      await saveRun(tx, { ...pauseRun(run, 'budget'), budgetState: 'exhausted' }, now)
      report(run, 'run.paused', 'Paused: no attempt is left', { from: run.status, to: 'paused', reason: 'budget' })
      continue
    }
    if (!(await takeSlots(tx, scope, run.id, request.limits))) throw new SlotsTaken()
    const lease = await grantLease(tx, scope, run.id, { owner: worker, now, leaseMs })
    const started = await saveRun(tx, startAttempt(candidate, now), now)
    const { owner: leaseOwner, fencingToken } = lease
    claimed = {
      fencingToken,
      run: {
        ...started,
        leaseOwner,
        fencingToken,
        leaseExpiresAt: toTimestamp(lease.expiresAt),
        lastClaimedAt: toTimestamp(now),
      },
    }
    const payload = { worker, fencingToken, attempt: started.attempt, recovered }
    report(started, 'run.claimed', `Claimed by ${worker}`, payload)
    break
  }
  await appendEvents(tx, events)
  return claimed
}

const startAttempt = ({ run }: Candidate, now: number): Run => ({
  ...moveRun(run, { to: 'running', now }),
  attempt: run.attempt + 1,
  budgetUsage: { ...run.budgetUsage, attempts: (run.budgetUsage.attempts ?? 0) + 1 },
})

interface ClaimEvent {
  eventType: string
  summary: string
  payload: Record<string, unknown>
  now: number
}

function claimEvent(id: string, run: Run, { eventType, summary, payload, now }: ClaimEvent): NewEvent {
  const agentId = executorOf(run)
  return {
    id,
    scope: run.scope,
    eventType,
    runId: run.id,
    ...(agentId !== undefined && { agentId }),
    ...(run.objectiveId !== undefined && { objectiveId: run.objectiveId }),
    ...(run.projectId !== undefined && { projectId: run.projectId }),
    ...(run.parentRunId !== undefined && { parentRunId: run.parentRunId }),
    ...(run.owner.type === 'team' && { teamId: run.owner.id }),
    actor: { type: 'system', id: 'kernel' },
    actorSource: 'kernel',
    summary,
    payload,
    createdAt: toTimestamp(now),
  }
}
