import { expect, test } from 'vitest'
import { describeKernels, type ScopedApi } from './api.ts'

const OWNER = { type: 'agent', id: 'ana' }
const CONTENT = { title: 'Sky', purpose: 'Know it', owner: OWNER }

const objective = async (api: ScopedApi, owner: object = OWNER): Promise<string> =>
  (await api.post('/objectives', { title: 'Stars', goal: 'Count them', owner })).body.id

const project = async (api: ScopedApi, fields: object = {}): Promise<{ id: string; objectiveRefs: string[] }> => {
  const sent = { ...CONTENT, objectiveRefs: [await objective(api)], ...fields }
  const { status, body } = await api.post('/projects', sent)
  expect([status, body]).toEqual([201, expect.objectContaining({ revision: 1 })])
  return body
}

describeKernels('projects', (open) => {
  test('a project has what was said of it and empty lists for the rest', async () => {
    const api = open().api()
    const objectiveId = await objective(api)
    const body = await project(api, { id: 'sky', objectiveRefs: [objectiveId] })
    expect(body).toEqual({
      scope: api.scope,
      id: 'sky',
      revision: 1,
      createdAt: open().at(),
      updatedAt: open().at(),
      title: 'Sky',
      purpose: 'Know it',
      owner: OWNER,
      status: 'draft',
      agentRefs: [],
      teamRefs: [],
      objectiveRefs: [objectiveId],
      milestones: [],
      hypotheses: [],
      sourceMonitors: [],
      deliverables: [],
      policy: {},
      checkpoint: {},
    })
    expect((await api.get('/projects/sky')).body).toEqual(body)
    const taken = await api.post('/projects', { ...CONTENT, id: 'sky', objectiveRefs: [objectiveId] })
    expect(taken.status).toBe(409)
    const { items } = (await api.get('/activity?projectId=sky&includeDetails=true')).body
    expect(items).toMatchObject([
      { eventType: 'project.created', agentId: 'ana', sequence: 1, payload: { status: 'draft', revision: 1 } },
    ])
  })

  test('kernel#32 an objective of another owner, twice, absent or none at all is refused', async () => {
    const api = open().api()
    const own = await objective(api)
    const foreign = await objective(api, { type: 'agent', id: 'bob' })
    const team = await objective(api, { type: 'team', id: 'ana' })
    const elsewhere = await objective(open().api())
    const statusOf = async (objectiveRefs: string[]): Promise<number> =>
      (await api.post('/projects', { ...CONTENT, objectiveRefs })).status
    expect(await statusOf([own])).toBe(201)
    expect(await statusOf([own, foreign])).toBe(400)
    expect(await statusOf([team])).toBe(400)
    expect(await statusOf([own, own])).toBe(400)
    expect(await statusOf([])).toBe(400)
    expect(await statusOf([own, 'none'])).toBe(404)
    expect(await statusOf([elsewhere])).toBe(404)
    const { id } = await project(api)
    const patched = await api.patch(`/projects/${id}`, { expectedRevision: 1, objectiveRefs: [foreign] })
    expect(patched.status).toBe(400)
  })

  test('kernel#32 illegal moves are 409, an archived project takes no PATCH at all', async () => {
    const api = open().api()
    const states = ['draft', 'active', 'paused', 'completed', 'failed', 'canceled', 'archived']
    const legal: Record<string, string[]> = {
      draft: ['active', 'canceled', 'archived'],
      active: ['paused', 'completed', 'failed', 'canceled'],
      paused: ['active', 'failed', 'canceled'],
      completed: ['archived'],
      failed: ['archived'],
      canceled: ['archived'],
      archived: [],
    }
    const objectiveRefs = [await objective(api)]
    for (const from of states) {
      for (const to of states) {
        const { id } = await project(api, { status: from, objectiveRefs })
        const { status } = await api.patch(`/projects/${id}`, { status: to, expectedRevision: 1 })
        const expected = legal[from]?.includes(to) ? 200 : from === to && from !== 'archived' ? 400 : 409
        expect([from, to, status]).toEqual([from, to, expected])
      }
    }
    const { id } = await project(api, { status: 'archived', objectiveRefs })
    expect((await api.patch(`/projects/${id}`, { title: 'Sea', expectedRevision: 1 })).status).toBe(409)
  })

  test('kernel#32 lists replace, clearBudget takes the budget away, what is not named stays', async () => {
    const api = open().api()
    const { id, objectiveRefs } = await project(api, {
      budget: { maxTurns: 5 },
      milestones: [
        { id: 'm1', title: 'One' },
        { id: 'm2', title: 'Two' },
      ],
      hypotheses: [{ id: 'h', statement: 'It is finite', confidence: 0.5 }],
      checkpoint: { seen: 3 },
    })
    const path = `/projects/${id}`
    const replaced = await api.patch(path, { expectedRevision: 1, milestones: [{ id: 'm3', title: 'Three' }] })
    expect(replaced.body).toMatchObject({
      revision: 2,
      title: 'Sky',
      objectiveRefs,
      budget: { maxTurns: 5 },
      milestones: [{ id: 'm3', title: 'Three', status: 'pending', objectiveRefs: [] }],
      hypotheses: [{ id: 'h', status: 'open', evidenceRefs: [] }],
      checkpoint: { seen: 3 },
    })
    const cleared = await api.patch(path, { expectedRevision: 2, clearBudget: true })
    expect(cleared.status).toBe(200)
    expect(cleared.body).not.toHaveProperty('budget')
    const patches = [
      [{ expectedRevision: 3, clearBudget: true }, 400],
      [{ expectedRevision: 3, clearBudget: true, budget: { maxTurns: 1 } }, 400],
      [{ expectedRevision: 3, title: 'Sky' }, 400],
      [{ expectedRevision: 3 }, 400],
      [{ expectedRevision: 3, owner: OWNER }, 400],
      [{ expectedRevision: 3, id: 'other' }, 400],
      [{ title: 'Sea' }, 400],
      [{ expectedRevision: 2, title: 'Sea' }, 409],
    ] as const
    for (const [patch, expected] of patches) {
      expect([patch, (await api.patch(path, patch)).status]).toEqual([patch, expected])
    }
    expect((await api.patch('/projects/none', { expectedRevision: 1, title: 'x' })).status).toBe(404)
  })

  test('projects are listed by owner, status and objective, the last changed first', async () => {
    const api = open().api()
    const shared = await objective(api)
    const other = await objective(api, { type: 'team', id: 'crew' })
    const first = await project(api, { id: 'first', objectiveRefs: [shared] })
    open().advance(1000)
    await project(api, { id: 'second', status: 'active', objectiveRefs: [shared] })
    open().advance(1000)
    await project(api, { id: 'third', owner: { type: 'team', id: 'crew' }, objectiveRefs: [other] })
    const ids = async (query: string): Promise<string[]> =>
      (await api.get(`/projects?${query}`)).body.map(({ id }: { id: string }) => id)
    expect(await ids('')).toEqual(['third', 'second', 'first'])
    expect(await ids(`objectiveId=${shared}`)).toEqual(['second', 'first'])
    expect(await ids('status=draft')).toEqual(['third', 'first'])
    expect(await ids('ownerType=team&ownerId=crew')).toEqual(['third'])
    expect(await ids('ownerType=team&ownerId=crew&status=active')).toEqual([])
    open().advance(1000)
    await api.patch(`/projects/${first.id}`, { expectedRevision: 1, objectiveRefs: [await objective(api)] })
    expect(await ids('')).toEqual(['first', 'third', 'second'])
    expect(await ids(`objectiveId=${shared}`)).toEqual(['second'])
    expect((await api.get('/projects?ownerType=team')).status).toBe(400)
  })

  test('a hypothesis tells when it last changed: as said, else when it was first said so', async () => {
    const api = open().api()
    const said = { id: 'h', statement: 'It is round', confidence: 0.5 }
    const other = { ...said, id: 'other', updatedAt: '2026-01-02T01:00:00+01:00' }
    const { id } = await project(api, { hypotheses: [said, other] })
    const first = open().at()
    const times = async (revision: number, hypotheses: object[]): Promise<string[]> => {
      const { body } = await api.patch(`/projects/${id}`, { expectedRevision: revision, title: 'Next', hypotheses })
      return body.hypotheses.map(({ updatedAt }: { updatedAt: string }) => updatedAt)
    }
    open().advance(1000)
    expect(await times(1, [said, other])).toEqual([first, '2026-01-02T00:00:00.000Z'])
    expect((await api.patch(`/projects/${id}`, { expectedRevision: 2, hypotheses: [said, other] })).status).toBe(400)
    expect(await times(2, [{ ...said, confidence: 0.9 }])).toEqual([open().at()])
  })

  test('kernel#5 a project of another scope is not found', async () => {
    const { id } = await project(open().api())
    const other = open().api()
    expect((await other.get(`/projects/${id}`)).status).toBe(404)
    expect((await other.patch(`/projects/${id}`, { expectedRevision: 1, title: 'x' })).status).toBe(404)
  })

  test('kernel#13 a key of a secret at depth 4 in policy or checkpoint is 400 and named; token limits pass', async () => {
    const api = open().api()
    const objectiveRefs = [await objective(api)]
    for (const field of ['policy', 'checkpoint']) {
      const deep = { a: [{ b: { apiKey: 'x' } }] }
      const refused = await api.post('/projects', { ...CONTENT, objectiveRefs, [field]: deep })
      expect([refused.status, refused.body.error]).toEqual([400, expect.stringContaining(`${field}.a.0.b.apiKey`)])
      const passed = await api.post('/projects', { ...CONTENT, objectiveRefs, [field]: { maxInputTokens: 5 } })
      expect(passed.status).toBe(201)
    }
  })
})
