import { expect, test, vi } from 'vitest'
import { createSkillCatalog } from '../../src/kernel/actions/catalog.ts'
import { Engine } from '../../src/kernel/engine/engine.ts'
import { defaultPolicy } from '../../src/kernel/policy.ts'
import { reconcileDeployments } from '../../src/kernel/registry/reconcile.ts'
import { deskSkill } from './actions-support.ts'
import { describeKernels } from './api.ts'
import { BY_USER, install } from './registry-support.ts'

const full = createSkillCatalog([deskSkill('https://desk.example')])
const empty = createSkillCatalog([])
let catalog = empty

const ACTIONS = {
  catalog: { find: (...skill: Parameters<typeof full.find>) => catalog.find(...skill) },
  policy: defaultPolicy(),
  validators: [],
  transports: {},
  credentials: { resolve: async () => 'none' },
}
const BINDING = {
  binding: { skillId: 'desk', skillVersion: '1.0.0', allowedActions: ['look'], maximumRisk: 'read' },
  actor: { type: 'user', id: 'una' },
  reason: 'r',
}

describeKernels(
  'agents whose skills come and go',
  (open) => {
    test('an agent is degraded while a skill bound to it is gone, and active again once it is back', async () => {
      const api = open().api()
      catalog = full
      const authority = { maximumRisk: 'read' }
      for (const [id, rolloutStatus] of [
        ['ana', 'active'],
        ['bo', 'active'],
        ['cy', 'paused'],
      ]) {
        await install(api, { manifest: { authority }, deployment: { id, rolloutStatus } })
      }
      for (const id of ['ana', 'cy']) {
        const path = `/agent-deployments/${id}/skill-bindings/desk-${id}`
        expect((await api.put(path, { ...BINDING, expectedRevision: 0 })).status).toBe(201)
      }
      const reconcile = (): Promise<number> => reconcileDeployments(open().kernel.context, api.scope)
      const states = async (): Promise<string[]> =>
        (await api.get('/agent-deployments')).body.items.map(
          ({ deployment }: { deployment: { rolloutStatus: string } }) => deployment.rolloutStatus,
        )
      expect([await reconcile(), await states()]).toEqual([0, ['active', 'active', 'paused']])
      catalog = empty
      expect([await reconcile(), await states()]).toEqual([1, ['degraded', 'active', 'paused']])
      expect(await reconcile()).toBe(0)
      const { deployment } = (await api.get('/agent-deployments/ana')).body
      expect(deployment.revision).toBe(2)
      const put = await api.put('/agent-deployments/ana', {
        ...BY_USER,
        deployment: { ...deployment, rolloutStatus: 'active' },
        expectedRevision: 2,
        reason: 'r',
      })
      expect(put.status).toBe(409)
      const again = await install(api, { manifest: { authority }, deployment: { rolloutStatus: 'active' } })
      expect(again.body).toMatchObject({ replayed: true, deployment: { rolloutStatus: 'degraded' } })
      catalog = full
      expect([await reconcile(), await states()]).toEqual([1, ['active', 'active', 'paused']])
      catalog = empty
      await reconcile()
      await api.post('/agent-deployments/ana/skill-bindings/desk-ana/disable', {
        ...BINDING,
        binding: undefined,
        expectedRevision: 1,
      })
      expect([await reconcile(), await states()]).toEqual([1, ['active', 'active', 'paused']])
      const told = (await api.get('/activity?agentId=ana&eventType=skill.deployment_degraded&includeDetails=true')).body
      expect(told.items[0]).toMatchObject({
        severity: 'warning',
        payload: { to: 'degraded', bindingIds: ['desk-ana'] },
      })
    })

    test('workers of a scope look after that by themselves', async () => {
      const api = open().api()
      catalog = full
      await install(api, { manifest: { authority: { maximumRisk: 'read' } } })
      const bound = await api.put('/agent-deployments/ana/skill-bindings/desk', { ...BINDING, expectedRevision: 0 })
      expect(bound.status).toBe(201)
      catalog = empty
      const { context, hints } = open().kernel
      const modelHost = { propose: () => Promise.reject(new Error('there is nothing to ask')) }
      const engine = new Engine(context, hints, { modelHost, runWorkers: [{ scopes: [api.scope] }] })
      await engine.start()
      const stateOf = async (): Promise<string> =>
        (await api.get('/agent-deployments/ana')).body.deployment.rolloutStatus
      await vi.waitFor(async () => expect(await stateOf()).toBe('degraded'), { timeout: 20_000, interval: 20 })
      await engine.stop({ graceMs: 0 })
    })
  },
  { actions: ACTIONS },
)
