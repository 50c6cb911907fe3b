import { expect, test } from 'vitest'
import { bindings } from '../../src/kernel/store/bindings.ts'
import { readRecord } from '../../src/kernel/store/records.ts'
import { ALLOWED, bindingOf, BY, openStage, servedParts, useDesk } from './actions-support.ts'
import { describeKernels, type Reply, type ScopedApi } from './api.ts'
import { BY_USER, install, teamOf } from './registry-support.ts'

const desk = useDesk()
const AGENT = '/agent-deployments/ana/skill-bindings'

const put = (api: ScopedApi, id: string, fields: object, expectedRevision = 0, base = AGENT): Promise<Reply> =>
  api.put(`${base}/${id}`, { binding: bindingOf(fields), expectedRevision, ...BY })
const disable = (api: ScopedApi, id: string, expectedRevision: number): Promise<Reply> =>
  api.post(`${AGENT}/${id}/disable`, { expectedRevision, ...BY })
const withAgent = async (api: ScopedApi): Promise<ScopedApi> => {
  const { status } = await install(api, {
    manifest: { skillRequirements: [], authority: { maximumRisk: 'destructive' } },
  })
  expect(status).toBe(201)
  return api
}

describeKernels(
  'skill bindings',
  (open) => {
    test('kernel2#1 created once, disabled once, there after a restart', async () => {
      const api = await withAgent(open().api())
      const created = await put(api, 'desk', {})
      expect(created.status).toBe(201)
      expect(created.body).toMatchObject({
        apiVersion: '2',
        binding: {
          id: 'desk',
          deploymentId: 'ana',
          revision: 1,
          disabled: false,
          lifecycle: [{ action: 'created', ...BY }],
        },
      })
      expect(created.body.binding.family).toBeUndefined()
      expect((await put(api, 'desk', {})).status).toBe(409)
      expect((await put(open().api(), 'desk', {})).status).toBe(404)
      const kept = await readRecord(open().store.database, bindings, api.scope, 'desk')
      expect(kept).toMatchObject({ revision: 1, credentials: { login: { kind: 'bearer', id: 'desk-login' } } })
      const disabled = await disable(api, 'desk', 1)
      expect(disabled.body.binding).toMatchObject({ revision: 2, disabled: true })
      expect((await disable(api, 'desk', 2)).status).toBe(409)
      expect((await disable(api, 'none', 1)).status).toBe(404)
      expect((await api.get(AGENT)).body).toMatchObject({
        apiVersion: '2',
        deploymentId: 'ana',
        items: [{ id: 'desk' }],
      })
    })

    test('kernel2#1 with a key the same again replays', async () => {
      const api = await withAgent(open().api())
      const body = { binding: bindingOf(), expectedRevision: 0, ...BY }
      expect((await api.put(`${AGENT}/desk`, body, 'key')).status).toBe(201)
      const again = await api.put(`${AGENT}/desk`, body, 'key')
      expect([again.status, again.headers.get('Idempotent-Replay'), again.body.binding.revision]).toEqual([
        200,
        'true',
        1,
      ])
    })

    test('kernel2#2 a disabled one is enabled by PUT, never disabled by it', async () => {
      const api = await withAgent(open().api())
      await put(api, 'desk', {})
      expect((await put(api, 'desk', { allowedActions: ['look'] }, 1)).body.binding.lifecycle.at(-1).action).toBe(
        'updated',
      )
      await disable(api, 'desk', 2)
      const { status, body } = await put(api, 'desk', {}, 3)
      expect([status, body.binding.disabled]).toEqual([200, false])
      expect(body.binding.lifecycle.map(({ action }: { action: string }) => action)).toEqual([
        'created',
        'updated',
        'disabled',
        'enabled',
      ])
      expect((await put(api, 'desk', { disabled: true }, 4)).status).toBe(400)
      expect((await put(api, 'desk', {}, 3)).status).toBe(409)
    })

    test('kernel2#3 what does not fit skill or deployment is malformed', async () => {
      const api = open().api()
      await install(api, { manifest: { skillRequirements: [], authority: { maximumRisk: 'external' } } })
      const fits = { maximumRisk: 'external' }
      expect((await put(api, 'desk', fits)).status).toBe(201)
      for (const [wrong, status] of [
        [{ skillVersion: '9.9.9' }, 404],
        [{ skillVersion: '2.0.0' }, 400],
        [{ skillVersion: '2.0.0', sourceIdentity: 'here' }, 400],
        [{ maximumRisk: 'destructive' }, 400],
        [{ maximumRisk: 'read' }, 400],
        [{ credentials: {} }, 400],
        [{ credentials: { login: { kind: 'basic', id: 'x' } } }, 400],
        [{ credentials: { login: { kind: 'bearer', id: 'x' }, more: { kind: 'bearer', id: 'x' } } }, 400],
        [{ config: { apiKey: 'x' } }, 400],
        [{ config: { room: 'x' } }, 400],
        [{ argumentRestrictions: { note: { volume: { const: 1 } } } }, 400],
        [{ argumentRestrictions: { note: { text: {} } } }, 400],
        [{ argumentRestrictions: { shout: { text: { const: 'x' } } } }, 400],
        [{ allowedActions: ['shout'] }, 400],
        [{ allowedActions: [], credentials: {} }, 400],
        [{ enablePrompt: true }, 400],
        [{ id: 'other' }, 400],
        [{ deploymentId: 'other' }, 400],
        [{ volume: 3 }, 400],
      ] as const) {
        const reply = await put(api, 'desk', { ...fits, ...wrong }, 1)
        expect([wrong, reply.status]).toEqual([wrong, status])
      }
      expect((await api.get(AGENT)).body.items[0].revision).toBe(1)
    })

    test('kernel2#4 skill-actions shows what enabled bindings offer, by name and filters', async () => {
      const api = await withAgent(open().api())
      await put(api, 'desk', {})
      await put(api, 'reading', { allowedActions: ['look'], credentials: {} })
      const actions = async (query = ''): Promise<{ name: string; bindingId: string }[]> =>
        (await api.get(`/agent-deployments/ana/skill-actions${query}`)).body.actions
      const all = await actions()
      expect(all.map(({ name }) => name)).toEqual([...ALLOWED, 'look'].sort().map((name) => `desk.${name}`))
      expect(all.filter(({ name }) => name === 'desk.look').map(({ bindingId }) => bindingId)).toEqual([
        'desk',
        'reading',
      ])
      expect(all[0]).toMatchObject({
        deploymentId: 'ana',
        skillId: 'desk',
        version: '1.0.0',
        action: 'book',
        bindingRevision: 1,
        semanticArguments: { operation: 'order' },
        risk: 'external',
        sideEffect: 'external',
      })
      expect((await actions('?semanticRole=operation')).map(({ name }) => name)).toEqual(['desk.book'])
      expect((await actions('?sideEffect=write')).map(({ name }) => name)).toEqual(['desk.note', 'desk.rush'])
      expect((await api.get('/agent-deployments/ana/skill-actions?semanticRole=Bad!')).status).toBe(400)
      expect((await api.get('/agent-deployments/none/skill-actions')).status).toBe(404)
      await disable(api, 'desk', 1)
      expect((await actions()).map(({ bindingId }) => bindingId)).toEqual(['reading'])
      expect((await api.get(AGENT)).body.items.map(({ id }: { id: string }) => id)).toEqual(['desk', 'reading'])
    })

    test('what a disabled binding allowed is not done', async () => {
      const stage = await openStage(open())
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'look' })
      await disable(stage.api, 'desk', 1)
      await stage.work()
      expect(await stage.call(run.id)).toMatchObject({ status: 'failed', error: 'the skill binding is disabled' })
      await stage.propose(run.id, { action: 'note' })
      expect((await stage.call(run.id)).error).toBe('the skill binding is disabled')
    })

    test('bindings of a team: only its members use them, as far as their role is granted', async () => {
      const stage = await openStage(open())
      const { api } = stage
      const grant = { skillId: 'desk', skillVersion: '1.0.0', allowedActions: ['look', 'note'], maximumRisk: 'read' }
      const roles = [{ id: 'hand', displayName: 'Hand', purpose: 'Helps', skillGrants: [grant] }]
      const defined = await api.post('/team-definitions', teamOf({ roles, approvals: { maximumRisk: 'external' } }))
      expect([defined.status, defined.body.error]).toEqual([201, undefined])
      const roster = [{ id: 'm1', roleId: 'hand', agentDeploymentId: 'ana' }]
      const deployment = { id: 'ana', definitionId: 'crew', activeVersion: '1.0.0', roster, status: 'active' }
      const deployed = await api.post('/team-deployments', { ...BY_USER, deployment })
      expect([deployed.status, deployed.body.error]).toEqual([201, undefined])
      const base = '/team-deployments/ana/skill-bindings'
      const tooRisky = await put(api, 'crew-desk', { maximumRisk: 'destructive' }, 0, base)
      expect(tooRisky.status).toBe(400)
      expect((await put(api, 'crew-desk', { maximumRisk: 'external' }, 0, base)).status).toBe(201)
      expect((await put(api, 'crew-desk', {}, 1)).status).toBe(404)
      expect((await api.get(base)).body.items.map(({ id }: { id: string }) => id)).toEqual(['crew-desk'])
      expect((await api.get(AGENT)).body.items.map(({ id }: { id: string }) => id)).toEqual(['desk'])
      const run = await stage.begin({ owner: { type: 'team', id: 'ana' }, assignedAgentId: 'ana' })
      const tried = async (bindingId: string, action: string): Promise<unknown> => {
        const told = await stage.propose(run.id, { bindingId, action, arguments: { text: `${bindingId} ${action}` } })
        if (told.status === 'waiting_for_dependency') await stage.work()
        return (await stage.run(run.id)).pendingResults[0]?.['error']
      }
      expect(await tried('crew-desk', 'look')).toBeUndefined()
      expect(await tried('crew-desk', 'note')).toBe('risk write is above the read of the role grant')
      expect(await tried('crew-desk', 'send')).toBe('role hand of team ana does not grant send of skill desk')
      const alone = await stage.begin()
      const told = await stage.propose(alone.id, { bindingId: 'crew-desk', action: 'look' })
      expect(told.pendingResults[0]?.['error']).toBe('there is no skill binding crew-desk')
    })
  },
  servedParts(desk),
)
