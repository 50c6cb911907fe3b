import { toTimestamp } from '../base/clock.ts'
import type { Queryable } from '../database/database.ts'
import type { KernelContext } from './context.ts'
import type { ActivityEvent, NewEvent } from './model/event.ts'
import type { Party, Scope, Visibility } from './model/fields.ts'
import type { Objective } from './model/objective.ts'
import type { Project } from './model/project.ts'
import type { Run } from './model/run.ts'
import { appendEvents } from './store/events.ts'
import { releaseLease } from './store/run-leases.ts'
import { executorOf } from './store/slots.ts'

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

  /** What follows, what is given back, then the events: the last that the transaction writes. */
  async finish(): Promise<ActivityEvent[]> {
    for (let run = this.#ended.shift(); run; run = this.#ended.shift()) {
      for (const follow of this.context.endings) await follow(this, run)
    }
    for (const { id } of this.#givenBack) await releaseLease(this.tx, this.scope, id)
    return appendEvents(this.tx, this.#events)
  }
}

export interface Changed<T> {
  result: T
  /** As written, in order. */
  events: ActivityEvent[]
}

/**
 * Makes one change in one transaction, with its events. `fn` awaits nothing but the database.
 * What it throws undoes all of it.
 */
export async function makeChange<T>(
  context: KernelContext,
  scope: Scope,
  by: Attribution,
  fn: (change: Change) => Promise<T>,
): Promise<Changed<T>> {
  const { isHint, ...changed } = await context.store.database.transaction(async (tx) => {
    const change = new Change(context, scope, by, tx)
    const result = await fn(change)
    return { result, events: await change.finish(), isHint: change.isHint }
  })
  if (isHint) context.hint(scope)
  return changed
}
