import { expect, test } from 'vitest'
import type { HealthCheck } from '../../src/kernel/health.ts'
import { saveWorker } from '../../src/kernel/store/workers.ts'
import { describeKernels, openKernel, type OpenKernel } from './api.ts'
import { faultyStore } from './faulty-store.ts'

const report = async (open: Pick<OpenKernel, 'call'>): Promise<{ status: number; body: unknown }> =>
  open.call('GET', '/health')

describeKernels('health', (open) => {
  test('a store that reads and writes is ok; what is not wired is not configured', async () => {
    const { status, body } = await report(open())
    expect(status).toBe(200)
    const none = { status: 'not_configured' }
    expect(body).toEqual({
      status: 'ok',
      version: expect.stringMatching(/^\d+\.\d+/),
      startedAt: open().at(),
      checks: {
        store: { status: 'ok', latencyMs: expect.any(Number) },
        workers: none,
        model: none,
        artifacts: none,
        registry: none,
      },
    })
  })

  test('the probe leaves nothing behind', async () => {
    await report(open())
    const { store } = open()
    expect(await store.database.all('SELECT name FROM kernel_meta')).toEqual([{ name: 'cursor_key' }])
  })

  test('kernel#16 store down: 503; it says which check', async () => {
    const store = await open().place.open()
    const kernel = await openKernel({ ...open(), store })
    await store.close()
    const { status, body } = await report(kernel)
    expect(status).toBe(503)
    expect(body).toMatchObject({
      status: 'down',
      error: 'the store does not answer',
      checks: { store: { status: 'down', detail: expect.any(String) } },
    })
    await kernel.stop()
  })

  test('kernel#16 a store that reads and cannot write is down', async () => {
    const kernel = await openKernel({ ...open(), store: faultyStore(open().store, (sql) => sql.startsWith('INSERT')) })
    const { status, body } = await report(kernel)
    expect([status, body]).toMatchObject([503, { checks: { store: { status: 'down' } } }])
    await kernel.stop()
  })

  test('kernel#16 a silent pool degrades, with 200, until one of its scope and kind is seen again', async () => {
    const { store, newId, api, advance, place } = open()
    const { scope } = api()
    const seen = (id: string): Promise<void> =>
      saveWorker(store.database, {
        id,
        scope,
        kind: 'run',
        runKinds: ['agent_work'],
        concurrency: 1,
        active: 0,
        limits: { agent: 0, owner: 0, objective: 0, concurrency_key: 0 },
        lastSeenAt: place.clock.now(),
      })
    await seen(newId())
    advance(1000)
    expect((await report(open())).body).toMatchObject({ status: 'ok', checks: { workers: { status: 'ok' } } })
    advance(30_000)
    const { status, body } = await report(open())
    expect(status).toBe(200)
    expect(body).toMatchObject({
      status: 'degraded',
      checks: { workers: { status: 'degraded', detail: expect.stringContaining(`${scope.kind}:${scope.id}`) } },
    })
    await seen(newId())
    advance(1000)
    expect((await report(open())).body).toMatchObject({ status: 'ok', checks: { workers: { status: 'ok' } } })
  })

  test('what is found out holds for a second', async () => {
    let looks = 0
    const model = async (): Promise<HealthCheck> => ({ status: 'ok', detail: `${++looks}` })
    const kernel = await openKernel(open(), { checks: { model } })
    await Promise.all([report(kernel), report(kernel), report(kernel)])
    expect(looks).toBe(1)
    open().advance(1000)
    await report(kernel)
    expect(looks).toBe(2)
    await kernel.stop()
  })

  test('a part that is down or fails degrades, with 200', async () => {
    const broken = async (): Promise<never> => {
      throw new Error('the directory is not writable')
    }
    const kernel = await openKernel(open(), { checks: { artifacts: broken } })
    const { status, body } = await report(kernel)
    expect([status, body]).toMatchObject([
      200,
      { status: 'degraded', checks: { artifacts: { status: 'down', detail: 'the directory is not writable' } } },
    ])
    await kernel.stop()
  })
})
