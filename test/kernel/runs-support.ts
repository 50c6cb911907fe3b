import type { Claimed } from '../../src/kernel/claim.ts'
import type { Objective } from '../../src/kernel/model/objective.ts'
import type { Run, WakeCondition } from '../../src/kernel/model/run.ts'
import { insertRecord, readRecord } from '../../src/kernel/store/records.ts'
import { listRuns, insertRun, runs } from '../../src/kernel/store/runs.ts'
import type { WorkerLimits } from '../../src/kernel/store/slots.ts'
import { saveWorker } from '../../src/kernel/store/workers.ts'
import { approvals, insertApproval } from '../../src/kernel/store/approvals.ts'
import { calls } from '../../src/kernel/store/calls.ts'
import type { ActionCall, Approval } from '../../src/kernel/model/action.ts'
import type { OpenKernel, Reply, ScopedApi } from './api.ts'
import { approvalOf, callOf, claimRun, runOf } from './support.ts'

export const ANA = { type: 'agent', id: 'ana' } as const
export const UNLIMITED: WorkerLimits = { agent: 0, owner: 0, objective: 0, concurrency_key: 0 }

/** What each waiting state waits for. */
export const WAITS = {
  sleeping: { type: 'timer', wakeAt: '2027-01-01T00:00:00.000Z' },
  waiting_for_dependency: { type: 'run_dependencies', reference: 'group' },
  waiting_for_agent: { type: 'agent_request', reference: 'request' },
  waiting_for_approval: { type: 'approval', reference: 'approval' },
  waiting_for_event: { type: 'event', reference: 'mail', predicate: { folder: 'in' } },
} as const satisfies Record<string, WakeCondition>

/** One scope, its runs and its worker. */
export class RunBench {
  readonly open: OpenKernel
  readonly api: ScopedApi

  constructor(open: OpenKernel) {
    this.open = open
    this.api = open.api()
  }

  get scope() {
    return this.api.scope
  }

  get db() {
    return this.open.store.database
  }

  create = (fields: object = {}, key?: string): Promise<Reply> =>
    this.api.post('/agent-runs', { owner: ANA, goal: 'Count the stars', ...fields }, key)

  /** A run as a client makes it. */
  async run(fields: object = {}): Promise<Run> {
    const { status, text, body } = await this.create(fields)
    if (status !== 201) throw new Error(text)
    return body.run
  }

  /** A run in whatever state. */
  put(fields: Partial<Run> = {}): Promise<Run> {
    return this.db.transaction((tx) => insertRun(tx, runOf(this.open, { scope: this.scope, ...fields })))
  }

  read = (id: string): Promise<Run> => readRecord(this.db, runs, this.scope, id)

  all = async (): Promise<Run[]> => (await listRuns(this.db, this.scope, {}, 'scheduler', { limit: 1000 })).items

  /** Of the revision that the run has now, unless told otherwise. */
  async command(id: string, kind: string, more: object = {}, key?: string): Promise<Reply> {
    const { revision } = await this.read(id)
    return this.api.post(`/agent-runs/${id}/commands`, { expectedRevision: revision, kind, ...more }, key)
  }

  claim = (limits: Partial<WorkerLimits> = {}, worker = 'worker'): Promise<Claimed | undefined> =>
    claimRun(this.open.kernel.context, {
      scope: this.scope,
      kinds: ['agent_work'],
      worker,
      leaseMs: 30_000,
      limits: { ...UNLIMITED, ...limits },
      knownAgents: this.open.kernel.context.agents === true,
    })

  /** A pool that was seen just now. */
  register = (limits: Partial<WorkerLimits> = {}, id = 'pool'): Promise<void> =>
    saveWorker(this.db, {
      id,
      scope: this.scope,
      kind: 'run',
      runKinds: ['agent_work'],
      concurrency: 2,
      active: 0,
      limits: { ...UNLIMITED, ...limits },
      lastSeenAt: this.open.store.now(),
    })

  async objective(fields: object = {}): Promise<Objective> {
    const { status, text, body } = await this.api.post('/objectives', {
      owner: ANA,
      title: 'Stars',
      goal: 'Know how many',
      status: 'active',
      ...fields,
    })
    if (status !== 201) throw new Error(text)
    return body
  }

  /** A run that waits for an approval of its call. */
  async awaitingApproval(): Promise<{ run: Run; call: ActionCall; approval: Approval }> {
    const approvalId = this.open.newId()
    const run = await this.put({
      status: 'waiting_for_approval',
      wakeCondition: { type: 'approval', reference: approvalId },
    })
    const fields = { scope: this.scope, runId: run.id }
    const call = callOf(this.open, { ...fields, status: 'waiting_for_approval', approvalId })
    const approval = approvalOf(this.open, { ...fields, id: approvalId, actionCallId: call.id })
    await this.db.transaction(async (tx) => {
      await insertRecord(tx, calls, call)
      await insertApproval(tx, approval, run.owner)
    })
    return { run, call, approval }
  }

  readCall = (id: string): Promise<ActionCall> => readRecord(this.db, calls, this.scope, id)
  readApproval = (id: string): Promise<Approval> => readRecord(this.db, approvals, this.scope, id)

  /** Types of what happened, the oldest first. */
  async events(runId: string): Promise<string[]> {
    const { body } = await this.api.get(`/activity?runId=${runId}&order=asc&limit=100`)
    return body.items.map(({ eventType }: { eventType: string }) => eventType)
  }
}
