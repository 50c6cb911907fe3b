import { expect, test } from 'vitest'
import { writeCursor } from '../../src/kernel/routes/cursor.ts'
import type { Key } from '../../src/kernel/store/records.ts'
import { scopeKey } from '../../src/kernel/store/scope-key.ts'
import { describeKernels, type Reply, type ScopedApi } from './api.ts'
import { install } from './registry-support.ts'

/** Bare arrays, which go on behind a cursor. */
const ARRAYS = [
  '/objectives',
  '/projects',
  '/agent-runs',
  '/agent-requests',
  '/action-calls',
  '/action-approvals',
] as const
/** All there is, or as many as are asked for. */
const WHOLE = ['/agent-deployments', '/team-deployments'] as const
const OF_A_DEPLOYMENT = ['amendments', 'compilations', 'activations'] as const

describeKernels(
  'lists of every family',
  (open) => {
    const statusOf = async (path: string, query: string): Promise<number> =>
      (
        await open()
          .api()
          .get(`${path}${path.includes('?') ? '&' : '?'}${query}`)
      ).status

    test.each(ARRAYS)('kernel#11 %s: limit, offset and cursor out of range are 400', async (path) => {
      for (const query of ['limit=0', 'limit=101', 'limit=-1', 'limit=x', 'offset=-1', 'offset=x', 'offset=1000001']) {
        expect([query, await statusOf(path, query)]).toEqual([query, 400])
      }
      for (const query of ['cursor=abc', 'cursor=', 'cursor=abc&offset=1', 'limit=1&limit=2']) {
        expect([query, await statusOf(path, query)]).toEqual([query, 400])
      }
      for (const query of ['limit=1', 'limit=100', 'offset=1000000', 'limit=100&offset=0']) {
        expect([query, await statusOf(path, query)]).toEqual([query, 200])
      }
    })

    const OWNER = { type: 'agent', id: 'ana' }
    interface Listed {
      id: string
      revision: number
    }
    interface Walked {
      path: string
      create(api: ScopedApi, n: number): Promise<Reply>
      change(api: ScopedApi, listed: Listed): Promise<Reply>
    }
    const OBJECTIVES: Walked = {
      path: '/objectives',
      create: (api, n) => api.post('/objectives', { title: `${n}`, goal: 'Count', owner: OWNER, priority: n % 2 }),
      change: (api, { id, revision: expectedRevision }) =>
        api.put(`/objectives/${id}`, { title: `Changed ${expectedRevision}`, goal: 'Count', expectedRevision }),
    }
    const PROJECTS: Walked = {
      path: '/projects',
      create: async (api, n) => {
        const { id } = (await OBJECTIVES.create(api, n)).body
        return api.post('/projects', { title: `${n}`, purpose: 'Count', owner: OWNER, objectiveRefs: [id] })
      },
      change: (api, { id, revision: expectedRevision }) =>
        api.patch(`/projects/${id}`, { title: `Changed ${expectedRevision}`, expectedRevision }),
    }

    test.each([OBJECTIVES, PROJECTS])(
      'kernel#12 $path are walked while they change: none is missed, what does not change comes once',
      async ({ path, create, change }) => {
        const api = open().api()
        const made: Listed[] = []
        for (let n = 0; n < 60; n++) {
          made.push((await create(api, n)).body)
          open().advance(n % 3)
        }
        const seen: Listed[] = []
        const changed = new Set<string>()
        let pages = 0
        for (let next: string | null = ''; next !== null; pages++) {
          const cursor: string = next === '' ? '' : `&cursor=${encodeURIComponent(next)}`
          const { body, headers }: Reply = await api.get(`${path}?limit=7${cursor}`)
          seen.push(...body)
          next = headers.get('x-next-cursor')
          open().advance(1)
          // One that was shown, one that was not, one that comes again and again, and a new one.
          const notYet = made.filter(({ id }) => !seen.some((other) => other.id === id)).at(pages * 2)
          const victims = pages > 5 ? [] : [made[30], seen.at(-1), notYet]
          for (const id of new Set(victims.flatMap((victim) => (victim ? [victim.id] : [])))) {
            const { body: now } = await api.get(`${path}/${id}`)
            expect((await change(api, now.objective ?? now)).status).toBe(200)
            changed.add(id)
            open().advance(1)
          }
          if (pages < 3) await create(api, 100 + pages)
        }
        expect(changed.size).toBeGreaterThan(5)
        for (const { id } of made) {
          const shown = seen.filter((listed) => listed.id === id)
          expect([id, shown.length === 1 || (changed.has(id) && shown.length > 1)]).toEqual([id, true])
          const { body: now } = await api.get(`${path}/${id}`)
          expect(shown.at(-1)?.revision).toBe((now.objective ?? now).revision)
        }
        expect(pages).toBeLessThan(20)
      },
    )

    test.each([OBJECTIVES, PROJECTS])(
      'kernel#12 $path are walked: a write that began before and is committed after the first page is not missed',
      async ({ path, create, change }) => {
        const api = open().api()
        const made: Listed[] = []
        for (let n = 0; n < 9; n++) {
          made.push((await create(api, n)).body)
          open().advance(10)
        }
        const first = await api.get(`${path}?limit=3`)
        const unseen = made.filter(({ id }) => !first.body.some((listed: Listed) => listed.id === id))
        open().advance(-1)
        for (const listed of unseen) expect((await change(api, listed)).status).toBe(200)
        open().advance(1)
        const seen: Listed[] = first.body
        for (let next = first.headers.get('x-next-cursor'); next !== null;) {
          const { body, headers }: Reply = await api.get(`${path}?limit=3&cursor=${encodeURIComponent(next)}`)
          seen.push(...body)
          next = headers.get('x-next-cursor')
        }
        const revisions = new Map(unseen.map(({ id }) => [id, 2]))
        expect(seen.map(({ id, revision }) => `${id} ${revision}`).toSorted()).toEqual(
          made.map(({ id }) => `${id} ${revisions.get(id) ?? 1}`).toSorted(),
        )
      },
    )

    test('kernel#11 a cursor that another version gave out is a 400', async () => {
      const { store, api: scoped } = open()
      const { scope, get } = scoped()
      const statusAt = (path: string, place: Key): Promise<number> => {
        const cursor = writeCursor(store.cursorSecret, `GET ${path}\n${scopeKey(scope)}\n{}`, place)
        return get(`${path}?cursor=${encodeURIComponent(cursor)}`).then(({ status }) => status)
      }
      for (const [path, key] of [
        ['/objectives', [-1, -1000, 'obj']],
        ['/projects', [-1000, 'obj']],
      ] as const) {
        // The first walks kept the key alone, the next the beginning and the phase before it.
        for (const place of [key, [1000, 0, ...key], [1000, 1, -1000, 'obj'], [1000, 1], [1000, 2, 5, ...key]]) {
          expect([place, await statusAt(path, place)]).toEqual([place, 400])
        }
        for (const place of [
          [1000, 0, 5, ...key],
          [1000, 1, 5],
          [1000, 1, 5, -1000, 'obj'],
        ]) {
          expect([place, await statusAt(path, place)]).toEqual([place, 200])
        }
      }
    })

    test('kernel#11 turns and activity: limit, position and cursor out of range are 400', async () => {
      const api = open().api()
      const { id } = (await api.post('/agent-runs', { owner: { type: 'agent', id: 'ana' }, goal: 'Count' })).body.run
      const turns = async (query: string): Promise<number> =>
        (await api.get(`/agent-turns?runId=${id}&${query}`)).status
      for (const query of ['limit=0', 'limit=101', 'limit=x', 'afterSequence=-1', 'afterSequence=x']) {
        expect([query, await turns(query)]).toEqual([query, 400])
      }
      expect([await turns('limit=100'), await turns('afterSequence=0')]).toEqual([200, 200])
      expect((await api.get('/agent-turns')).status).toBe(400)
      for (const query of ['limit=0', 'limit=101', 'limit=x', 'cursor=x', 'order=both', 'category=none']) {
        expect([query, await statusOf('/activity', query)]).toEqual([query, 400])
      }
      expect(await statusOf('/activity', 'limit=100')).toBe(200)
    })

    test('kernel#11 lists of the registry take 1 to 500', async () => {
      const api = open().api()
      await install(api)
      const paths = [...WHOLE, ...OF_A_DEPLOYMENT.map((list) => `/agent-deployments/ana/${list}`)]
      for (const path of paths) {
        const status = async (query: string): Promise<number> => (await api.get(`${path}?${query}`)).status
        for (const query of ['limit=0', 'limit=501', 'limit=x', 'limit=-1']) {
          expect([path, query, await status(query)]).toEqual([path, query, 400])
        }
        for (const query of ['limit=1', 'limit=500', '']) {
          expect([path, query, await status(query)]).toEqual([path, query, 200])
        }
      }
    })
  },
  { agents: true },
)
