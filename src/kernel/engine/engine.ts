import { endOverdueApprovals } from '../actions/expire.ts'
import type { KernelContext } from '../context.ts'
import type { Hints } from '../hints.ts'
import type { RunKind } from '../model/run.ts'
import type { ModelHost } from '../ports.ts'
import { reconcileDeployments } from '../registry/reconcile.ts'
import { raiseOverdue } from '../requests/escalation.ts'
import { reconcileRequests } from '../requests/reconcile.ts'
import { reconcileCascades } from '../runs/cancel.ts'
import { wakeDueRuns } from '../runs/wake.ts'
import { purgeWorkers } from '../store/workers.ts'
import { ActionPool, type ActionPoolOptions } from './action-pool.ts'
import { Chore } from './chore.ts'
import { Crew, type Scopes } from './crew.ts'
import { closeOrphans } from './discard.ts'
import type { Step } from './parts.ts'
import { RunPool } from './run-pool.ts'
import { WorkerLimit } from './worker-limit.ts'

/** Who works on runs. Contract: kernel-1.md 14.2, kernel-2.md 14 */
export type RunWorkers = Scopes & {
  runKinds?: RunKind[]
  concurrency?: number
  turnsPerClaim?: number
  leaseMs?: number
  pollIntervalMs?: number
  /** As many as `concurrency` where absent. 0 is no bound, here and below. */
  maxActivePerAgent?: number
  maxActivePerOwner?: number
  maxActivePerObjective?: number
  maxActivePerConcurrencyKey?: number
  workerIdPrefix?: string
}

/** Who makes the calls that runs propose. */
export type ActionWorkers = Scopes & {
  concurrency?: number
  leaseMs?: number
  pollIntervalMs?: number
  workerIdPrefix?: string
}

export interface EngineOptions {
  modelHost: ModelHost
  /** Turns and actions at once. */
  workerConcurrencyLimit?: number
  runWorkers?: RunWorkers[]
  actionWorkers?: ActionWorkers[]
  /** Chance, for waits; a test sets it. */
  random?: () => number
  onStep?: (step: Step) => void
}

const LIMIT = 8
const LEASE_MS = 30_000
const ACTION_LEASE_MS = 60_000
const POLL_MS = 500
const RECONCILE_MS = 30_000
const REQUESTS_MS = 2000
const ESCALATIONS_MS = 2000
const CLOCKS_MS = 10_000
const GRACE_MS = 10_000
const FORGET_WORKERS_MS = 3_600_000

/** Works on runs until it is stopped. Several may share a store, in one process or in many. */
export class Engine {
  readonly #crews: Crew[]
  readonly #chores: Chore[]

  constructor(context: KernelContext, hints: Hints, options: EngineOptions) {
    const { runWorkers = [], actionWorkers = [], workerConcurrencyLimit = LIMIT, random = Math.random } = options
    const limit = new WorkerLimit(workerConcurrencyLimit)
    this.#crews = [
      ...runWorkers.map((workers) => runCrew(context, hints, limit, workers, { ...options, random })),
      ...actionWorkers.map((workers) => actionCrew(workers, { context, hints, limit, random })),
    ]
    const chore = (name: string, intervalMs: number, run: () => Promise<boolean>): Chore =>
      new Chore({ name, intervalMs, log: context.log, random, run })
    const polls = runWorkers.map(({ pollIntervalMs = POLL_MS }) => pollIntervalMs)
    this.#chores = [
      chore(
        'waking runs whose time has come',
        Math.min(POLL_MS, ...polls),
        async () => (await wakeDueRuns(context)) > 0,
      ),
      chore('ending approvals in time', POLL_MS, async () => (await endOverdueApprovals(context)) > 0),
      chore('finishing cascades', RECONCILE_MS, async () => {
        for (const scope of this.#crews.flatMap((crew) => crew.scopes)) await reconcileCascades(context, scope)
        return false
      }),
      chore('following skills', RECONCILE_MS, async () => {
        for (const scope of this.#crews.flatMap((crew) => crew.scopes)) await reconcileDeployments(context, scope)
        return false
      }),
      chore('asking for help', ESCALATIONS_MS, async () => (await raiseOverdue(context)) > 0),
      chore('bringing requests on', REQUESTS_MS, async () => {
        for (const scope of this.#crews.flatMap((crew) => crew.scopes)) await reconcileRequests(context, scope)
        return false
      }),
      chore('closing turns nobody ends', RECONCILE_MS, async () => {
        await closeOrphans(context)
        return false
      }),
      chore('comparing clocks', CLOCKS_MS, async () => {
        await context.store.synchronize()
        return false
      }),
      chore('forgetting workers', FORGET_WORKERS_MS, async () => {
        await purgeWorkers(context.store.database, context.store.now() - FORGET_WORKERS_MS)
        return false
      }),
    ]
  }

  async start(): Promise<void> {
    for (const crew of this.#crews) await crew.start()
    for (const chore of this.#chores) chore.start()
  }

  /** Claims nothing more, gives what is under way 10 s to end, and releases what is left. Contract: kernel-1.md 14.5 */
  async stop({ graceMs = GRACE_MS }: { graceMs?: number } = {}): Promise<void> {
    const grace = setTimeout(() => {
      for (const crew of this.#crews) crew.abandonAll()
    }, graceMs)
    await Promise.all([...this.#crews, ...this.#chores].map((part) => part.stop()))
    clearTimeout(grace)
  }
}

function runCrew(
  context: KernelContext,
  hints: Hints,
  limit: WorkerLimit,
  workers: RunWorkers,
  { modelHost: model, random, onStep }: EngineOptions & { random: () => number },
): Crew {
  const { concurrency = 1 } = workers
  const limits = {
    agent: workers.maxActivePerAgent ?? concurrency,
    owner: workers.maxActivePerOwner ?? 0,
    objective: workers.maxActivePerObjective ?? 0,
    concurrency_key: workers.maxActivePerConcurrencyKey ?? 0,
  }
  const makePool = (scope: RunPool['scope']): RunPool =>
    new RunPool({
      context,
      model,
      random,
      ...(onStep && { onStep }),
      scope,
      limit,
      hints,
      limits,
      concurrency,
      runKinds: workers.runKinds ?? ['agent_work', 'conversation'],
      turnsPerClaim: workers.turnsPerClaim ?? 1,
      leaseMs: workers.leaseMs ?? LEASE_MS,
      pollIntervalMs: workers.pollIntervalMs ?? POLL_MS,
      workerIdPrefix: workers.workerIdPrefix ?? 'agent',
    })
  return new Crew(workers, makePool, context.log)
}

function actionCrew(
  {
    concurrency = 1,
    leaseMs = ACTION_LEASE_MS,
    pollIntervalMs = POLL_MS,
    workerIdPrefix = 'action',
    ...where
  }: ActionWorkers,
  parts: Pick<ActionPoolOptions, 'context' | 'hints' | 'limit' | 'random'>,
): Crew {
  const makePool = (scope: ActionPool['scope']): ActionPool =>
    new ActionPool({ ...parts, scope, concurrency, leaseMs, pollIntervalMs, workerIdPrefix })
  return new Crew(where, makePool, parts.context.log)
}
