import { toTimestamp } from '../../base/clock.ts'
import type { Queryable } from '../../database/database.ts'
import { hasAttempt } from '../budgets.ts'
import type { KernelContext } from '../context.ts'
import type { Owner, Scope } from '../model/fields.ts'
import { RUN_KINDS, type Run, type RunKind } from '../model/run.ts'
import { isTerminal } from '../run-states.ts'
import { readRecord } from '../store/records.ts'
import { listDue, listNotDue, readSlotBlocks, type Asking, type SlotBlock } from '../store/run-admission.ts'
import { findNextWake } from '../store/run-wakes.ts'
import { runs } from '../store/runs.ts'
import type { WorkerLimits } from '../store/slots.ts'
import { listWorkers, type Worker } from '../store/workers.ts'
import { shownRun } from './shown.ts'
import { waitOf } from './wake.ts'

/** Why runs are not claimed. Contract: kernel-1.md 6.4 */

export interface AdmissionQuery {
  kind?: RunKind
  assignedAgentId?: string
  runId?: string
  maxActiveForAgent?: number
  maxActiveForOwner?: number
  maxActiveForObjective?: number
  maxActiveForConcurrencyKey?: number
}

type Reason =
  | 'not_due'
  | 'lease_held'
  | `${'agent' | 'owner' | 'objective' | 'concurrency_key' | 'resource'}_capacity`
  | 'attempt_budget_exhausted'
  | 'objective_inactive'
  | 'agent_unavailable'
  | 'no_worker'
  | 'paused'
  | 'waiting'
  | 'terminal'

interface Block {
  runId: string
  reason: Reason
  objectiveId?: string
  assignedAgentId?: string
  owner: Owner
  concurrencyKey?: string
  active?: number
  limit?: number
  resource?: string
  requested?: number
  reserved?: number
  capacity?: number
  readyAt?: string
  leaseExpiresAt?: string
  detail: string
}

type Outcome = 'ready' | 'no_worker' | 'backpressured' | 'not_due' | 'lease_held' | 'idle'

export interface Admission {
  outcome: Outcome
  run?: ReturnType<typeof shownRun>
  blocks: Block[]
  workers: (Pick<Worker, 'id' | 'kind' | 'runKinds' | 'concurrency' | 'active'> & { lastSeenAt: string })[]
  limits: Record<string, number>
  nextWakeAt?: string
  evaluatedAt: string
}

const MOST_BLOCKS = 100
/** Workers not seen for so long are gone. */
const SILENT_MS = 30_000

/** Says what a worker would claim now, or why none would claim anything; writes nothing. @throws not_found for an absent `runId` */
export const readAdmission = (context: KernelContext, scope: Scope, query: AdmissionQuery): Promise<Admission> =>
  context.store.database.snapshot(async (view) => {
    const now = context.store.now()
    const workers = await listWorkers(view, scope, now - SILENT_MS)
    const pools = workers.filter(({ kind }) => kind === 'run')
    const kinds = query.kind ? [query.kind] : RUN_KINDS
    const limits = limitsOf(pools, query)
    const asking: Asking = {
      kinds,
      ...(query.assignedAgentId !== undefined && { assignedAgentId: query.assignedAgentId }),
      limits,
      knownAgents: context.agents === true,
      now,
    }
    const seen: Seen = { view, scope, asking, served: new Set(pools.flatMap(({ runKinds }) => runKinds)) }
    const judged = query.runId === undefined ? await judgeAll(seen) : await judgeOne(seen, query.runId)
    const nextWakeAt = await findNextWake(view, scope)
    return {
      ...judged,
      workers: workers.map(({ scope: _s, limits: _l, lastSeenAt, ...shown }) => ({
        ...shown,
        lastSeenAt: toTimestamp(lastSeenAt),
      })),
      limits: {
        maxActiveForAgent: limits.agent,
        maxActiveForOwner: limits.owner,
        maxActiveForObjective: limits.objective,
        maxActiveForConcurrencyKey: limits.concurrency_key,
      },
      ...(nextWakeAt !== undefined && { nextWakeAt: toTimestamp(nextWakeAt) }),
      evaluatedAt: toTimestamp(now),
    }
  })

/** As asked, else the widest that a pool works with; 0 is none. */
function limitsOf(pools: readonly Worker[], query: AdmissionQuery): WorkerLimits {
  const widest = (kind: keyof WorkerLimits): number => {
    const given = pools.map(({ limits }) => limits[kind])
    return given.includes(0) ? 0 : Math.max(0, ...given)
  }
  return {
    agent: query.maxActiveForAgent ?? widest('agent'),
    owner: query.maxActiveForOwner ?? widest('owner'),
    objective: query.maxActiveForObjective ?? widest('objective'),
    concurrency_key: query.maxActiveForConcurrencyKey ?? widest('concurrency_key'),
  }
}

interface Seen {
  view: Queryable
  scope: Scope
  asking: Asking
  /** Kinds of runs that a pool works on. */
  served: ReadonlySet<RunKind>
}

type Judged = Pick<Admission, 'outcome' | 'run' | 'blocks'>

async function judgeAll({ view, scope, asking, served }: Seen): Promise<Judged> {
  const free = await listDue(view, scope, asking, { blocked: false, limit: MOST_BLOCKS })
  const next = free.find((run) => hasAttempt(run) && served.has(run.kind))
  const blocked = await listDue(view, scope, asking, { blocked: true, limit: MOST_BLOCKS })
  const slots = await readSlotBlocks(
    view,
    scope,
    blocked.map(({ id }) => id),
    asking,
  )
  const blocks = [
    ...free.flatMap((run) => ownBlocks(run, served)),
    ...blocked.flatMap((run) => [
      ...slots.filter(({ runId }) => runId === run.id).map((slot) => slotBlock(run, slot)),
      ...ownBlocks(run, served),
    ]),
    ...(await listNotDue(view, scope, asking, MOST_BLOCKS)).flatMap((run) => timeBlocks(run, asking.now)),
  ]
  const claimable = next ?? free.find((run) => hasAttempt(run))
  return {
    outcome: outcomeOf(next !== undefined, blocks),
    ...(claimable && { run: shownRun(claimable) }),
    blocks: blocks.slice(0, MOST_BLOCKS),
  }
}

async function judgeOne({ view, scope, asking, served }: Seen, runId: string): Promise<Judged> {
  const run = await readRecord(view, runs, scope, runId)
  const times = timeBlocks(run, asking.now)
  const isHeld = times.some(({ reason }) => reason === 'lease_held')
  const isOpen = run.status === 'queued' || (run.status === 'running' && !isHeld)
  const slots = isOpen ? await readSlotBlocks(view, scope, [runId], asking) : []
  const blocks = isOpen
    ? [...times, ...slots.map((slot) => slotBlock(run, slot)), ...ownBlocks(run, served)]
    : [...times, ...stateBlocks(run)]
  return { outcome: outcomeOf(blocks.length === 0, blocks), run: shownRun(run), blocks }
}

/** What a run's state says by itself; all other reasons are pressure. */
const QUIET: readonly Reason[] = ['not_due', 'lease_held', 'no_worker', 'paused', 'waiting', 'terminal']

/** The first that applies. */
function outcomeOf(isReady: boolean, blocks: readonly Block[]): Outcome {
  if (isReady) return 'ready'
  const stopped = new Set(blocks.filter(({ reason }) => reason !== 'no_worker').map(({ runId }) => runId))
  if (blocks.some(({ runId }) => !stopped.has(runId))) return 'no_worker'
  const reasons = blocks.map(({ reason }) => reason)
  if (reasons.some((reason) => !QUIET.includes(reason))) return 'backpressured'
  if (reasons.includes('not_due')) return 'not_due'
  return reasons.includes('lease_held') ? 'lease_held' : 'idle'
}

const block = (run: Run, reason: Reason, detail: string, more: Partial<Block> = {}): Block => ({
  runId: run.id,
  reason,
  ...(run.objectiveId !== undefined && { objectiveId: run.objectiveId }),
  ...(run.assignedAgentId !== undefined && { assignedAgentId: run.assignedAgentId }),
  owner: run.owner,
  ...(run.concurrencyKey !== undefined && { concurrencyKey: run.concurrencyKey }),
  ...more,
  detail,
})

/** What keeps a run that no slot keeps. */
const ownBlocks = (run: Run, served: ReadonlySet<RunKind>): Block[] => [
  ...(hasAttempt(run)
    ? []
    : [block(run, 'attempt_budget_exhausted', 'no attempt is left in its budget: the next claim pauses it')]),
  ...(served.has(run.kind) ? [] : [block(run, 'no_worker', `no worker takes runs of kind ${run.kind} in this scope`)]),
]

function timeBlocks(run: Run, now: number): Block[] {
  const { status, availableAt, leaseExpiresAt, leaseOwner } = run
  if (status === 'queued' && Date.parse(availableAt) > now) {
    return [block(run, 'not_due', `it may begin at ${availableAt}`, { readyAt: availableAt })]
  }
  if (status === 'running' && leaseExpiresAt !== undefined && Date.parse(leaseExpiresAt) > now) {
    return [block(run, 'lease_held', `${leaseOwner} works on it`, { leaseExpiresAt })]
  }
  return []
}

/** Of a run that is neither queued nor running. */
function stateBlocks(run: Run): Block[] {
  const { status } = run
  if (status === 'queued' || status === 'running') return []
  if (isTerminal(status)) return [block(run, 'terminal', `it is ${status}`)]
  if (status === 'paused') return [block(run, 'paused', `it was paused: ${run.pauseReason}`)]
  const wake = waitOf(run)
  const readyAt = wake?.wakeAt === undefined ? {} : { readyAt: wake.wakeAt }
  return [
    block(
      run,
      'waiting',
      wake ? `it is ${status}: ${wake.type} ${wake.reference ?? ''}`.trim() : `it is ${status}`,
      readyAt,
    ),
  ]
}

function slotBlock(run: Run, { kind, name, amount, active, limit = 0, closed }: SlotBlock): Block {
  if (closed) {
    return kind === 'agent'
      ? block(run, 'agent_unavailable', `agent deployment ${name} is not installed, or takes no runs`)
      : block(run, 'objective_inactive', `objective ${name} is not active`)
  }
  if (kind === 'resource') {
    const resource = name.slice(name.indexOf('/') + 1)
    const detail = `${amount} of ${resource} asked for, ${active} of ${limit} taken`
    return block(run, 'resource_capacity', detail, { resource, requested: amount, reserved: active, capacity: limit })
  }
  return block(run, `${kind}_capacity`, `${active} active runs, ${limit} at most`, { active, limit })
}
