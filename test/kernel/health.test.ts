import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createModelHost } from '../../src/kernel/engine/model-host.ts'
import type { HealthCheck } from '../../src/kernel/health.ts'
import { saveWorker } from '../../src/kernel/store/workers.ts'
import { watchModel } from '../../src/kernel/watched-model.ts'
import { startMemoryApi } from '../support/memory-api.ts'
import { describeKernels, openKernel, type OpenKernel, type Reply } from './api.ts'
import { bench, useModel } from './engine-support.ts'
import { faultyStore } from './faulty-store.ts'

const report = (open: Pick<OpenKernel, 'call'>): Promise<Reply> => open.call('GET', '/health')

const scripted = useModel()

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
    const { status, body, headers } = await report(kernel)
    expect([status, headers.get('retry-after')]).toEqual([503, '1'])
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

  test('kernel#16 health asks the model nothing: it tells how the last call went', async () => {
    const watched = watchModel(createModelHost({ baseUrl: scripted().baseUrl, model: 'scripted' }))
    const kernel = await openKernel(open(), { checks: { model: watched.check } })
    const modelCheck = async (): Promise<unknown> => {
      open().advance(1000)
      return (await report(kernel)).body
    }
    expect(await modelCheck()).toMatchObject({ checks: { model: { status: 'ok', detail: 'not asked yet' } } })
    expect(scripted().requests).toHaveLength(0)
    const it = bench(open(), scripted(), { model: watched.model })
    const goal = it.goal('Look at the model')
    scripted().script(goal, [{ status: 503 }, { outcome: { status: 'completed' } }])
    await it.create({ goal })
    await it.work()
    const asked = scripted().requests.length
    expect(await modelCheck()).toMatchObject({ status: 'degraded', checks: { model: { status: 'degraded' } } })
    open().advance(6000)
    await it.work()
    expect(await modelCheck()).toMatchObject({ checks: { model: { status: 'ok' } } })
    expect(scripted().requests).toHaveLength(asked + 1)
    scripted().requests.length = 0
    await kernel.stop()
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
    open().advance(-3_600_000)
    await report(kernel)
    expect(looks).toBe(3)
    open().advance(3_600_000)
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

test('skills that cannot be used degrade a server, by name', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'mem-test-health-'))
  const registry = async (): Promise<unknown> => {
    const api = await startMemoryApi({ dialect: 'sqlite', dataDir })
    const { status, body } = await api.call('GET', '//api/v1/health')
    await api.stop()
    return [status, body.checks.registry]
  }
  const latencyMs = expect.any(Number)
  expect(await registry()).toEqual([200, { status: 'ok', latencyMs }])
  mkdirSync(join(dataDir, 'skills'))
  writeFileSync(join(dataDir, 'skills/broken.yaml'), 'id: broken\n')
  const detail = 'skills that cannot be used: broken.yaml'
  expect(await registry()).toEqual([200, { status: 'degraded', detail, latencyMs }])
  rmSync(dataDir, { recursive: true })
})
