import { expect, test } from 'vitest'
import { canonicalJson } from '../../src/base/canonical-json.ts'
import { sha256 } from '../../src/base/hash.ts'
import type { Authorization } from '../../src/kernel/ports.ts'
import { describeKernels, openKernel, type Reply, type ScopedApi } from './api.ts'
import { faultyStore } from './faulty-store.ts'
import { BY_AGENT, BY_USER, install, refusal } from './registry-support.ts'

const APPROVER = { actorType: 'user', actorId: 'pia' }
const POLICY = {
  allowedFields: ['purpose', 'authority', 'skillRequirements', 'personality'],
  approverPrincipals: ['user:pia', 'agent:ana'],
  agentMayPropose: true,
}
const CRITERIA = [
  { id: 'right', description: 'Counts right', required: true },
  { id: 'fast', description: 'Counts fast' },
]
const PATH = '/agent-deployments/ana/amendments'

interface Proposal {
  candidate?: object
  by?: [string, string]
  more?: object
}

/** What runs, as version 2.0.0 with another purpose, or with what is said. */
async function propose(
  api: ScopedApi,
  { candidate = {}, by = ['user', 'una'], more = {} }: Proposal = {},
  key?: string,
): Promise<Reply> {
  const { scope: _, digest: _d, createdAt: _c, ...manifest } = (await api.get('/agent-deployments/ana')).body.definition
  const [proposerType, proposerId] = by
  const next = { ...manifest, version: '2.0.0', purpose: 'Counts more', ...candidate }
  return api.post(PATH, { candidate: next, proposerType, proposerId, rationale: 'It can be better', ...more }, key)
}

/** Installs an agent with this policy of amendments, and whatever else. */
const prepare = (api: ScopedApi, amendments: object = {}, manifest: object = {}): Promise<Reply> =>
  install(api, { manifest: { amendments: { ...POLICY, ...amendments }, ...manifest } })

const digest = (value: unknown): string => sha256(canonicalJson(value))

describeKernels('amendments', (open) => {
  test('kernel#84 proposed, evaluated, approved, activated', async () => {
    const api = open().api()
    const { definition } = (await prepare(api, { requiresApproval: true }, { evaluations: CRITERIA })).body
    const proposed = await propose(api, { candidate: { personality: 'calm' } })
    expect(proposed.status).toBe(201)
    const { id } = proposed.body
    expect(proposed.body).toMatchObject({
      deploymentId: 'ana',
      definitionId: definition.id,
      baseVersion: '1.0.0',
      baseDigest: definition.digest,
      candidate: { id: definition.id, version: '2.0.0' },
      riskWidening: false,
      status: 'evaluating',
      revision: 1,
      evaluations: [],
    })
    expect(proposed.body.changes).toEqual([
      { field: 'purpose', beforeDigest: digest('Counts stars'), afterDigest: digest('Counts more') },
      { field: 'personality', beforeDigest: digest(null), afterDigest: digest('calm') },
    ])
    const evaluations = [{ criterionId: 'right', passed: true, score: 1, summary: 'All right', evidenceRefs: ['e1'] }]
    const evaluated = await api.post(`${PATH}/${id}/evaluations`, { expectedRevision: 1, evaluations })
    expect([evaluated.status, evaluated.body]).toMatchObject([200, { status: 'awaiting_approval', evaluations }])
    const decided = await api.post(`${PATH}/${id}/decisions`, {
      ...APPROVER,
      expectedRevision: 2,
      approved: true,
      reason: 'good',
    })
    expect(decided.body).toMatchObject({
      status: 'approved',
      decision: { approved: true, ...APPROVER, reason: 'good', decidedAt: open().at() },
    })
    const activated = await api.post(`${PATH}/${id}/activations`, { ...BY_USER, expectedRevision: 3 }, 'k')
    expect([activated.status, activated.body]).toMatchObject([
      200,
      {
        amendment: { status: 'activated', activationId: activated.body.activation.id, revision: 4 },
        deployment: { activeVersion: '2.0.0', previousVersion: '1.0.0', revision: 2 },
        activation: { changeKind: 'amended', fromVersion: '1.0.0', toVersion: '2.0.0', ...BY_USER },
      },
    ])
    const read = (await api.get('/agent-deployments/ana')).body
    expect(read.definition).toMatchObject({ version: '2.0.0', purpose: 'Counts more', personality: 'calm' })
    expect((await api.get(`${PATH}/${id}`)).body).toEqual(activated.body.amendment)
    expect((await api.get(PATH)).body).toEqual({ items: [activated.body.amendment] })
    const again = await api.post(`${PATH}/${id}/activations`, { ...BY_USER, expectedRevision: 3 }, 'k')
    expect([again.status, again.body]).toEqual([200, activated.body])
    const back = await api.post('/agent-deployments/ana/rollbacks', { ...BY_USER, expectedRevision: 2 })
    expect(back.body.deployment.activeVersion).toBe('1.0.0')
  })

  test('kernel#84 each step out of order is refused, and so is a stale one', async () => {
    const api = open().api()
    await prepare(api, { requiresApproval: true }, { evaluations: CRITERIA })
    const { id } = (await propose(api)).body
    const steps = {
      evaluations: (passed: boolean) => ({ evaluations: [{ criterionId: 'right', passed, summary: 's' }] }),
      decisions: (approved: boolean) => ({ ...APPROVER, approved }),
      activations: () => BY_USER,
    }
    const step = async (
      name: keyof typeof steps,
      expectedRevision: number,
      yes = true,
      of: string = id,
    ): Promise<number> => (await api.post(`${PATH}/${of}/${name}`, { expectedRevision, ...steps[name](yes) })).status
    expect([await step('decisions', 1), await step('activations', 1), await step('evaluations', 2)]).toEqual([
      409, 409, 409,
    ])
    expect([await step('evaluations', 1), await step('evaluations', 2), await step('activations', 2)]).toEqual([
      200, 409, 409,
    ])
    expect([await step('decisions', 1), await step('decisions', 2, false)]).toEqual([409, 200])
    for (const name of ['evaluations', 'decisions', 'activations'] as const) {
      expect([name, await step(name, 3)]).toEqual([name, 409])
    }
    const failed = (await propose(api, { candidate: { version: '3.0.0' } })).body.id
    expect(await step('evaluations', 1, false, failed)).toBe(200)
    expect((await api.get(`${PATH}/${failed}`)).body.status).toBe('evaluation_failed')
    expect([await step('decisions', 2, true, failed), await step('activations', 2, true, failed)]).toEqual([409, 409])
    expect((await api.get('/agent-deployments/ana')).body.deployment.revision).toBe(1)
  })

  test('kernel#84 evaluations name criteria of the base, each once, and every required one', async () => {
    const api = open().api()
    await prepare(api, {}, { evaluations: CRITERIA })
    const { id } = (await propose(api)).body
    const result = (criterionId: string, passed = true): object => ({ criterionId, passed, summary: 's' })
    const evaluate = (...evaluations: object[]): Promise<Reply> =>
      api.post(`${PATH}/${id}/evaluations`, { expectedRevision: 1, evaluations })
    for (const evaluations of [
      [result('right'), result('right')],
      [result('right'), result('other')],
      [result('fast')],
      [],
    ]) {
      expect([evaluations, (await evaluate(...evaluations)).status]).toEqual([evaluations, 400])
    }
    expect((await evaluate(result('right'), result('fast', false))).body.status).toBe('ready')
  })

  test('kernel#84 an unlisted approver, an agent on its own proposal, and fields outside the list are refused', async () => {
    const api = open().api()
    await prepare(api, { requiresApproval: true })
    const byUser = (await propose(api)).body.id
    const byAna = (await propose(api, { candidate: { version: '3.0.0' }, by: ['agent', 'ana'] })).body.id
    const decide = async (id: string, who: object): Promise<number> =>
      (await api.post(`${PATH}/${id}/decisions`, { ...who, expectedRevision: 1, approved: true })).status
    expect(await decide(byUser, BY_USER)).toBe(403)
    expect(await decide(byUser, { actorType: 'agent', actorId: 'pia' })).toBe(403)
    expect(await decide(byAna, BY_AGENT)).toBe(403)
    expect(await decide(byUser, BY_AGENT)).toBe(200)
    expect(await decide(byAna, APPROVER)).toBe(200)
    expect(refusal(await propose(api, { candidate: { version: '4.0.0', systemPrompt: 'Do all.' } }))).toEqual([
      403,
      'amendments may not change systemPrompt',
    ])
    const self = { ...POLICY, allowedFields: ['systemPrompt'] }
    expect((await propose(api, { candidate: { version: '4.0.0', amendments: self } })).status).toBe(403)
    expect((await propose(api, { more: { allowedFields: ['systemPrompt'] } })).status).toBe(400)
  })

  test('kernel#84 agents propose only where they may', async () => {
    const api = open().api()
    await prepare(api, { agentMayPropose: false })
    expect((await propose(api, { by: ['agent', 'ana'] })).status).toBe(403)
    expect((await propose(api)).body.status).toBe('ready')
  })

  test('kernel#84 a base that runs no more cannot be amended', async () => {
    const api = open().api()
    await prepare(api)
    const [first, second] = [
      (await propose(api)).body.id,
      (await propose(api, { candidate: { version: '3.0.0' } })).body.id,
    ]
    const activate = async (id: string): Promise<[number, string]> =>
      refusal(await api.post(`${PATH}/${id}/activations`, { ...BY_USER, expectedRevision: 1 }))
    expect((await activate(first))[0]).toBe(200)
    expect(await activate(second)).toEqual([409, 'the amendment changes version 1.0.0, and 2.0.0 runs by now'])
    await api.post('/agent-deployments/ana/rollbacks', { ...BY_USER, expectedRevision: 2 })
    await install(api, { manifest: { version: '3.0.0' } })
    await api.post('/agent-deployments/ana/rollbacks', { ...BY_USER, expectedRevision: 4 })
    expect((await activate(second))[0]).toBe(409)
    expect((await api.get('/agent-deployments/ana')).body.deployment.revision).toBe(5)
  })

  test('kernel#84 a candidate is a new version of the same agent, and changes something', async () => {
    const api = open().api()
    await prepare(api)
    const status = async (candidate: object, more: object = {}): Promise<number> =>
      (await propose(api, { candidate, more })).status
    expect(await status({ id: 'bo' })).toBe(400)
    expect(await status({ version: '1.0.0' })).toBe(409)
    expect(await status({ purpose: 'Counts stars' })).toBe(400)
    expect(await status({ authority: { maximumRisk: 'read', allowedSkillIds: ['shell'] } })).toBe(400)
    expect(await status({}, { expectedDeploymentRevision: 2 })).toBe(409)
    expect(await status({ id: `${api.scope.kind}/${api.scope.id}/ana` }, { expectedDeploymentRevision: 1 })).toBe(201)
  })

  test('kernel#85 more risk, runs or skills wait for approval, whatever the policy says', async () => {
    const api = open().api()
    await prepare(api)
    const authority = { maximumRisk: 'write', maxConcurrentRuns: 2, allowedSkillIds: ['mail'] }
    const skills = [{ skillId: 'mail' }, { skillId: 'web', optional: true }]
    const outcomes = [
      { authority: { ...authority, maximumRisk: 'external' } },
      { authority: { ...authority, maxConcurrentRuns: 3 } },
      { authority: { ...authority, allowedSkillIds: ['mail', 'web'], maxConcurrentRuns: 1 } },
      { authority: { ...authority, allowedSkillIds: [] } },
      { authority: { ...authority, maximumRisk: 'read', maxConcurrentRuns: 1 } },
      { skillRequirements: [...skills, { skillId: 'shell' }] },
      { skillRequirements: skills.slice(0, 1) },
    ].map(async (candidate, i) => {
      const { riskWidening, status } = (await propose(api, { candidate: { ...candidate, version: `2.${i}` } })).body
      return [riskWidening, status]
    })
    const [wide, narrow] = [
      [true, 'awaiting_approval'],
      [false, 'ready'],
    ]
    expect(await Promise.all(outcomes)).toEqual([wide, wide, wide, wide, narrow, wide, narrow])
  })

  test('kernel#85 asking later for approval is more risk; without approvers nothing widens', async () => {
    const [asking, alone] = [open().api(), open().api()]
    const authority = { maximumRisk: 'write', maxConcurrentRuns: 2, allowedSkillIds: ['mail'] }
    await prepare(asking, {}, { authority: { ...authority, requireApprovalAt: 'write' } })
    const stateOf = async (version: string, fields: object): Promise<string> =>
      (await propose(asking, { candidate: { version, authority: { ...authority, ...fields } } })).body.status
    expect(await stateOf('2.0', {})).toBe('awaiting_approval')
    expect(await stateOf('2.1', { requireApprovalAt: 'external' })).toBe('awaiting_approval')
    expect(await stateOf('2.2', { requireApprovalAt: 'read' })).toBe('ready')
    await prepare(alone, { approverPrincipals: [] })
    const wide = { authority: { ...authority, maximumRisk: 'external' } }
    expect((await propose(alone, { candidate: wide })).status).toBe(403)
    expect((await propose(alone)).status).toBe(201)
  })

  test('an activation (T13) that fails on the way leaves definition, deployment and amendment as they were', async () => {
    const api = open().api()
    await prepare(api)
    const { id } = (await propose(api)).body
    for (const table of ['kernel_definitions', 'kernel_activations', 'kernel_keys']) {
      const store = faultyStore(open().store, (sql) => sql.includes(`INSERT INTO ${table}`))
      const broken = await openKernel({ ...open(), store })
      const step = { ...BY_USER, expectedRevision: 1 }
      const reply = await broken.api(api.scope).post(`${PATH}/${id}/activations`, step, 'k')
      await broken.stop()
      expect([table, refusal(reply)]).toEqual([table, [500, 'internal error']])
      expect((await api.get(`${PATH}/${id}`)).body).toMatchObject({ status: 'ready', revision: 1 })
      expect((await api.get('/agent-deployments/ana')).body.deployment).toMatchObject({
        activeVersion: '1.0.0',
        revision: 1,
      })
      const activate = { ...BY_USER, version: '2.0.0', expectedRevision: 1 }
      expect((await api.post('/agent-deployments/ana/activations', activate)).status).toBe(404)
    }
    expect((await api.post(`${PATH}/${id}/activations`, { ...BY_USER, expectedRevision: 1 }, 'k')).status).toBe(200)
  })

  test('kernel#5 an amendment is found under its own deployment alone', async () => {
    const [api, other] = [open().api(), open().api()]
    await prepare(api)
    await install(api, { deployment: { id: 'bo' } })
    await install(other)
    const { id } = (await propose(api, {}, 'k')).body
    expect((await propose(api, {}, 'k')).body.id).toBe(id)
    for (const reply of [
      await api.get(`/agent-deployments/bo/amendments/${id}`),
      await api.get(`/team-deployments/ana/amendments/${id}`),
      await other.get(`${PATH}/${id}`),
      await other.post(`${PATH}/${id}/evaluations`, { expectedRevision: 1, evaluations: [] }),
      await other.post(`${PATH}/${id}/decisions`, { ...APPROVER, expectedRevision: 1, approved: true }),
      await other.post(`${PATH}/${id}/activations`, { ...BY_USER, expectedRevision: 1 }),
    ]) {
      expect(refusal(reply)).toEqual([404, `amendment ${id} was not found`])
    }
  })
})

const asked: Authorization[] = []
const authorizer = {
  authorize: (authorization: Authorization): 'allow' | 'deny' => {
    asked.push(authorization)
    return authorization.decision === 'approve' ? 'deny' : 'allow'
  },
}

describeKernels(
  'amendments under an authorizer',
  (open) => {
    test('kernel#84 the authorizer is asked too, after the definition', async () => {
      const api = open().api()
      await prepare(api, { requiresApproval: true })
      const { id } = (await propose(api)).body
      const decide = async (who: object, approved: boolean): Promise<number> =>
        (await api.post(`${PATH}/${id}/decisions`, { ...who, expectedRevision: 1, approved })).status
      asked.length = 0
      expect(await decide(BY_USER, false)).toBe(403)
      expect(asked).toEqual([])
      expect(await decide(APPROVER, true)).toBe(403)
      expect(asked).toMatchObject([
        {
          subject: { kind: 'amendment', amendment: { id } },
          decision: 'approve',
          principal: { type: 'user', id: 'pia' },
        },
      ])
      expect((await api.get(`${PATH}/${id}`)).body.revision).toBe(1)
      expect(await decide(APPROVER, false)).toBe(200)
    })
  },
  { approvalAuthorizer: authorizer },
)

for (const [what, authorize] of [
  [
    'throws',
    (): never => {
      throw new Error('broken')
    },
  ],
  ['says neither', () => undefined as unknown as 'deny'],
] as const) {
  describeKernels(
    `amendments under an authorizer that ${what}`,
    (open) => {
      test('kernel#84 it refuses', async () => {
        const api = open().api()
        await prepare(api, { requiresApproval: true })
        const { id } = (await propose(api)).body
        const decided = await api.post(`${PATH}/${id}/decisions`, { ...APPROVER, expectedRevision: 1, approved: true })
        expect(refusal(decided)).toEqual([403, `user:pia may not decide amendment ${id}`])
        expect((await api.get(`${PATH}/${id}`)).body.status).toBe('awaiting_approval')
      })
    },
    { approvalAuthorizer: { authorize } },
  )
}

describeKernels(
  'amendments under a host that knows who asks',
  (open) => {
    test('what the host knows stands in place of what is claimed', async () => {
      const api = open().api()
      await prepare(api, { requiresApproval: true })
      const { id, proposerId } = (await propose(api)).body
      expect(proposerId).toBe('hanna')
      const claimed = { ...APPROVER, expectedRevision: 1, approved: true }
      expect((await api.post(`${PATH}/${id}/decisions`, claimed)).status).toBe(403)
      expect((await api.get('/agent-deployments/ana/activations')).body).toMatchObject([
        { actorType: 'user', actorId: 'hanna' },
      ])
    })
  },
  { hostIdentity: () => ({ type: 'user', id: 'hanna' }) },
)
