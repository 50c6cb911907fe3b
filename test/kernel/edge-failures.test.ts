import { PassThrough } from 'node:stream'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { describeKernels, openKernel } from './api.ts'
import { faultyStore } from './faulty-store.ts'

const OWNER = { type: 'agent', id: 'ana' }
const OBJECTIVE = { title: 'Stars', goal: 'Count', owner: OWNER }

describeKernels('a kernel whose store fails', (open) => {
  test('kernel#10 a store that throws is 500 "internal error" and its cause only in the log', async () => {
    const log = new PassThrough()
    const kernel = await openKernel(
      { ...open(), store: faultyStore(open().store, (sql) => sql.includes('INSERT INTO kernel_')) },
      { log: pino(log) },
    )
    const api = kernel.api()
    const { id } = (
      await open()
        .api(api.scope)
        .post('/objectives', { ...OBJECTIVE, status: 'active' })
    ).body
    const writes: ['post' | 'put', string, object][] = [
      ['post', '/objectives', OBJECTIVE],
      ['put', `/objectives/${id}`, { ...OBJECTIVE, owner: undefined, title: 'Suns', expectedRevision: 1 }],
      ['post', '/projects', { title: 'Sky', purpose: 'Know it', owner: OWNER, objectiveRefs: [id] }],
      ['post', '/agent-runs', { goal: 'Count', owner: OWNER, objectiveId: id }],
    ]
    for (const [method, path, body] of writes) {
      const reply = await api[method](path, body, 'key')
      expect([path, reply.status, reply.body]).toEqual([path, 500, { error: 'internal error' }])
    }
    expect(String(log.read())).toContain('the disk is broken')
    await kernel.stop()
    expect((await open().api(api.scope).get('/activity')).body.items).toHaveLength(1)
  })

  test('kernel#10 a store that throws on reads is 500 in every family', async () => {
    const store = faultyStore(open().store, (sql) => sql.includes('FROM kernel_'))
    const kernel = await openKernel({ ...open(), store })
    const api = kernel.api()
    const families = ['objectives', 'projects', 'activity', 'agent-runs', 'agent-requests', 'agent-deployments']
    for (const family of [...families, 'objectives/x', 'agent-runs/x']) {
      const reply = await api.get(`/${family}`)
      expect([family, reply.status, reply.body]).toEqual([family, 500, { error: 'internal error' }])
    }
    await kernel.stop()
  })

  test('kernel#10 a closed store is 503, with Retry-After', async () => {
    const store = await open().place.open()
    const kernel = await openKernel({ ...open(), store })
    await store.close()
    for (const reply of [await kernel.api().get('/objectives'), await kernel.api().post('/objectives', OBJECTIVE)]) {
      expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '1'])
      expect(reply.body).toEqual({ error: 'the store does not answer: try again' })
    }
    await kernel.stop()
  })

  test('a request that takes too long is 503', async () => {
    const never = (): Promise<never> => new Promise(() => {})
    const kernel = await openKernel(open(), { hostIdentity: never, timeoutMs: 50 })
    const reply = await kernel.api().get('/objectives')
    expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '1'])
    expect(reply.body.error).toContain('took too long')
    await kernel.stop()
  })
})
