import { endOverdueApprovals } from '../../src/kernel/actions/expire.ts'
import { claimCall } from '../../src/kernel/actions/claim-call.ts'
import type { Scope } from '../../src/kernel/model/fields.ts'
import type { Run } from '../../src/kernel/model/run.ts'
import { cancelDescendants } from '../../src/kernel/runs/cancel.ts'
import { signalRuns, wakeDueRuns } from '../../src/kernel/runs/wake.ts'
import { scopeKey } from '../../src/kernel/store/scope-key.ts'
import { APPROVER, bindingOf, BY, openStage, type Stage } from './actions-support.ts'
import type { OpenKernel } from './api.ts'
import {
  BY_USER,
  deploymentOf,
  install,
  installVersions,
  LEAD,
  manifestOf,
  teamDeploymentOf,
  teamOf,
} from './registry-support.ts'
import { Desk } from './requests-support.ts'
import { RunBench } from './runs-support.ts'

/** A write, tried on a kernel whose store fails: it must leave nothing, and be done when it is tried again. */
export interface Write {
  scope: Scope
  /** Gives the status of an answer; undefined where it is no request. */
  act(kernel: OpenKernel): Promise<number | undefined>
}

export type Prepare = (open: OpenKernel) => Promise<Write>

const OWNER = { type: 'agent', id: 'ana' }
const OBJECTIVE = { title: 'Stars', goal: 'Count', owner: OWNER, status: 'active', budget: { maxTurns: 9 } }
const CRITERIA = [{ id: 'right', description: 'Counts right', required: true }]
const AMENDED = { allowedFields: ['purpose'], approverPrincipals: ['user:una'], requiresApproval: true }

/** One request in this scope. */
const request = (
  scope: Scope,
  method: 'post' | 'put' | 'patch',
  path: string,
  body: object,
  key = 'the key',
): Write => ({
  scope,
  act: async (kernel) => (await kernel.api(scope)[method](path, body, key)).status,
})

async function running(open: OpenKernel): Promise<{ bench: RunBench; run: Run }> {
  const bench = new RunBench(open)
  await install(bench.api)
  await bench.run()
  const claimed = await bench.claim()
  if (!claimed) throw new Error('nothing was claimed')
  return { bench, run: claimed.run }
}

/** Under the default policy. */
async function asking(open: OpenKernel): Promise<{ stage: Stage; path: string; runId: string }> {
  const stage = await openStage(open)
  const { id: runId } = await stage.begin({ budget: { maxActions: 3 } })
  await stage.propose(runId, { action: 'note' })
  return { stage, runId, path: `/action-approvals/${(await stage.call(runId)).approvalId}/decisions` }
}

const decision =
  (decided: string): Prepare =>
  async (open) => {
    const { stage, path } = await asking(open)
    const body = { decision: decided, reason: 'r', expectedRevision: 1, decisionId: 'd', principal: APPROVER }
    return request(stage.scope, 'post', path, body)
  }

const command =
  (kind: string, fields: Partial<Run> = {}, more: object = {}): Prepare =>
  async (open) => {
    const bench = new RunBench(open)
    const { id } = await bench.put(fields)
    return request(bench.scope, 'post', `/agent-runs/${id}/commands`, { kind, expectedRevision: 1, ...more })
  }

const answer =
  (given: string, more: object = {}): Prepare =>
  async (open) => {
    const it = new Desk(open)
    const { id } = await it.asked()
    return request(it.scope, 'post', `/agent-requests/${id}/responses`, {
      decision: given,
      expectedRevision: 1,
      principal: { type: 'agent', id: 'bo' },
      ...more,
    })
  }

async function proposed(open: OpenKernel): Promise<{ api: ReturnType<OpenKernel['api']>; path: string }> {
  const api = open.api()
  await install(api, { manifest: { amendments: AMENDED, evaluations: CRITERIA } })
  const {
    scope: _s,
    digest: _d,
    createdAt: _c,
    ...manifest
  } = (await api.get('/agent-deployments/ana')).body.definition
  const candidate = { ...manifest, version: '2.0.0', purpose: 'Counts more' }
  const { body } = await api.post('/agent-deployments/ana/amendments', {
    candidate,
    proposerType: 'user',
    proposerId: 'una',
    rationale: 'Better',
  })
  return { api, path: `/agent-deployments/ana/amendments/${body.id}` }
}

const evaluation = { expectedRevision: 1, evaluations: [{ criterionId: 'right', passed: true, summary: 'Right' }] }
const approved = { ...BY_USER, expectedRevision: 2, approved: true }

const team = async (open: OpenKernel) => {
  const api = open.api()
  await install(api)
  await api.post('/team-definitions', teamOf())
  return api
}

/** Each write of each family of routes. */
export const WRITES: Record<string, Prepare> = {
  'POST objective': async (open) => request(open.api().scope, 'post', '/objectives', OBJECTIVE),
  'PUT objective': async (open) => {
    const api = open.api()
    const { id } = (await api.post('/objectives', OBJECTIVE)).body
    return request(api.scope, 'put', `/objectives/${id}`, {
      title: 'Suns',
      goal: 'Count',
      expectedRevision: 1,
      status: 'paused',
    })
  },
  'POST project': async (open) => {
    const api = open.api()
    const { id } = (await api.post('/objectives', OBJECTIVE)).body
    return request(api.scope, 'post', '/projects', { title: 'Sky', purpose: 'Know', owner: OWNER, objectiveRefs: [id] })
  },
  'PATCH project': async (open) => {
    const api = open.api()
    const ids: string[] = []
    for (let i = 0; i < 2; i++) ids.push((await api.post('/objectives', OBJECTIVE)).body.id)
    await api.post('/projects', { id: 'sky', title: 'Sky', purpose: 'Know', owner: OWNER, objectiveRefs: [ids[0]] })
    return request(api.scope, 'patch', '/projects/sky', { expectedRevision: 1, objectiveRefs: ids, status: 'active' })
  },
  'POST run of an objective with a budget': async (open) => {
    const api = open.api()
    const { id } = (await api.post('/objectives', OBJECTIVE)).body
    const body = { goal: 'Count', owner: OWNER, objectiveId: id, budget: { maxTurns: 2 } }
    return request(api.scope, 'post', '/agent-runs', body)
  },
  'POST run of a parent': async (open) => {
    const bench = new RunBench(open)
    const { id } = await bench.run({ budget: { maxTurns: 9 } })
    return request(bench.scope, 'post', '/agent-runs', {
      goal: 'Count',
      owner: OWNER,
      parentRunId: id,
      budget: { maxTurns: 2 },
    })
  },
  pause: command('pause'),
  'pause of a run that works': async (open) => {
    const { bench, run } = await running(open)
    return request(bench.scope, 'post', `/agent-runs/${run.id}/commands`, {
      kind: 'pause',
      expectedRevision: run.revision,
    })
  },
  resume: command('resume', { status: 'paused', pausedFrom: 'queued', pauseReason: 'command' }),
  intervene: command('intervene', {}, { instruction: 'Look up' }),
  'cancel in waiting_for_approval': async (open) => {
    const { stage, runId } = await asking(open)
    const { revision: expectedRevision } = await stage.run(runId)
    return request(stage.scope, 'post', `/agent-runs/${runId}/commands`, { kind: 'cancel', expectedRevision })
  },
  'decision approve': decision('approve'),
  'decision reject': decision('reject'),
  'decision request_changes': decision('request_changes'),
  'POST agent request': async (open) => {
    const it = new Desk(open)
    const { id } = await it.run({ budget: { maxTurns: 9 } })
    return request(it.scope, 'post', '/agent-requests', {
      kind: 'request',
      requester: OWNER,
      recipient: { type: 'agent', id: 'bo' },
      sourceRunId: id,
      goal: 'Count the moons',
      budgetAllocation: { maxTurns: 3 },
    })
  },
  'response accept': answer('accept'),
  'response reject': answer('reject'),
  'response request_clarification': answer('request_clarification', { message: 'Which?' }),
  'handoff accepted': async (open) => {
    const it = new Desk(open)
    const { id } = await it.asked({ kind: 'handoff' })
    const body = { decision: 'accept', expectedRevision: 1, principal: { type: 'agent', id: 'bo' } }
    return request(it.scope, 'post', `/agent-requests/${id}/responses`, body)
  },
  completion: async (open) => {
    const it = new Desk(open)
    const { id } = await it.accepted()
    const body = { expectedRevision: 2, principal: { type: 'agent', id: 'bo' }, summary: 'Two' }
    return request(it.scope, 'post', `/agent-requests/${id}/completions`, body)
  },
  'completion review': async (open) => {
    const it = new Desk(open)
    await it.team({ ana: 'lead', bo: 'hand' }, { requireCompletionReview: true })
    const { id } = await it.accepted({}, { owner: { type: 'team', id: 'crew' }, assignedAgentId: 'ana' })
    await it.complete(id, 2)
    const body = { expectedRevision: 3, principal: OWNER, approve: true, summary: 'Good' }
    return request(it.scope, 'post', `/agent-requests/${id}/completion-review`, body)
  },
  'POST agent installation': async (open) =>
    request(open.api().scope, 'post', '/agent-installations', {
      ...BY_USER,
      manifest: manifestOf(),
      deployment: deploymentOf(),
    }),
  'PUT agent deployment': async (open) => {
    const api = open.api()
    const { deployment } = (await install(api)).body
    return request(api.scope, 'put', '/agent-deployments/ana', {
      ...BY_USER,
      deployment: { ...deployment, rolloutStatus: 'paused' },
      expectedRevision: 1,
      reason: 'r',
    })
  },
  activation: async (open) => {
    const api = open.api()
    const expectedRevision = await installVersions(api, ['1.0.0', '2.0.0'])
    return request(api.scope, 'post', '/agent-deployments/ana/activations', {
      ...BY_USER,
      version: '1.0.0',
      expectedRevision,
    })
  },
  rollback: async (open) => {
    const api = open.api()
    const expectedRevision = await installVersions(api, ['1.0.0', '2.0.0'])
    return request(api.scope, 'post', '/agent-deployments/ana/rollbacks', { ...BY_USER, expectedRevision })
  },
  evaluation: async (open) => {
    const { api, path } = await proposed(open)
    return request(api.scope, 'post', `${path}/evaluations`, evaluation)
  },
  'decision on an amendment': async (open) => {
    const { api, path } = await proposed(open)
    await api.post(`${path}/evaluations`, evaluation)
    return request(api.scope, 'post', `${path}/decisions`, approved)
  },
  'activation of an amendment': async (open) => {
    const { api, path } = await proposed(open)
    await api.post(`${path}/evaluations`, evaluation)
    await api.post(`${path}/decisions`, approved)
    return request(api.scope, 'post', `${path}/activations`, { ...BY_USER, expectedRevision: 3 })
  },
  'POST team definition': async (open) => request(open.api().scope, 'post', '/team-definitions', teamOf()),
  'POST team deployment': async (open) =>
    request((await team(open)).scope, 'post', '/team-deployments', { ...BY_USER, deployment: teamDeploymentOf() }),
  'PUT team deployment': async (open) => {
    const api = await team(open)
    const { deployment } = (await api.post('/team-deployments', { ...BY_USER, deployment: teamDeploymentOf() })).body
    return request(api.scope, 'put', '/team-deployments/crew', {
      ...BY_USER,
      deployment: { ...deployment, status: 'active', roster: [LEAD] },
      expectedRevision: 1,
      reason: 'r',
    })
  },
  'PUT binding': async (open) => {
    const api = open.api()
    await install(api, { manifest: { skillRequirements: [], authority: { maximumRisk: 'destructive' } } })
    return request(api.scope, 'put', '/agent-deployments/ana/skill-bindings/desk', {
      binding: bindingOf(),
      expectedRevision: 0,
      ...BY,
    })
  },
  'disable of a binding': async (open) => {
    const { scope } = await openStage(open)
    const body = { expectedRevision: 1, ...BY }
    return request(scope, 'post', '/agent-deployments/ana/skill-bindings/desk/disable', body)
  },
}

/** What the kernel does by itself; what fails is thrown, or left for the next time. */
export const STEPS: Record<string, Prepare> = {
  claim: async (open) => {
    const bench = new RunBench(open)
    await install(bench.api)
    await bench.run()
    const act = async (kernel: OpenKernel): Promise<undefined> => {
      const there = new RunBench({ ...kernel, api: () => kernel.api(bench.scope) })
      await there.claim().catch(() => undefined)
    }
    return { scope: bench.scope, act }
  },
  signal: async (open) => {
    const bench = new RunBench(open)
    const waits = { status: 'waiting_for_event', wakeCondition: { type: 'event', reference: 'mail' } } as const
    await bench.put(waits)
    const signal = { id: 's', type: 'event', reference: 'mail' } as const
    return { scope: bench.scope, act: (kernel) => quietly(signalRuns(kernel.kernel.context, bench.scope, signal)) }
  },
  timer: async (open) => {
    const bench = new RunBench(open)
    await bench.put({ status: 'sleeping', wakeCondition: { type: 'timer', wakeAt: open.at() } })
    return { scope: bench.scope, act: (kernel) => quietly(wakeDueRuns(kernel.kernel.context)) }
  },
  'end of an approval': async (open) => {
    const { stage } = await asking(open)
    open.advance(86_400_001)
    return { scope: stage.scope, act: (kernel) => quietly(endOverdueApprovals(kernel.kernel.context)) }
  },
  'claim of a call': async (open) => {
    const stage = await openStage(open)
    const { id } = await stage.begin()
    await stage.propose(id, { action: 'look' })
    const worker = { worker: 'w', leaseMs: 60_000 }
    return { scope: stage.scope, act: (kernel) => quietly(claimCall(kernel.store, stage.scope, worker)) }
  },
  cascade: async (open) => {
    const bench = new RunBench(open)
    const { id } = await bench.run()
    for (let i = 0; i < 2; i++) await bench.run({ parentRunId: id })
    await bench.db.run(
      `UPDATE kernel_runs SET status = 'canceled', body = replace(body, '"queued"', '"canceled"')
       WHERE scope = $1 AND id = $2`,
      [scopeKey(bench.scope), id],
    )
    return { scope: bench.scope, act: (kernel) => quietly(cancelDescendants(kernel.kernel.context, bench.scope, id)) }
  },
}

const quietly = (work: Promise<unknown>): Promise<undefined> =>
  work.then(
    () => undefined,
    () => undefined,
  )
