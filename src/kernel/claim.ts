import { toTimestamp } from '../base/clock.ts'
import { hasAttempt } from './budgets.ts'
import { aboutRun, BY_KERNEL, makeChange, type Change } from './change.ts'
import type { KernelContext } from './context.ts'
import type { Scope } from './model/fields.ts'
import type { Run } from './model/run.ts'
import { moveRun, pauseRun } from './run-states.ts'
import { findClaimable, markDue, type Candidate, type Claimant } from './store/run-claims.ts'
import { grantLease, lapseLeases, releaseLease } from './store/run-leases.ts'
import { saveRun } from './store/runs.ts'
import { takeSlots } from './store/slots.ts'

export interface ClaimRequest extends Omit<Claimant, 'left'> {
  scope: Scope
  /** Its name in leases and events. */
  worker: string
  leaseMs: number
  /** False where what became due, what ran out and what was left was looked for a moment ago. */
  sweep?: boolean
}

export interface Claimed extends Candidate {
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
export async function claimRun(context: KernelContext, request: ClaimRequest): Promise<Claimed | undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      const { result } = await makeChange(context, request.scope, BY_KERNEL, (change) => claim(change, request))
      return result
    } catch (error) {
      if (!(error instanceof SlotsTaken)) throw error
      if (attempt === ATTEMPTS) return undefined
    }
  }
}

async function claim(change: Change, request: ClaimRequest): Promise<Claimed | undefined> {
  const { tx, scope, now } = change
  change.wakesNobody()
  const { sweep = true } = request
  if (sweep) {
    await markDue(tx, scope, now)
    await lapseLeases(tx, scope, now)
  }
  for (let pauses = 0; pauses < PAUSES_AT_ONCE; pauses++) {
    const candidate = await findClaimable(tx, scope, { ...request, left: sweep })
    if (!candidate) return undefined
    const { run } = candidate
    if (hasAttempt(run)) return take(change, request, candidate)
    await releaseLease(tx, scope, run.id)
    await saveRun(tx, { ...pauseRun(run, 'budget'), budgetState: 'exhausted' }, now)
    const payload = { from: run.status, to: 'paused', reason: 'budget' }
    change.report({ ...aboutRun(run), eventType: 'run.paused', summary: 'Paused: no attempt is left', payload })
  }
  return undefined
}

/** The slots, for which others wait, are taken after all else. */
async function take(change: Change, request: ClaimRequest, { run, recovered }: Candidate): Promise<Claimed> {
  const { tx, scope, now } = change
  const { worker, leaseMs } = request
  const { owner, expiresAt, fencingToken } = await grantLease(tx, scope, run.id, { owner: worker, now, leaseMs })
  const started = await saveRun(tx, startAttempt(run, now), now)
  if (!(await takeSlots(tx, run, request.limits))) throw new SlotsTaken()
  change.report({
    ...aboutRun(started),
    eventType: 'run.claimed',
    summary: `Claimed by ${worker}`,
    payload: { worker, fencingToken, attempt: started.attempt, recovered },
  })
  const lease = {
    leaseOwner: owner,
    fencingToken,
    leaseExpiresAt: toTimestamp(expiresAt),
    lastClaimedAt: toTimestamp(now),
  }
  return { fencingToken, recovered, run: { ...started, ...lease } }
}

const startAttempt = (run: Run, now: number): Run => ({
  ...moveRun(run, { to: 'running', now }),
  attempt: run.attempt + 1,
  budgetUsage: { ...run.budgetUsage, attempts: (run.budgetUsage.attempts ?? 0) + 1 },
})
