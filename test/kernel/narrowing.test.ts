import { expect, test } from 'vitest'
import { reconcileRequests } from '../../src/kernel/requests/reconcile.ts'
import { describeKernels, type Reply, type ScopedApi } from './api.ts'
import { BY_USER, deploymentOf, install, LEAD, refusal, teamDeploymentOf, teamOf } from './registry-support.ts'

const ANA = { type: 'agent', id: 'ana' }
const BO = { type: 'agent', id: 'bo' }

describeKernels(
  'deployments that narrow their definition',
  (open) => {
    const create = (api: ScopedApi, fields: object = {}): Promise<Reply> =>
      api.post('/agent-runs', { owner: ANA, goal: 'Count the stars', ...fields })

    test('a queue takes so many runs as the capacity says; of racers for the last place one has it', async () => {
      const api = open().api()
      const capacity = { maxConcurrentRuns: 1, maxQueuedRuns: 3 }
      expect((await install(api, { deployment: { capacity } })).status).toBe(201)
      const first = await create(api)
      expect(first.status).toBe(201)
      expect((await create(api, { owner: { type: 'team', id: 'crew' }, assignedAgentId: 'ana' })).status).toBe(201)
      const racers = await Promise.all([create(api), create(api), create(api)])
      expect(racers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 409, 409])
      const full = [409, 'agent ana has 3 queued runs and takes no more: try again later']
      expect(refusal(await create(api))).toEqual(full)
      expect(refusal(await create(api, { assignedAgentId: 'ana', owner: BO }))).toEqual(full)
      for (const fields of [{ owner: BO }, { assignedAgentId: 'bo' }]) {
        expect((await create(api, fields)).status).toBe(201)
      }
      const cancel = { kind: 'cancel', expectedRevision: 1 }
      expect((await api.post(`/agent-runs/${first.body.run.id}/commands`, cancel)).status).toBe(200)
      expect((await create(api)).status).toBe(201)

      const { deployment } = (await api.get('/agent-deployments/ana')).body
      const wider = { ...deployment, capacity: { maxConcurrentRuns: 1 } }
      const put = { ...BY_USER, deployment: wider, expectedRevision: deployment.revision, reason: 'r' }
      expect((await api.put('/agent-deployments/ana', put)).status).toBe(200)
      expect((await create(api)).status).toBe(201)
    })

    test('a request to an agent whose queue is full is not accepted until there is room', async () => {
      const api = open().api()
      await install(api)
      const capacity = { maxConcurrentRuns: 1, maxQueuedRuns: 1 }
      await install(api, { manifest: { id: 'bo' }, deployment: deploymentOf({ id: 'bo', capacity }) })
      const { id: sourceRunId } = (await create(api)).body.run
      const asked = await api.post('/agent-requests', {
        kind: 'request',
        requester: ANA,
        recipient: BO,
        sourceRunId,
        goal: 'Count the moons',
        acceptancePolicy: 'preauthorized',
      })
      const taken = (await create(api, { owner: BO })).body.run
      const path = `/agent-requests/${asked.body.request.id}`
      const accept = { decision: 'accept', expectedRevision: 1, principal: BO }
      expect((await api.post(`${path}/responses`, accept)).status).toBe(409)
      await reconcileRequests(open().kernel.context, api.scope)
      expect((await api.get(path)).body.status).toBe('pending')
      await api.post(`/agent-runs/${taken.id}/commands`, { kind: 'cancel', expectedRevision: 1 })
      await reconcileRequests(open().kernel.context, api.scope)
      expect((await api.get(path)).body.status).toBe('accepted')
    })

    test('a team delegates no more at once than its deployment allows', async () => {
      const api = open().api()
      await install(api)
      await install(api, { manifest: { id: 'bo' }, deployment: { id: 'bo' } })
      expect((await api.post('/team-definitions', teamOf())).status).toBe(201)
      const deployment = teamDeploymentOf({
        status: 'active',
        roster: [LEAD, { id: 'm2', roleId: 'hand', agentDeploymentId: 'bo' }],
        restrictions: { maximumConcurrency: 2 },
      })
      expect((await api.post('/team-deployments', { ...BY_USER, deployment })).status).toBe(201)
      const { id: sourceRunId } = (await create(api, { owner: { type: 'team', id: 'crew' }, assignedAgentId: 'ana' }))
        .body.run
      const ask = (): Promise<Reply> =>
        api.post('/agent-requests', { kind: 'request', requester: ANA, recipient: BO, sourceRunId, goal: 'Count' })
      expect((await ask()).body.request.delegationPolicy.maximumConcurrent).toBe(2)
      expect((await ask()).status).toBe(201)
      expect(refusal(await ask())).toEqual([409, '2 requests are open, which is all that delegation allows'])
    })
  },
  { agents: true },
)
