import { expect, test } from 'vitest'
import { COMPONENTS } from '../../src/kernel/capability-table.ts'
import { insertApproval } from '../../src/kernel/store/approvals.ts'
import { calls } from '../../src/kernel/store/calls.ts'
import { insertRecord } from '../../src/kernel/store/records.ts'
import { turns } from '../../src/kernel/store/turns.ts'
import { describeKernels, openKernel, type OpenKernel, type ScopedApi } from './api.ts'
import { faultyStore } from './faulty-store.ts'
import { BY_USER, deploymentOf, install, manifestOf, teamOf } from './registry-support.ts'
import { approvalOf, callOf, turnOf } from './support.ts'

const OWNER = { type: 'agent', id: 'ana' }

/** One record of each family, by the paths that read them. */
async function seed(open: OpenKernel, api: ScopedApi): Promise<string[]> {
  const { scope } = api
  const { database } = open.store
  const made = async (
    path: string,
    body: object,
  ): Promise<{ id: string; run: { id: string }; request: { id: string } }> => {
    const reply = await api.post(path, body, path)
    expect([path, reply.status, reply.body.error]).toEqual([path, 201, undefined])
    return reply.body
  }
  const objective = await made('/objectives', { title: 'Stars', goal: 'Count', owner: OWNER })
  const project = await made('/projects', {
    title: 'Sky',
    purpose: 'Know it',
    owner: OWNER,
    objectiveRefs: [objective.id],
  })
  await install(api)
  const { run } = await made('/agent-runs', { goal: 'Count', owner: OWNER })
  const asked = { kind: 'request', requester: OWNER, recipient: { type: 'user', id: 'olga' }, sourceRunId: run.id }
  const { request } = await made('/agent-requests', { ...asked, goal: 'Help' })
  const turn = turnOf(open, { scope, runId: run.id })
  await insertRecord(database, turns, turn)
  const call = await insertRecord(database, calls, callOf(open, { scope, runId: run.id }))
  const approval = await insertApproval(database, approvalOf(open, { scope, runId: run.id, actionCallId: call.id }), {
    type: 'agent',
    id: 'ana',
  })
  await made('/team-definitions', teamOf())
  return [
    `/objectives/${objective.id}`,
    `/projects/${project.id}`,
    `/agent-runs/${run.id}`,
    `/agent-runs/${run.id}/runbook-audit`,
    `/agent-requests/${request.id}`,
    `/agent-turns/${turn.id}`,
    `/action-calls/${call.id}`,
    `/action-approvals/${approval.id}`,
    '/agent-deployments/ana',
    '/team-definitions/crew?version=1.0.0',
  ]
}

const LISTS = [
  'objectives',
  'projects',
  'agent-runs',
  'agent-requests',
  'action-calls',
  'action-approvals',
  'agent-deployments',
  'team-deployments',
  'activity',
]

describeKernels(
  'records and their scopes',
  (open) => {
    test('kernel#5 a record of another scope is 404 in every family, and in none of its lists', async () => {
      const api = open().api()
      const other = open().api()
      for (const path of await seed(open(), api)) {
        expect([path, (await api.get(path)).status]).toEqual([path, 200])
        expect([path, (await other.get(path)).status]).toEqual([path, 404])
      }
      for (const list of LISTS) {
        const { status, body } = await other.get(`/${list}`)
        expect([list, status, body.items ?? body]).toEqual([list, 200, []])
      }
    })

    test('kernel#4 a read of any family needs a scope', async () => {
      for (const path of [...(await seed(open(), open().api())), ...LISTS.map((list) => `/${list}`)]) {
        expect([path, (await open().call('GET', path)).status]).toEqual([path, 400])
      }
    })

    test('kernel#4 a scope inside the deployment counts, and must agree', async () => {
      const { call } = open()
      const scope = open().scope()
      const statusOf = async (inside: object, more: object, query = ''): Promise<number> => {
        const body = { ...BY_USER, manifest: manifestOf(), deployment: { ...deploymentOf(), ...inside }, ...more }
        const headers = { 'Idempotency-Key': 'one' }
        return (await call('POST', `/agent-installations${query}`, body, { headers })).status
      }
      expect(await statusOf({}, {})).toBe(400)
      expect(await statusOf({ scope: { kind: 'test', id: 'other' } }, { scope })).toBe(400)
      expect(await statusOf({ scope }, {}, '?scopeKind=test&scopeId=other')).toBe(400)
      expect(await statusOf({ scope }, {})).toBe(201)
    })

    test('kernel#10 a store that throws is 500 in every family, on reads and on writes, never 400', async () => {
      const api = open().api()
      const paths = await seed(open(), api)
      const reading = await openKernel({
        ...open(),
        store: faultyStore(open().store, (sql) => sql.includes('kernel_')),
      })
      for (const path of [...paths, ...LISTS.map((list) => `/${list}`)]) {
        const { status, body } = await reading.api(api.scope).get(path)
        expect([path, status, body]).toEqual([path, 500, { error: 'internal error' }])
      }
      await reading.stop()
      const isWrite = (sql: string): boolean => /^\s*(?:INSERT|UPDATE)/.test(sql)
      const writing = await openKernel({ ...open(), store: faultyStore(open().store, isWrite) })
      const [objective = '', , run = ''] = paths
      const writes: ['post' | 'put', string, object][] = [
        ['put', objective, { title: 'Suns', goal: 'Count', expectedRevision: 1 }],
        ['post', `${run}/commands`, { kind: 'intervene', instruction: 'Hurry', expectedRevision: 2 }],
        ['post', '/team-definitions', teamOf({ version: '2.0.0' })],
        [
          'post',
          '/agent-installations',
          { ...BY_USER, manifest: manifestOf({ version: '2.0.0' }), deployment: deploymentOf() },
        ],
      ]
      for (const [method, path, body] of writes) {
        const reply = await writing.api(api.scope)[method](path, body, 'faulty')
        expect([path, reply.status, reply.body]).toEqual([path, 500, { error: 'internal error' }])
      }
      await writing.stop()
    })

    test('kernel#13 the key of a secret at depth 4 is 400 in each field that must hold none', async () => {
      const api = open().api()
      await seed(open(), api)
      const secret = { a: [{ b: { 'API-key': 'x' } }] }
      const harmless = { a: [{ b: { maxInputTokens: 5, tokens: 3, secretary: 'Olga' } }] }
      const objective = (await api.get('/objectives')).body[0].id
      const run = { goal: 'Count', owner: OWNER }
      const project = { title: 'Sky', purpose: 'Know it', owner: OWNER, objectiveRefs: [objective] }
      const asking = (await api.post('/agent-runs', run)).body.run.id
      const request = {
        kind: 'request',
        requester: OWNER,
        recipient: { type: 'user', id: 'olga' },
        sourceRunId: asking,
      }
      const fields: [string, string, (value: object) => object][] = [
        ['/agent-runs', 'context', (context) => ({ ...run, context })],
        ['/agent-runs', 'plan', (plan) => ({ ...run, plan })],
        ['/agent-runs', 'policy', (policy) => ({ ...run, policy })],
        ['/projects', 'policy', (policy) => ({ ...project, policy })],
        ['/projects', 'checkpoint', (checkpoint) => ({ ...project, checkpoint })],
        ['/agent-requests', 'sharedContext', (sharedContext) => ({ ...request, goal: 'Help', sharedContext })],
        [
          '/agent-installations',
          'manifest.domainContext',
          (domainContext) => ({
            ...BY_USER,
            manifest: manifestOf({ id: 'bob', domainContext }),
            deployment: deploymentOf({ id: 'bob' }),
          }),
        ],
      ]
      for (const [path, field, body] of fields) {
        const key = `${path} ${field}`
        const refused = await api.post(path, body(secret), key)
        const names = expect.stringContaining(`${field}.a.0.b.API-key`)
        expect([key, refused.status, refused.body.error]).toEqual([key, 400, names])
        const passed = await api.post(path, body(harmless), key)
        expect([key, passed.status, passed.body.error]).toEqual([key, 201, undefined])
      }
      const binding = { skillId: 'mail', skillVersion: '1.0.0', maximumRisk: 'read', config: secret }
      const put = { binding, expectedRevision: 0, actor: { type: 'user', id: 'una' }, reason: 'needed' }
      const refused = await api.put('/agent-deployments/ana/skill-bindings/mail', put)
      expect([refused.status, refused.body.error]).toEqual([400, expect.stringContaining('config.a.0.b.API-key')])
    })
  },
  { components: COMPONENTS },
)
