import { expect, test } from 'vitest'
import { sha256 } from '../../src/base/hash.ts'
import { describeKernels, openKernel, type ScopedApi } from './api.ts'

const OBJECTIVE = { title: 'Stars', goal: 'Know how many there are', owner: { type: 'agent', id: 'ana' } }
const RUN = { goal: 'Count', owner: OBJECTIVE.owner }

const count = async (api: ScopedApi, path: string): Promise<number> => (await api.get(path)).body.length

describeKernels('idempotency', (open) => {
  test('kernel#17 a key: 201, then 200 with Idempotent-Replay and the record as it is now; other content 409', async () => {
    const api = open().api()
    const first = await api.post('/objectives', OBJECTIVE, 'one')
    expect([first.status, first.headers.get('idempotent-replay')]).toEqual([201, null])
    expect(first.body.idempotencyKeyHash).toBe(`sha256:${sha256('one')}`)
    expect(first.body.creationFingerprint).toMatch(/^[0-9a-f]{64}$/)
    const again = await api.post('/objectives', OBJECTIVE, 'one')
    expect([again.status, again.headers.get('idempotent-replay'), again.body]).toEqual([200, 'true', first.body])
    await api.put(`/objectives/${first.body.id}`, { title: 'Suns', goal: 'x', expectedRevision: 1 })
    expect((await api.post('/objectives', OBJECTIVE, 'one')).body).toMatchObject({ title: 'Suns', revision: 2 })
    expect((await api.post('/objectives', { ...OBJECTIVE, goal: 'other' }, 'one')).status).toBe(409)
    expect(await count(api, '/objectives')).toBe(1)
  })

  test('kernel#18 a run that replays has no event; another actor, visibility or key in the body is the same content', async () => {
    const api = open().api()
    const first = await api.post('/agent-runs', RUN, 'one')
    expect([first.status, Object.keys(first.body).sort()]).toEqual([201, ['event', 'run']])
    const again = await api.post('/agent-runs', RUN, 'one')
    expect([again.status, again.body]).toEqual([200, { run: first.body.run }])
    const claims = { actor: { type: 'user', id: 'olga' }, visibility: 'private', idempotencyKey: 'two' }
    const other = await api.post('/agent-runs', { ...RUN, ...claims }, 'one')
    expect([other.status, other.body]).toEqual([200, { run: first.body.run }])
    expect(await count(api, '/agent-runs')).toBe(1)
  })

  test('kernel#19 the header wins over the body; another scope or route is another key; 257 bytes are 400', async () => {
    const api = open().api()
    await api.post('/objectives', { ...OBJECTIVE, idempotencyKey: 'body' }, 'header')
    expect((await api.post('/objectives', OBJECTIVE, 'header')).status).toBe(200)
    expect((await api.post('/objectives', OBJECTIVE, 'body')).status).toBe(201)
    expect((await api.post('/objectives', { ...OBJECTIVE, idempotencyKey: 'body' })).status).toBe(200)
    expect((await open().api().post('/objectives', OBJECTIVE, 'header')).status).toBe(201)
    expect((await api.post('/agent-runs', RUN, 'header')).status).toBe(201)
    expect((await api.post('/objectives', OBJECTIVE, 'x'.repeat(256))).status).toBe(201)
    for (const key of ['x'.repeat(257), '', 'a\tb']) {
      expect([key, (await api.post('/objectives', OBJECTIVE, key)).status]).toEqual([key, 400])
      const inBody = await api.post('/objectives', { ...OBJECTIVE, idempotencyKey: key })
      expect([key, inBody.status]).toEqual([key, 400])
    }
  })

  test('a header of UTF-8 bytes and the same text in the body are one key', async () => {
    const api = open().api()
    await api.post('/objectives', { ...OBJECTIVE, idempotencyKey: 'schlüssel' })
    const bytes = Buffer.from('schlüssel').toString('latin1')
    expect((await api.post('/objectives', OBJECTIVE, bytes)).status).toBe(200)
    // keys that are no UTF-8 are told apart all the same
    expect((await api.post('/objectives', OBJECTIVE, '\xfe')).status).toBe(201)
    expect((await api.post('/objectives', OBJECTIVE, '\xff')).status).toBe(201)
    expect((await api.post('/objectives', OBJECTIVE, '\xff')).status).toBe(200)
  })

  test('kernel#20 of 50 creations at once with one key one makes the record, the others replay it', async () => {
    const api = open().api()
    const replies = await Promise.all(Array.from({ length: 50 }, () => api.post('/objectives', OBJECTIVE, 'race')))
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(1)
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(49)
    expect(new Set(replies.map(({ body }) => body.id)).size).toBe(1)
    expect(await count(api, '/objectives')).toBe(1)
    expect((await api.get('/activity')).body.items).toHaveLength(1)
  })

  test('kernel#21 pause again with the old revision is 200 and one event, also of another kernel over the same store', async () => {
    const api = open().api()
    const { id } = (await api.post('/agent-runs', RUN)).body.run
    const pause = { kind: 'pause', expectedRevision: 1 }
    const path = `/agent-runs/${id}/commands`
    const first = await api.post(path, pause, 'stop')
    expect([first.status, first.body]).toMatchObject([200, { run: { status: 'paused' }, event: expect.anything() }])
    const again = await api.post(path, pause, 'stop')
    expect([again.status, again.body]).toEqual([200, { run: first.body.run }])
    expect((await api.post(path, pause)).status).toBe(409)
    const restarted = await openKernel(open())
    const later = await restarted.api(api.scope).post(path, pause, 'stop')
    expect([later.status, later.body]).toEqual([200, { run: first.body.run }])
    await restarted.stop()
    const { items } = (await api.get(`/activity?runId=${id}&eventType=run.paused`)).body
    expect(items).toHaveLength(1)
  })

  test('kernel#22 a refused request consumes nothing of its key', async () => {
    const api = open().api()
    expect((await api.post('/objectives', { ...OBJECTIVE, title: '' }, 'k')).status).toBe(400)
    expect((await api.post('/agent-runs', { ...RUN, objectiveId: 'none' }, 'k')).status).toBe(404)
    const { id } = (await api.post('/objectives', OBJECTIVE, 'k')).body
    expect((await api.post('/agent-runs', { ...RUN, objectiveId: id }, 'k')).status).toBe(409)
    const put = { ...OBJECTIVE, owner: undefined, status: 'active' }
    expect((await api.put(`/objectives/${id}`, { ...put, expectedRevision: 4 }, 'k')).status).toBe(409)
    expect((await api.put(`/objectives/${id}`, { ...put, expectedRevision: 1 }, 'k')).status).toBe(200)
    expect((await api.post('/agent-runs', { ...RUN, objectiveId: id }, 'k')).status).toBe(201)
  })

  test('kernel#22 completion, review, decision and installation need a key', async () => {
    const api = open().api()
    const principal = { type: 'user', id: 'olga' }
    const writes: [string, object][] = [
      ['/agent-requests/x/completions', { expectedRevision: 1, principal, summary: 'done' }],
      ['/agent-requests/x/completion-review', { expectedRevision: 1, principal, approve: true, summary: 'good' }],
    ]
    for (const [path, body] of writes) {
      const { status, body: said } = await api.post(path, body)
      expect([path, status, said.error]).toEqual([path, 400, 'an Idempotency-Key is required'])
    }
  })
})
