import { expect, test } from 'vitest'
import { describeKernels, type Reply, type ScopedApi } from './api.ts'

const OWNER = { type: 'agent', id: 'ana' }
const CONTENT = { title: 'Stars', goal: 'Know how many there are' }

const create = async (api: ScopedApi, fields: object = {}): Promise<{ id: string; revision: number }> => {
  const { status, body } = await api.post('/objectives', { ...CONTENT, owner: OWNER, ...fields })
  expect([status, body]).toEqual([201, expect.objectContaining({ revision: 1 })])
  return body
}

describeKernels('objectives', (open) => {
  test('an objective has what was said of it and defaults for the rest', async () => {
    const api = open().api()
    const { status, body } = await api.post('/objectives', { ...CONTENT, owner: OWNER })
    expect(status).toBe(201)
    expect(body).toEqual({
      scope: api.scope,
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      revision: 1,
      createdAt: open().at(),
      updatedAt: open().at(),
      ...CONTENT,
      owner: OWNER,
      status: 'draft',
      priority: 0,
      budgetAllocations: {},
    })
    expect((await api.get(`/objectives/${body.id}`)).body).toEqual({ objective: body, runbooks: [], runs: [] })
    const created = (await api.get(`/activity?objectiveId=${body.id}&includeDetails=true`)).body.items
    expect(created).toMatchObject([
      { eventType: 'objective.created', agentId: 'ana', sequence: 1, payload: { status: 'draft', revision: 1 } },
    ])
  })

  test('kernel#5 an objective of another scope is not found', async () => {
    const { id } = await create(open().api())
    const other = open().api()
    expect((await other.get(`/objectives/${id}`)).status).toBe(404)
    expect((await other.put(`/objectives/${id}`, { ...CONTENT, expectedRevision: 1 })).status).toBe(404)
    expect((await other.get('/objectives')).body).toEqual([])
  })

  test('kernel#23 a PUT resets what it leaves out, keeps the status, and needs a title', async () => {
    const api = open().api()
    const { id } = await create(api, {
      status: 'active',
      priority: 3,
      budget: { maxTurns: 5 },
      constraints: 'none',
      successCriteria: ['all counted'],
      progressSummary: 'half',
      executionPolicy: { maximumConcurrentRuns: 2 },
    })
    const { status, body } = await api.put(`/objectives/${id}`, { ...CONTENT, expectedRevision: 1 })
    expect(status).toBe(200)
    expect(body).toMatchObject({ ...CONTENT, status: 'active', priority: 0, revision: 2 })
    for (const gone of ['budget', 'constraints', 'successCriteria', 'progressSummary', 'executionPolicy']) {
      expect(body).not.toHaveProperty(gone)
    }
    expect((await api.put(`/objectives/${id}`, { goal: 'x', expectedRevision: 2 })).status).toBe(400)
    expect((await api.put(`/objectives/${id}`, CONTENT)).status).toBe(400)
    expect((await api.get(`/activity?objectiveId=${id}&order=asc`)).body.items).toMatchObject([
      { eventType: 'objective.created' },
      { eventType: 'objective.updated' },
    ])
  })

  test('kernel#24 illegal moves, a PUT at the end and a stale revision are 409, another owner or no change 400', async () => {
    const api = open().api()
    const states = ['draft', 'active', 'paused', 'satisfied', 'failed', 'retired']
    const legal: Record<string, string[]> = {
      draft: ['active', 'retired'],
      active: ['paused', 'satisfied', 'failed', 'retired'],
      paused: ['active', 'failed', 'retired'],
      satisfied: [],
      failed: [],
      retired: [],
    }
    for (const from of states) {
      for (const to of states) {
        const { id } = await create(api, { status: from })
        const { status } = await api.put(`/objectives/${id}`, { ...CONTENT, status: to, expectedRevision: 1 })
        const isEnd = legal[from]?.length === 0
        const expected = legal[from]?.includes(to) ? 200 : from === to && !isEnd ? 400 : 409
        expect([from, to, status]).toEqual([from, to, expected])
      }
    }
    const { id } = await create(api)
    const path = `/objectives/${id}`
    const stale = await api.put(path, { ...CONTENT, priority: 1, expectedRevision: 3 })
    expect([stale.status, stale.body.error]).toEqual([409, 'revision conflict: expected 3, current 1'])
    const given = await api.put(path, {
      ...CONTENT,
      priority: 1,
      owner: { type: 'team', id: 'ana' },
      expectedRevision: 1,
    })
    expect(given.status).toBe(400)
    expect((await api.put(path, { ...CONTENT, owner: OWNER, expectedRevision: 1 })).status).toBe(400)
    expect((await api.put(path, { ...CONTENT, owner: OWNER, priority: 1, expectedRevision: 1 })).status).toBe(200)
    expect((await api.put('/objectives/none', { ...CONTENT, expectedRevision: 1 })).status).toBe(404)
  })

  test('a status that moves is told of with the one before', async () => {
    const api = open().api()
    const { id } = await create(api)
    await api.put(`/objectives/${id}`, { ...CONTENT, status: 'active', expectedRevision: 1 })
    await api.put(`/objectives/${id}`, { ...CONTENT, title: 'Suns', status: 'paused', expectedRevision: 2 })
    const { items } = (await api.get(`/activity?objectiveId=${id}&order=asc&includeDetails=true`)).body
    expect(items.map(({ eventType, payload }: { eventType: string; payload: object }) => [eventType, payload])).toEqual(
      [
        ['objective.created', { status: 'draft', revision: 1 }],
        ['objective.status_changed', { status: 'active', previousStatus: 'draft', revision: 2 }],
        ['objective.updated', { status: 'paused', revision: 3 }],
        ['objective.status_changed', { status: 'paused', previousStatus: 'active', revision: 3 }],
      ],
    )
  })

  test('kernel#25 the highest priority first, then the last changed; all statuses; half an owner is 400', async () => {
    const api = open().api()
    const titles = async (query = ''): Promise<string[]> =>
      (await api.get(`/objectives?${query}`)).body.map(({ title }: { title: string }) => title)
    const old = await create(api, { title: 'old' })
    open().advance(1000)
    await create(api, { title: 'high', priority: 2 })
    open().advance(1000)
    await create(api, { title: 'new', status: 'active', owner: { type: 'team', id: 'ana' } })
    expect(await titles()).toEqual(['high', 'new', 'old'])
    open().advance(1000)
    await api.put(`/objectives/${old.id}`, { ...CONTENT, title: 'old', status: 'retired', expectedRevision: 1 })
    expect(await titles()).toEqual(['high', 'old', 'new'])
    expect(await titles('status=draft')).toEqual(['high'])
    expect(await titles('status=draft,retired')).toEqual(['high', 'old'])
    expect(await titles('ownerType=team&ownerId=ana')).toEqual(['new'])
    expect(await titles('limit=1&offset=1')).toEqual(['old'])
    for (const query of ['ownerType=team', 'ownerId=ana', 'ownerType=user&ownerId=ana', 'status=gone']) {
      expect([query, (await api.get(`/objectives?${query}`)).status]).toEqual([query, 400])
    }
  })

  test('an objective bounds 100 resources at most', async () => {
    const api = open().api()
    const bounds = (n: number): object => ({
      executionPolicy: { resourceCapacities: Object.fromEntries(Array.from({ length: n }, (_, i) => [`r${i}`, 1])) },
    })
    await create(api, bounds(100))
    const refused = await api.post('/objectives', { ...CONTENT, owner: OWNER, ...bounds(101) })
    const where = 'executionPolicy.resourceCapacities'
    expect([refused.status, refused.body.error]).toEqual([400, `${where} must name 100 resources at most`])
  })

  test('kernel#29 a zero, negative or unknown member of a budget is 400', async () => {
    const api = open().api()
    const budgets = [{ maxTurns: 0 }, { maxTurns: -1 }, { maxTurns: 1.5 }, { maxWords: 1 }, { warningPermille: 1001 }]
    for (const budget of budgets) {
      const { status } = await api.post('/objectives', { ...CONTENT, owner: OWNER, budget })
      expect([budget, status]).toEqual([budget, 400])
    }
    await create(api, { budget: { maxTurns: 1, warningPermille: 0 } })
  })

  const RUN = { goal: 'Count the north', owner: OWNER }
  const put = (api: ScopedApi, id: string, fields: object, expectedRevision: number): Promise<Reply> =>
    api.put(`/objectives/${id}`, { ...CONTENT, ...fields, expectedRevision })

  test('kernel#26 a run on a draft, paused or retired objective is 409, on an active one 201, on none 404', async () => {
    const api = open().api()
    for (const status of ['draft', 'paused', 'retired', 'satisfied', 'failed']) {
      const { id } = await create(api, { status })
      const { status: code, body } = await api.post('/agent-runs', { ...RUN, objectiveId: id })
      expect([code, body.error]).toEqual([409, `objective is ${status}`])
    }
    const { id } = await create(api, { status: 'active' })
    const { status, body } = await api.post('/agent-runs', { ...RUN, objectiveId: id })
    expect([status, body.run.objectiveId]).toEqual([201, id])
    expect((await api.post('/agent-runs', { ...RUN, objectiveId: 'none' })).status).toBe(404)
    const shown = (await api.get(`/objectives/${id}`)).body
    expect(shown.runs).toEqual([body.run])
    expect((await api.get(`/activity?objectiveId=${id}`)).body.items[0]).toMatchObject({ eventType: 'run.created' })
  })

  test('kernel#27 no run is admitted while its objective is not active, nor beyond its capacities', async () => {
    const api = open().api()
    const needs = (telescopes: number): object => ({ executionPolicy: { resourceCapacities: { telescopes } } })
    const { id } = await create(api, { status: 'active', ...needs(2) })
    const { run } = (
      await api.post('/agent-runs', { ...RUN, objectiveId: id, resourceRequirements: { telescopes: 3 } })
    ).body
    const reasons = async (): Promise<string[]> =>
      (await api.get(`/agent-runs/admission?runId=${run.id}`)).body.blocks.map(
        ({ reason }: { reason: string }) => reason,
      )
    expect(await reasons()).toEqual(expect.arrayContaining(['resource_capacity']))
    expect(await reasons()).not.toContain('objective_inactive')
    await put(api, id, needs(3), 1)
    expect(await reasons()).not.toContain('resource_capacity')
    await put(api, id, { status: 'paused', ...needs(3) }, 2)
    expect(await reasons()).toContain('objective_inactive')
    await put(api, id, { status: 'active' }, 3)
    expect(await reasons()).toEqual(['no_worker'])
  })

  test('kernel#28 of a budgeted objective a run without budget is 400, one over the remainder 409', async () => {
    const api = open().api()
    const { id } = await create(api, { status: 'active', budget: { maxTurns: 5, maxActions: 4 } })
    const run = (budget?: object): Promise<Reply> =>
      api.post('/agent-runs', { ...RUN, objectiveId: id, ...(budget && { budget }) })
    expect((await run()).status).toBe(400)
    expect((await run({ maxTurns: 6 })).status).toBe(409)
    const first = await run({ maxTurns: 3, maxCostMicros: 7 })
    expect([first.status, first.body.run.budget]).toEqual([201, { maxTurns: 3, maxActions: 4, maxCostMicros: 7 }])
    const { objective } = (await api.get(`/objectives/${id}`)).body
    expect(objective.budgetAllocations).toEqual({ [first.body.run.id]: first.body.run.budget })
    expect((await run({ maxTurns: 2 })).status).toBe(409)
  })

  test('kernel#28 of two that race for the last unit one is 201 and one 409', async () => {
    const api = open().api()
    for (let round = 0; round < 5; round++) {
      const { id } = await create(api, { status: 'active', budget: { maxTurns: 1 } })
      const race = { ...RUN, objectiveId: id, budget: { maxTurns: 1 } }
      const statuses = await Promise.all([1, 2].map(async () => (await api.post('/agent-runs', race)).status))
      expect(statuses.toSorted((a, b) => a - b)).toEqual([201, 409])
      expect((await api.get(`/objectives/${id}`)).body.runs).toHaveLength(1)
    }
  })

  test('kernel#31 a budget below what runs were given, or none at all, is 409; one that covers it passes', async () => {
    const api = open().api()
    const { id } = await create(api, { status: 'active', budget: { maxTurns: 5 } })
    await api.post('/agent-runs', { ...RUN, objectiveId: id, budget: { maxTurns: 3 } })
    const { revision } = (await api.get(`/objectives/${id}`)).body.objective
    expect((await put(api, id, { budget: { maxTurns: 2 } }, revision)).status).toBe(409)
    expect((await put(api, id, {}, revision)).status).toBe(409)
    const covering = await put(api, id, { budget: { maxTurns: 3 } }, revision)
    expect([covering.status, covering.body.budget]).toEqual([200, { maxTurns: 3 }])
  })
})
