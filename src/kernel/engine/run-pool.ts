import { errorText } from '../../base/errors.ts'
import { claimRuns, type Ahead, type Claimed } from '../claim.ts'
import type { Hints } from '../hints.ts'
import type { Scope } from '../model/fields.ts'
import type { RunKind } from '../model/run.ts'
import type { WorkerLimits } from '../store/slots.ts'
import { saveWorker } from '../store/workers.ts'
import { beginAhead } from './begin.ts'
import { createSurroundings } from './envelope.ts'
import { Heartbeat } from './heartbeat.ts'
import { Held } from './held.ts'
import type { TurnParts } from './parts.ts'
import { Pool } from './pool.ts'
import { retryAfterFault } from './setbacks.ts'
import { SharedClaims } from './shared-claims.ts'
import { takeTurn } from './turn.ts'
import type { WorkerLimit } from './worker-limit.ts'

export interface RunPoolOptions extends TurnParts {
  scope: Scope
  runKinds: RunKind[]
  concurrency: number
  pollIntervalMs: number
  limits: WorkerLimits
  workerIdPrefix: string
  limit: WorkerLimit
  hints: Hints
}

/** What became due and what ran out is looked for so often, however many claims there are. */
const SWEEP_MS = 100

/** Workers that take turns with the runs of one scope. */
export class RunPool {
  readonly scope: Scope
  readonly #options: RunPoolOptions
  readonly #worker: string
  readonly #pool: Pool
  readonly #heartbeat: Heartbeat
  readonly #readSurroundings: ReturnType<typeof createSurroundings>
  readonly #claims = new SharedClaims((count) => this.#claimSome(count))
  #sweptAt = -Infinity

  constructor(options: RunPoolOptions) {
    const { context, scope, leaseMs, workerIdPrefix, concurrency, pollIntervalMs, limit, hints, random } = options
    this.scope = scope
    this.#options = options
    this.#worker = `${workerIdPrefix}-${context.newId()}`
    this.#readSurroundings = createSurroundings(context)
    this.#heartbeat = new Heartbeat(context, scope, leaseMs)
    this.#pool = new Pool({
      scope,
      concurrency,
      pollIntervalMs,
      limit,
      hints,
      log: context.log,
      random,
      claim: () => this.#claim(),
      register: (active) => this.#register(active),
    })
  }

  start(): void {
    this.#heartbeat.start(this.#options.hints)
    this.#pool.start()
  }

  /** Ends when nothing is under way any more. */
  async stop(): Promise<void> {
    await this.#pool.stop()
    this.#heartbeat.stop()
  }

  /** Gives up what is under way: other workers may go on with it at once. */
  abandonAll(): void {
    this.#heartbeat.abandonAll()
  }

  async #claim(): Promise<(() => Promise<void>) | undefined> {
    const claimed = await this.#claims.next()
    if (!claimed) return undefined
    const { context, onStep } = this.#options
    onStep?.('claimed')
    const held = new Held(claimed.run, claimed.fencingToken, context.store.now())
    return () => this.#heartbeat.keep(held, () => this.#work(held, claimed.ahead))
  }

  async #claimSome(count: number): Promise<Claimed[]> {
    const { context, scope, runKinds: kinds, leaseMs, limits } = this.#options
    const now = performance.now()
    const sweep = now - this.#sweptAt >= SWEEP_MS
    if (sweep) this.#sweptAt = now
    const knownAgents = context.agents === true
    const request = { scope, worker: this.#worker, kinds, leaseMs, limits, knownAgents, sweep, begin: beginAhead }
    const claimed = await claimRuns(context, request, count)
    // Where one was left there may be more.
    if (claimed.some(({ recovered }) => recovered)) this.#sweptAt = -Infinity
    return claimed
  }

  /** @throws what is nobody's doing but ours; the run is given back then, or, if that fails too, when its lease ends */
  async #work(held: Held, ahead: Ahead | undefined): Promise<void> {
    try {
      await this.#takeTurns(held, ahead)
    } catch (error) {
      await retryAfterFault(this.#options, held).catch((second: unknown) =>
        this.#options.context.log.warn({ run: held.run.id, err: second }, `not given back: ${errorText(second)}`),
      )
      throw error
    }
  }

  async #takeTurns(held: Held, ahead: Ahead | undefined): Promise<void> {
    const { turnsPerClaim } = this.#options
    const readSurroundings = this.#readSurroundings
    for (let turn = 1; turn <= turnsPerClaim; turn++) {
      const isLast = turn === turnsPerClaim
      if (!(await takeTurn(this.#options, held, { readSurroundings, isLast, ...(turn === 1 && ahead && { ahead }) })))
        return
    }
  }

  async #register(active: number): Promise<void> {
    const { context, scope, runKinds, concurrency, limits } = this.#options
    const lastSeenAt = context.store.now()
    const worker = { id: this.#worker, scope, kind: 'run' as const, runKinds, concurrency, active, limits, lastSeenAt }
    await saveWorker(context.store.database, worker)
  }
}
