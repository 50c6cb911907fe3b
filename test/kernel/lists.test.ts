import { expect, test } from 'vitest'
import { describeKernels } from './api.ts'
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
      for (const query of ['limit=0', 'limit=101', 'limit=x', 'cursor=x', 'order=both', 'category=none,']) {
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
