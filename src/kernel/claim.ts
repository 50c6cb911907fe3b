import { toTimestamp } from '../base/clock.ts'
import { returned } from '../database/rows.ts'
import { hasAttempt } from './budgets.ts'
import { aboutRun, BY_KERNEL, makeChange, type Change } from './change.ts'
import type { KernelContext } from './context.ts'
import type { Scope } from './model/fields.ts'
import type { Run } from './model/run.ts'
import type { Turn } from './model/turn.ts'
import { moveRun, pauseRun } from './run-states.ts'
import type { Deployed } from './store/deployments.ts'
import { findClaimable, markDue, type Candidate, type Claimant } from './store/run-claims.ts'
import { grantLeases, lapseLeases, releaseLeases } from './store/run-leases.ts'
import { saveRun } from './store/runs.ts'
import { takeSlots } from './store/slots.ts'

export interface ClaimRequest extends Omit<Claimant, 'left'> {
  scope: Scope
  /** Its name in leases and events. */
  worker: string
  leaseMs: number
  /** False where what became due, what ran out and what was left was looked for a moment ago. */
  sweep?: boolean
  /** Begins the turn of a run that is about to be claimed, where nothing is to be done before it. */
  begin?: (change: Change, run: Run, fencingToken: () => Promise<number>) => Promise<Ahead | undefined>
}

/** A turn that was begun as its run was claimed, and the agent that it is of. */
export interface Ahead {
  turn: Turn
  agent?: Deployed<'agent'>
}

export interface Claimed extends Candidate {
  fencingToken: number
  ahead?: Ahead
}

/** How often runs at their attempt limit are paused before one claim gives up. */
const PAUSES = 20
const ATTEMPTS = 5

/** Slots that were free went to another worker meanwhile, or do not hold all of these runs: all is undone and looked at again. */
class SlotsTaken extends Error {}

/**
 * Gives the runs that are next to a worker, so many at most. At its attempt limit a run is paused instead.
 * T2: status, attempt, lease, token, slots and event in one transaction, and T3 with it where that writes a turn and no more.
 * Contract: kernel-1.md 14.1, 14.4
 */
export async function claimRuns(context: KernelContext, request: ClaimRequest, count: number): Promise<Claimed[]> {
  for (let attempt = 1; ; attempt++) {
    const wanted = attempt === 1 ? count : 1
    try {
      const { result } = await makeChange(context, request.scope, BY_KERNEL, (change) => claim(change, request, wanted))
      return result
    } catch (error) {
      if (!(error instanceof SlotsTaken)) throw error
      if (attempt === ATTEMPTS) return []
    }
  }
}

async function claim(change: Change, request: ClaimRequest, count: number): Promise<Claimed[]> {
  const { tx, scope, now } = change
  change.wakesNobody()
  const { sweep = true } = request
  if (sweep) {
    await markDue(tx, scope, now)
    await lapseLeases(tx, scope, now)
  }
  for (let pauses = 0; pauses < PAUSES; pauses++) {
    const candidates = await findClaimable(tx, scope, { ...request, left: sweep }, count)
    const spent = candidates.filter(({ run }) => !hasAttempt(run))
    for (const { run } of spent) await pauseSpent(change, run)
    const ready = candidates.filter(({ run }) => hasAttempt(run))
    if (ready.length > 0) return take(change, request, ready)
    if (spent.length === 0) return []
  }
  return []
}

async function pauseSpent(change: Change, run: Run): Promise<void> {
  const { tx, scope, now } = change
  await releaseLeases(tx, scope, [run])
  await saveRun(tx, { ...pauseRun(run, 'budget'), budgetState: 'exhausted' }, now)
  const payload = { from: run.status, to: 'paused', reason: 'budget' }
  change.report({ ...aboutRun(run), eventType: 'run.paused', summary: 'Paused: no attempt is left', payload })
}

/** The slots, for which others wait, are taken after the leases and the runs. */
async function take(change: Change, request: ClaimRequest, candidates: readonly Candidate[]): Promise<Claimed[]> {
  const { tx, scope, now } = change
  const { worker: owner, leaseMs, limits, begin } = request
  const runs = candidates.map(({ run }) => run)
  const granted = grantLeases(tx, scope, runs, { owner, now, leaseMs })
  const started = Promise.all(runs.map((run) => saveRun(tx, startAttempt(run, now), now)))
  const tokenOf = async ({ id }: Run): Promise<number> => returned((await granted).get(id))
  const ahead = begin && Promise.all(runs.map((run) => begin(change, run, () => tokenOf(run))))
  const areTaken = Promise.all([granted, started]).then(() => takeSlots(tx, scope, runs, limits))
  const [tokens, saved, begun, areFree] = await Promise.all([granted, started, ahead, areTaken])
  if (!areFree) throw new SlotsTaken()
  const lease = { leaseOwner: owner, leaseExpiresAt: toTimestamp(now + leaseMs), lastClaimedAt: toTimestamp(now) }
  return saved.map((run, i) => {
    const fencingToken = returned(tokens.get(run.id))
    const recovered = candidates[i]?.recovered === true
    change.report({
      ...aboutRun(run),
      eventType: 'run.claimed',
      summary: `Claimed by ${owner}`,
      payload: { worker: owner, fencingToken, attempt: run.attempt, recovered },
    })
    const turn = begun?.[i]
    return { fencingToken, recovered, run: { ...run, ...lease, fencingToken }, ...(turn && { ahead: turn }) }
  })
}

const startAttempt = (run: Run, now: number): Run => ({
  ...moveRun(run, { to: 'running', now }),
  attempt: run.attempt + 1,
  budgetUsage: { ...run.budgetUsage, attempts: (run.budgetUsage.attempts ?? 0) + 1 },
})
