import { toTimestamp } from '../base/clock.ts'
import type { Queryable } from '../database/database.ts'
import { returned } from '../database/rows.ts'
import type { KernelContext } from './context.ts'
import type { ActivityEvent, NewEvent } from './model/event.ts'
import type { Party, Scope, Visibility } from './model/fields.ts'
import type { Objective } from './model/objective.ts'
import type { Project } from './model/project.ts'
import type { Run } from './model/run.ts'
import { appendEvents } from './store/events.ts'
import { findBare } from './store/run-cascades.ts'
import { endLeases } from './store/run-leases.ts'
import { executorOf, freeSlots } from './store/slots.ts'

/** Who makes a change, as its events tell it. */
export interface Attribution {
  actor: Party
  actorSource: 'claimed' | 'host' | 'kernel'
  visibility?: Visibility
  requestId?: string
  correlationId?: string
}

/** What the kernel does by itself. */
export const BY_KERNEL: Attribution = { actor: { type: 'system', id: 'kernel' }, actorSource: 'kernel' }

/** What an event is about: where it is found again. */
type Subject = Pick<
  NewEvent,
  'runId' | 'agentId' | 'objectiveId' | 'projectId' | 'parentRunId' | 'teamId' | 'turnId' | 'conversationRefs'
>

export const aboutRun = (run: Run): Subject => {
  const agentId = executorOf(run)
  return {
    runId: run.id,
    ...(agentId !== undefined && { agentId }),
    ...(run.objectiveId !== undefined && { objectiveId: run.objectiveId }),
    ...(run.projectId !== undefined && { projectId: run.projectId }),
    ...(run.parentRunId !== undefined && { parentRunId: run.parentRunId }),
    ...(run.owner.type === 'team' && { teamId: run.owner.id }),
  }
}

/** Of an agent or a team that owns something. */
const aboutOwner = ({ owner }: Objective | Project): Subject =>
  owner.type === 'agent' ? { agentId: owner.id } : { teamId: owner.id }

export const aboutObjective = (objective: Objective): Subject => ({
  objectiveId: objective.id,
  ...aboutOwner(objective),
})

export const aboutProject = (project: Project): Subject => ({ projectId: project.id, ...aboutOwner(project) })

type Told = Subject & Pick<NewEvent, 'eventType' | 'summary' | 'payload' | 'severity' | 'usageDelta' | 'causationId'>

/** One change under way: its transaction, its moment, who makes it, and what there will be to tell of it. */
export class Change {
  readonly #events: NewEvent[] = []
  readonly #ended: Run[] = []
  readonly #givenBack: Run[] = []
  readonly #left: (() => Promise<unknown>)[] = []
  #isHint = true

  readonly context: KernelContext
  readonly scope: Scope
  readonly by: Attribution
  readonly tx: Queryable
  /** Epoch ms by the store's clock. */
  readonly now: number

  constructor(context: KernelContext, scope: Scope, by: Attribution, tx: Queryable) {
    this.context = context
    this.scope = scope
    this.by = by
    this.tx = tx
    this.now = context.store.now()
  }

  get at(): string {
    return toTimestamp(this.now)
  }

  /** Tells of something in the transaction of the change. Events are numbered and written at its end, in this order. */
  report(told: Told, by: Attribution = this.by): NewEvent {
    const event: NewEvent = { id: this.context.newId(), scope: this.scope, ...told, ...by, createdAt: this.at }
    this.#events.push(event)
    return event
  }

  /** Nobody waits for what it does: no hint is given. */
  wakesNobody(): void {
    this.#isHint = false
  }

  /** Leaves something to be done right behind the commit; what fails of it is logged, and others make up for it. */
  leaves(fn: () => Promise<unknown>): void {
    this.#left.push(fn)
  }

  async doLeft(): Promise<void> {
    for (const fn of this.#left) {
      await fn().catch((error: unknown) => this.context.log.warn({ err: error }, 'left to be made up for'))
    }
  }

  /** Whether something may be due now. */
  get isHint(): boolean {
    return this.#isHint
  }

  /** A run is not worked on any more: its lease ends, and with it what it took up. Others wait for that, so it comes late. */
  givesBack(run: Run): void {
    this.#givenBack.push(run)
  }

  /** A run came to its end: what hangs on it follows before the transaction ends. */
  ended(run: Run): void {
    this.#ended.push(run)
  }

  /** @param bare ids of runs on which nothing hangs */
  async #follow(bare: ReadonlySet<string>): Promise<void> {
    for (let run = this.#ended.shift(); run; run = this.#ended.shift()) {
      if (bare.has(run.id)) continue
      for (const follow of this.context.endings) await follow(this, run)
    }
  }

  /**
   * What follows from changes of one transaction, then what others wait for: slots that are free again, and the events, the last
   * that is written. Gives the events of each; on PostgreSQL before they are written, so that the commit goes right behind them.
   */
  static async finish(changes: readonly Change[]): Promise<{ events: Promise<ActivityEvent[][]> }> {
    const { tx, scope } = returned(changes[0])
    const bare = await findBare(
      tx,
      scope,
      changes.flatMap((change) => change.#ended),
    )
    await settled(changes.map((change) => change.#follow(bare)))
    const all = changes.flatMap((change) => change.#events)
    const freed = await endLeases(
      tx,
      scope,
      changes.flatMap((change) => change.#givenBack),
    )
    const written = Promise.all([freeSlots(tx, scope, freed), appendEvents(tx, all)])
    const events = written.then(([, told]) => changes.map((change) => told.splice(0, change.#events.length)))
    if (tx.dialect === 'sqlite' || all.some(({ conversationRefs }) => conversationRefs?.length)) await events
    else events.catch(() => undefined) // the transaction fails with it
    return { events }
  }
}

export interface Changed<T> {
  result: T
  /** As written, in order. */
  events: ActivityEvent[]
}

type Make<T> = (change: Change) => Promise<T>

/**
 * Makes one change in one transaction, with its events. `fn` awaits nothing but the database.
 * What it throws undoes all of it.
 */
export async function makeChange<T>(
  context: KernelContext,
  scope: Scope,
  by: Attribution,
  fn: Make<T>,
): Promise<Changed<T>> {
  const [changed] = await makeChanges(context, scope, [{ by, fn }])
  return returned(changed)
}

/** Makes changes in one transaction, as `makeChange`; they are under way at once. What one throws undoes them all. */
export async function makeChanges<T>(
  context: KernelContext,
  scope: Scope,
  making: readonly { by: Attribution; fn: Make<T> }[],
): Promise<Changed<T>[]> {
  const made = await context.store.database.transaction(async (tx) => {
    const begun = making.map(({ by, fn }) => ({ fn, change: new Change(context, scope, by, tx) }))
    const changes = begun.map(({ change }) => change)
    const results = await settled(begun.map(({ fn, change }) => fn(change)))
    return { changes, results, ...(await Change.finish(changes)) }
  })
  if (made.changes.some(({ isHint }) => isHint)) context.hint(scope)
  const told = await made.events
  for (const change of made.changes) await change.doLeft()
  return made.results.map((result, i) => ({ result, events: told[i] ?? [] }))
}

/** All of them once the last has ended, so that none goes on behind the end of the transaction. @throws what the first of them threw */
async function settled<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  let failure: { error: unknown } | undefined
  const noted = promises.map((promise) =>
    promise.catch((error: unknown) => {
      failure ??= { error }
      throw error
    }),
  )
  await Promise.allSettled(noted)
  if (failure) throw failure.error
  return Promise.all(noted)
}
