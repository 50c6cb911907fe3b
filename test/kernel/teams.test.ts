import { expect, test } from 'vitest'
import { describeKernels, type Reply, type ScopedApi } from './api.ts'
import { BY_AGENT, BY_USER, install, LEAD, refusal, teamDeploymentOf, teamOf } from './registry-support.ts'

const HAND = { id: 'm2', roleId: 'hand', agentDeploymentId: 'bo' }
interface Deployed extends Record<string, unknown> {
  revision: number
}

const AMENDMENTS = '/team-deployments/crew/amendments'

const register = (api: ScopedApi, fields: object = {}): Promise<Reply> => api.post('/team-definitions', teamOf(fields))
const deploy = (api: ScopedApi, fields: object = {}, more: object = {}, key?: string): Promise<Reply> =>
  api.post('/team-deployments', { ...BY_USER, deployment: teamDeploymentOf(fields), ...more }, key)

/** Two agents and a registered team. */
async function prepare(api: ScopedApi, fields: object = {}): Promise<void> {
  for (const id of ['ana', 'bo']) await install(api, { manifest: { id }, deployment: { id } })
  expect((await register(api, fields)).status).toBe(201)
}

async function prepareDeployed(api: ScopedApi, fields: object = {}): Promise<Deployed> {
  await prepare(api, fields)
  const { status, body } = await deploy(api)
  expect(status).toBe(201)
  return body.deployment
}

const put = (api: ScopedApi, deployment: Deployed, more: object = {}): Promise<Reply> =>
  api.put('/team-deployments/crew', {
    ...BY_USER,
    deployment,
    expectedRevision: deployment.revision,
    reason: 'r',
    ...more,
  })

describeKernels('teams', (open) => {
  test('a version is registered once; the same content is there already, other content is refused', async () => {
    const api = open().api()
    const first = await register(api)
    expect([first.status, first.body]).toMatchObject([201, { id: 'crew', version: '1.0.0', scope: api.scope }])
    expect(await register(api)).toMatchObject({ status: 200, body: first.body })
    expect((await register(api, { purpose: 'Row' })).status).toBe(409)
    open().advance(1)
    const second = await register(api, { version: '2.0.0' })
    expect((await api.get('/team-definitions/crew')).body).toEqual([second.body, first.body])
    expect((await api.get('/team-definitions/crew?version=1.0.0')).body).toEqual(first.body)
    expect((await api.get('/team-definitions/crew?version=9')).status).toBe(404)
    expect((await api.get('/team-definitions/gang')).status).toBe(404)
    expect((await open().call('GET', '/team-definitions/crew')).status).toBe(400)
    expect((await open().call('POST', '/team-definitions', teamOf())).status).toBe(400)
  })

  test('a definition with slashes in its id is found', async () => {
    const api = open().api()
    await register(api, { id: 'sea/crew' })
    expect((await api.get('/team-definitions/sea%2Fcrew?version=1.0.0')).body.id).toBe('sea/crew')
  })

  test('kernel#86 a team must not contradict itself: grants above its risk, roles twice, unknown approvers', async () => {
    const api = open().api()
    const role = { id: 'lead', displayName: 'Lead', purpose: 'Leads' }
    const grant = { skillId: 'mail', skillVersion: '1.0.0', allowedActions: ['send'], maximumRisk: 'production' }
    for (const fields of [
      { roles: [{ ...role, skillGrants: [grant] }] },
      { roles: [role, role] },
      { roles: [{ ...role, minimumMembers: 2, maximumMembers: 1 }] },
      { approvals: { maximumRisk: 'external', approverRoleIds: ['cook'] } },
      { roles: [] },
    ]) {
      expect([fields, (await register(api, fields)).status]).toEqual([fields, 400])
    }
  })

  test('kernel#86 a deployment comes with its definition and the record of its first step', async () => {
    const api = open().api()
    await prepare(api)
    const { status, body } = await deploy(api, {}, { reason: 'go' }, 'k')
    expect(status).toBe(201)
    expect(body).toMatchObject({
      deployment: { id: 'crew', status: 'draft', roster: [LEAD], restrictions: {}, revision: 1, scope: api.scope },
      activation: { toVersion: '1.0.0', changeKind: 'activated', reason: 'go', deploymentRevision: 1, ...BY_USER },
    })
    const again = await deploy(api, {}, { reason: 'go' }, 'k')
    expect([again.status, again.body]).toEqual([200, body])
    const one = (await api.get('/team-deployments/crew')).body
    expect(one).toMatchObject({ deployment: body.deployment, definition: { id: 'crew', version: '1.0.0' } })
    expect((await api.get('/team-deployments')).body).toEqual({ items: [one] })
    expect((await api.get('/team-deployments?excludeStatuses=draft')).body).toEqual({ items: [] })
    expect((await api.get('/team-deployments/crew/activations')).body).toEqual([body.activation])
    expect((await deploy(api)).status).toBe(409)
    expect((await deploy(api, { id: 'gang' }, BY_AGENT)).status).toBe(403)
    expect((await deploy(api, { id: 'gang', activeVersion: '9' })).status).toBe(404)
    expect((await deploy(api, { id: 'gang', activeVersion: '9' }, BY_AGENT)).status).toBe(404)
    expect((await api.post('/team-deployments/crew/rollbacks', { ...BY_USER, expectedRevision: 1 })).status).toBe(404)
    expect((await open().call('GET', '/team-deployments/crew')).status).toBe(400)
  })

  test('kernel#86 the roster fills the roles with different agents that are there', async () => {
    const api = open().api()
    await prepare(api)
    for (const [status, ...roster] of [
      [400],
      [400, LEAD, { ...LEAD, id: 'm2', agentDeploymentId: 'bo' }],
      [400, LEAD, { ...HAND, agentDeploymentId: 'ana' }],
      [400, LEAD, { ...HAND, id: 'm1' }],
      [400, LEAD, { ...HAND, roleId: 'cook' }],
      [404, LEAD, { ...HAND, agentDeploymentId: 'cy' }],
      [201, LEAD, HAND],
    ]) {
      expect([roster, (await deploy(api, { roster })).status]).toEqual([roster, status])
    }
  })

  test('kernel#86 a member has the definition and the skills that its role requires', async () => {
    const api = open().api()
    const role = { id: 'lead', displayName: 'Lead', purpose: 'Leads' }
    await prepare(api)
    await register(api, { version: '2', roles: [{ ...role, requiredDefinitionIds: ['bo'] }] })
    await register(api, { version: '3', roles: [{ ...role, requiredSkillIds: ['shell'] }] })
    await register(api, {
      version: '4',
      roles: [{ ...role, requiredDefinitionIds: ['ana'], requiredSkillIds: ['web'] }],
    })
    const statusOf = async (activeVersion: string): Promise<number> => (await deploy(api, { activeVersion })).status
    expect([await statusOf('2'), await statusOf('3'), await statusOf('4')]).toEqual([400, 400, 201])
  })

  test('kernel#86 restrictions only narrow the team', async () => {
    const api = open().api()
    await prepare(api)
    for (const restrictions of [{ maximumRisk: 'production' }, { maximumConcurrency: 4 }]) {
      expect([restrictions, (await deploy(api, { restrictions })).status]).toEqual([restrictions, 400])
    }
    const restrictions = { maximumRisk: 'read', maximumConcurrency: 1, allowedSkillIds: ['mail'] }
    expect((await deploy(api, { restrictions })).body.deployment.restrictions).toEqual(restrictions)
  })

  test('kernel#86 a PUT changes version, roster and status at once', async () => {
    const api = open().api()
    const deployment = await prepareDeployed(api)
    const roles = [{ id: 'cook', displayName: 'Cook', purpose: 'Cooks', minimumMembers: 1 }]
    await register(api, { version: '2.0.0', roles })
    expect((await put(api, { ...deployment, activeVersion: '2.0.0' })).status).toBe(400)
    expect((await put(api, { ...deployment, activeVersion: '9.0.0' })).status).toBe(404)
    expect((await put(api, { ...deployment, definitionId: 'gang' })).status).toBe(400)
    expect((await put(api, deployment)).status).toBe(400)
    const next = { activeVersion: '2.0.0', roster: [{ ...HAND, roleId: 'cook' }], status: 'active' }
    expect((await put(api, { ...deployment, ...next }, BY_AGENT)).status).toBe(403)
    const { status, body } = await put(api, { ...deployment, ...next })
    expect([status, body]).toMatchObject([
      200,
      {
        deployment: { ...next, previousVersion: '1.0.0', revision: 2 },
        audit: { changeKind: 'activated', fromVersion: '1.0.0', toVersion: '2.0.0' },
      },
    ])
    const paused = await put(api, { ...body.deployment, status: 'paused' })
    expect(paused.body.audit).toMatchObject({ changeKind: 'configuration-updated', fromVersion: '2.0.0' })
    expect((await put(api, { ...paused.body.deployment, status: 'draft' })).status).toBe(409)
    const archived = await put(api, { ...paused.body.deployment, status: 'archived' })
    expect(archived.status).toBe(200)
    expect(refusal(await put(api, { ...archived.body.deployment, status: 'active' }))).toEqual([
      409,
      'team deployment crew is archived',
    ])
    const activation = { ...BY_USER, version: '1.0.0', expectedRevision: 4 }
    expect((await api.post('/team-deployments/crew/activations', activation)).status).toBe(409)
  })

  test('kernel#86 a version is activated only with a roster that fits it', async () => {
    const api = open().api()
    await prepareDeployed(api)
    const activate = (version: string, expectedRevision: number): Promise<Reply> =>
      api.post('/team-deployments/crew/activations', { ...BY_USER, version, expectedRevision })
    await register(api, { version: '2.0.0', purpose: 'Row' })
    await register(api, { version: '3.0.0', roles: [{ id: 'cook', displayName: 'Cook', purpose: 'Cooks' }] })
    expect((await activate('3.0.0', 1)).status).toBe(400)
    expect((await activate('2.0.0', 1)).body.deployment).toMatchObject({ activeVersion: '2.0.0', revision: 2 })
    expect((await activate('2.0.0', 2)).status).toBe(409)
  })

  test('kernel#85 of a team, delegation, grants and shared writing widen too', async () => {
    const api = open().api()
    const allowedFields = ['delegation', 'roles', 'sharedContext', 'approvals', 'purpose']
    const amendments = { allowedFields, approverPrincipals: ['user:pia'] }
    await prepareDeployed(api, { amendments })
    const { roles, delegation } = teamOf() as unknown as { roles: { skillGrants: object[] }[]; delegation: object }
    const [lead, hand] = roles
    const grant = hand?.skillGrants[0]
    const wideningOf = async (fields: object, version: string): Promise<[boolean, string]> => {
      const { body } = await api.post(AMENDMENTS, {
        candidate: teamOf({ amendments, version, ...fields }),
        proposerType: 'user',
        proposerId: 'una',
        rationale: 'r',
      })
      return [body.riskWidening, body.status]
    }
    const wide = [true, 'awaiting_approval']
    const narrow = [false, 'ready']
    for (const [i, [expected, fields]] of [
      [wide, { delegation: { ...delegation, maximumDepth: 3 } }],
      [wide, { delegation: { ...delegation, maximumConcurrent: 4 } }],
      [wide, { sharedContext: { allowMemberWrite: true } }],
      [wide, { approvals: { maximumRisk: 'production' } }],
      [wide, { roles: [lead, { ...hand, skillGrants: [grant, { ...grant, skillId: 'shell' }] }] }],
      [wide, { roles: [lead, { ...hand, skillGrants: [{ ...grant, maximumRisk: 'external' }] }] }],
      [wide, { roles: [lead, { ...hand, skillGrants: [{ ...grant, allowedActions: ['send', 'read'] }] }] }],
      [wide, { roles: [{ ...lead, skillGrants: [grant] }, hand] }],
      [narrow, { roles: [lead, { ...hand, skillGrants: [] }], delegation: { ...delegation, maximumDepth: 1 } }],
      [narrow, { purpose: 'Row' }],
    ].entries()) {
      expect([fields, await wideningOf(fields as object, `2.${i}`)]).toEqual([fields, expected])
    }
  })

  test('kernel#84 a team is amended as an agent is', async () => {
    const api = open().api()
    await prepareDeployed(api, { amendments: { allowedFields: ['purpose'] } })
    const candidate = teamOf({ amendments: { allowedFields: ['purpose'] }, version: '2.0.0', purpose: 'Row' })
    const proposer = { proposerType: 'user', proposerId: 'una', rationale: 'r' }
    const { id, status } = (await api.post(AMENDMENTS, { ...proposer, candidate })).body
    expect(status).toBe('ready')
    const activated = await api.post(`${AMENDMENTS}/${id}/activations`, { ...BY_USER, expectedRevision: 1 })
    expect(activated.body).toMatchObject({
      amendment: { status: 'activated' },
      deployment: { activeVersion: '2.0.0' },
      activation: { changeKind: 'amended' },
    })
    expect((await api.get('/team-definitions/crew?version=2.0.0')).body.purpose).toBe('Row')
    expect((await api.get(AMENDMENTS)).body.items).toHaveLength(1)
  })

  test('kernel#5 teams of another scope are not found', async () => {
    const [api, other] = [open().api(), open().api()]
    const deployment = await prepareDeployed(api)
    for (const reply of [
      await other.get('/team-deployments/crew'),
      await other.get('/team-deployments/crew/activations'),
      await other.get(AMENDMENTS),
      await other.get('/team-definitions/crew'),
      await other.get('/team-definitions/crew?version=1.0.0'),
      await other.post('/team-deployments/crew/activations', { ...BY_USER, version: '1.0.0', expectedRevision: 1 }),
      await deploy(other),
    ]) {
      expect(reply.status).toBe(404)
    }
    const { scope: _, ...bare } = deployment
    expect((await put(other, bare)).status).toBe(404)
    expect((await put(other, deployment)).status).toBe(400)
  })
})
