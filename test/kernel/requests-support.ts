import { BY_KERNEL, makeChange } from '../../src/kernel/change.ts'
import { teamManifest } from '../../src/kernel/model/definition.ts'
import type { Run } from '../../src/kernel/model/run.ts'
import { moveRun } from '../../src/kernel/run-states.ts'
import { cancelRun } from '../../src/kernel/runs/cancel.ts'
import { saveMoved } from '../../src/kernel/runs/save.ts'
import { insertDefinition } from '../../src/kernel/store/definitions.ts'
import { teamDeployments } from '../../src/kernel/store/deployments.ts'
import { insertRecord, lockRecord, readRecord } from '../../src/kernel/store/records.ts'
import { insertRun, runs } from '../../src/kernel/store/runs.ts'
import { setSlot } from '../../src/kernel/store/slots.ts'
import type { OpenKernel, Reply, ScopedApi } from './api.ts'
import { runOf } from './support.ts'

export const agent = (id: string) => ({ type: 'agent', id })
export const ANA = agent('ana')
export const BO = agent('bo')

/** One scope with a run of Ana's, and what is asked of others for it. */
export class Desk {
  readonly open: OpenKernel
  readonly api: ScopedApi
  #keys = 0

  constructor(open: OpenKernel) {
    this.open = open
    this.api = open.api()
  }

  get scope() {
    return this.api.scope
  }

  /** A run of Ana's, queued. */
  async run(fields: Partial<Run> = {}): Promise<Run> {
    const run = runOf(this.open, { scope: this.scope, ...fields })
    await this.open.store.database.transaction((tx) => insertRun(tx, run))
    return run
  }

  readRun = (id: string): Promise<Run> => readRecord(this.open.store.database, runs, this.scope, id)

  /** What a worker does with a run. */
  async end(id: string, to: 'completed' | 'failed' | 'canceled', fields: Partial<Run> = {}): Promise<void> {
    await makeChange(this.open.kernel.context, this.scope, BY_KERNEL, async (change) => {
      const run = await lockRecord(change.tx, runs, this.scope, id)
      if (to === 'canceled') return cancelRun(change, run, 'enough')
      const { now } = change
      const running = run.status === 'running' ? run : moveRun(run, { to: 'running', now })
      return saveMoved(change, run, { ...moveRun(running, { to, now }), ...fields })
    })
  }

  ask = (sourceRunId: string, fields: object = {}): Promise<Reply> =>
    this.api.post('/agent-requests', {
      kind: 'request',
      requester: ANA,
      recipient: BO,
      sourceRunId,
      goal: 'Count the moons',
      ...fields,
    })

  /** A run with an open request: its id, and that of the run. */
  async asked(fields: object = {}, run: Partial<Run> = {}): Promise<{ id: string; runId: string }> {
    const { id: runId } = await this.run(run)
    const reply = await this.ask(runId, fields)
    if (reply.status !== 201) throw new Error(reply.text)
    return { id: reply.body.request.id, runId }
  }

  answer = (id: string, decision: string, expectedRevision = 1, fields: object = {}): Promise<Reply> =>
    this.api.post(`/agent-requests/${id}/responses`, {
      decision,
      expectedRevision,
      principal: decision === 'provide_clarification' ? ANA : BO,
      ...fields,
    })

  async accepted(fields: object = {}, run: Partial<Run> = {}): Promise<{ id: string; runId: string; childId: string }> {
    const asked = await this.asked(fields, run)
    const reply = await this.answer(asked.id, 'accept', 1)
    if (reply.status !== 200) throw new Error(reply.text)
    return { ...asked, childId: reply.body.childRun.id }
  }

  complete = (id: string, expectedRevision: number, fields: object = {}, key = `c${++this.#keys}`): Promise<Reply> =>
    this.api.post(
      `/agent-requests/${id}/completions`,
      { expectedRevision, principal: BO, summary: 'Two moons', ...fields },
      key,
    )

  review = (id: string, expectedRevision: number, by: string, approve: boolean, fields: object = {}): Promise<Reply> =>
    this.api.post(
      `/agent-requests/${id}/completion-review`,
      { expectedRevision, principal: agent(by), approve, summary: approve ? 'Good' : 'Not good', ...fields },
      `r${++this.#keys}`,
    )

  async get(id: string) {
    return (await this.api.get(`/agent-requests/${id}`)).body
  }

  async events(runId: string): Promise<string[]> {
    const { body } = await this.api.get(`/activity?runId=${runId}&order=asc&limit=100`)
    return body.items.map(({ eventType }: { eventType: string }) => eventType)
  }

  /** A team of these members, by role. */
  async team(members: Record<string, string>, delegation: object = {}): Promise<void> {
    const { scope, open } = this
    const at = open.at()
    const definition = teamManifest.parse({
      id: 'crew',
      version: '1',
      displayName: 'Crew',
      purpose: 'Sail',
      roles: [...new Set(Object.values(members))].map((id) => ({ id, displayName: id, purpose: id })),
      coordination: { mode: 'peer' },
      delegation: {
        maximumDepth: 2,
        maximumConcurrent: 10,
        allowPeerDelegation: true,
        requireAcceptance: false,
        requireCompletionReview: false,
        escalateOnDisagreement: false,
        ...delegation,
      },
      approvals: { maximumRisk: 'write' },
    })
    await open.store.database.transaction(async (tx) => {
      await insertDefinition(tx, 'team', { ...definition, scope, digest: 'd', createdAt: at })
      await insertRecord(tx, teamDeployments, {
        scope,
        id: 'crew',
        revision: 1,
        createdAt: at,
        updatedAt: at,
        definitionId: 'crew',
        activeVersion: '1',
        roster: Object.entries(members).map(([id, roleId]) => ({ id: `m-${id}`, roleId, agentDeploymentId: id })),
        restrictions: {},
        status: 'active',
      })
      for (const name of Object.keys(members)) {
        await setSlot(tx, scope, { kind: 'agent', name, capacity: name === 'cy' ? 3 : 1, closed: false })
      }
    })
  }
}

export const TEAM = { type: 'team', id: 'crew' } as const
