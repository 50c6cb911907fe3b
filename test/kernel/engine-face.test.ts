import { pino } from 'pino'
import { afterEach, expect, test, vi } from 'vitest'
import { createSkillCatalog } from '../../src/kernel/actions/catalog.ts'
import { createFunctionTransport } from '../../src/kernel/actions/function-transport.ts'
import { KernelEngine } from '../../src/kernel/engine-face.ts'
import type { KernelEngineOptions } from '../../src/kernel/engine-options.ts'
import { ModelFailure, type ModelHost } from '../../src/kernel/ports.ts'
import { newMemoryStore } from '../../src/kernel/store/store.ts'
import { bindingOf, BY, deskSkill } from './actions-support.ts'
import { serveHandler, type ScopedApi, type ServedHandler } from './api.ts'
import { install } from './registry-support.ts'
import { createStorePlace } from './support.ts'
import { hasPostgres } from '../support/postgres.ts'

const SCOPE = { kind: 'local', id: 'default' }
const RUN = { goal: 'Count', owner: { type: 'agent', id: 'ana' } }
const logger = pino({ level: 'silent' })
const undo: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const last of undo.splice(0).toReversed()) await last()
})

/** Each turn by the number of its run, the first 1. */
const scripted = (turn: (number: number) => object): ModelHost => ({
  propose: async ({ invocationId, run, skills }) => ({
    outcome: {
      invocationId,
      summary: `Turn ${run.turn}`,
      skillDispositions: skills.map(({ skillRef }) => ({ skillRef, disposition: 'applied', summary: 'used' })),
      ...turn(run.turn),
    },
    usage: { inputTokens: 10, outputTokens: 5 },
  }),
})

async function start(
  options: KernelEngineOptions,
): Promise<{ engine: KernelEngine; served: ServedHandler; api: ScopedApi }> {
  const engine = new KernelEngine({ logger, ...options })
  const served = await serveHandler(engine.httpHandler())
  undo.push(served.stop, () => engine.stop())
  await engine.start()
  return { engine, served, api: served.api(SCOPE) }
}

/** The run once it is in this state; it takes a while. */
const reached = (api: ScopedApi, id: string, status: string): Promise<unknown> =>
  vi.waitFor(
    async () => {
      const { body } = await api.get(`/agent-runs/${id}`)
      if (body.status !== status) throw new Error(`the run is ${body.status}`)
      return body
    },
    { timeout: 20_000 },
  )

const workers = { scopes: [SCOPE], pollIntervalMs: 20 }

test('an unknown option is refused by its name at once, one that does not fit at the start', async () => {
  const unknown: object = { colour: 'red' }
  expect(() => new KernelEngine(unknown)).toThrow(new TypeError('KernelEngine has no option colour'))
  const refusalOf = async (options: object): Promise<string> => {
    const error: unknown = await new KernelEngine({ logger, ...options }).start().catch((thrown: unknown) => thrown)
    return String(error)
  }
  expect(await refusalOf({ workerConcurrencyLimit: 257 })).toMatch(/^TypeError: KernelEngine: workerConcurrencyLimit: /)
  expect(await refusalOf({ agentRunWorkers: { scopes: [SCOPE], pace: 1 } })).toMatch(/agentRunWorkers: .*pace/)
  expect(await refusalOf({ agentRunWorkers: {} })).toMatch(/agentRunWorkers\.scopes: /)
  expect(await refusalOf({ modelHost: 'a model' })).toMatch(/modelHost: must be an object/)
  // It has no `fatal`: the first request would have ended the process.
  expect(await refusalOf({ logger: console })).toMatch(/logger: must have trace, .*fatal/)
})

test('two stores, and a second start, are refused', async () => {
  const store = await newMemoryStore()
  undo.push(() => store.close())
  await expect(new KernelEngine({ logger, store, persistentStore: store }).start()).rejects.toThrow('not both')
  const { engine } = await start({ store })
  await expect(engine.start()).rejects.toThrow('starts once')
  const aborted = new KernelEngine({ logger }).start(AbortSignal.abort())
  await expect(aborted).rejects.toThrow('aborted')
})

test('a handler answers 503 before the start and after the stop', async () => {
  const engine = new KernelEngine({ logger })
  const served = await serveHandler(engine.httpHandler())
  undo.push(served.stop)
  const early = await served.call('GET', '/health')
  expect([early.status, early.body, early.headers.get('retry-after')]).toEqual([
    503,
    { error: 'the kernel is not started' },
    '1',
  ])
  await engine.start()
  expect((await served.call('GET', '/health')).status).toBe(200)
  await engine.stop()
  expect((await served.api(SCOPE).get('/objectives')).status).toBe(503)
})

test('the signal of the start stops the engine', async () => {
  const stop = new AbortController()
  const engine = new KernelEngine({ logger })
  const served = await serveHandler(engine.httpHandler())
  undo.push(served.stop)
  await engine.start(stop.signal)
  expect((await served.api(SCOPE).get('/objectives')).status).toBe(200)
  stop.abort()
  await expect.poll(async () => (await served.api(SCOPE).get('/objectives')).status).toBe(503)
})

test('what is not given is not offered: no run dispatcher, no authorizer, no skills', async () => {
  const { api, served } = await start({})
  expect((await api.post('/agent-runs', RUN)).body.error).toContain('run dispatcher is not configured')
  expect((await api.post('/action-approvals/x/decisions', {}, 'k')).body.error).toContain('approval authorizer')
  expect((await api.get('/agent-deployments/x/skill-actions')).body.error).toContain('skill catalog')
  expect((await served.call('GET', '/health')).body.checks.model).toEqual({ status: 'not_configured' })
})

test('without a model runs are taken and stay queued', async () => {
  const { api } = await start({ agentRunWorkers: workers })
  await install(api)
  const { run } = (await api.post('/agent-runs', RUN)).body
  const { body } = await api.get(`/agent-runs/admission?runId=${run.id}`)
  expect(body.outcome).toBe('no_worker')
})

for (const driver of ['memory', 'sqlite', 'postgres'] as const) {
  test.skipIf(driver === 'postgres' && !hasPostgres)(
    `an agent works on a run, acts, and completes it [${driver}]`,
    async () => {
      const place = await createStorePlace(driver)
      undo.push(place.remove)
      const done: unknown[] = []
      const { api, served } = await start({
        persistentStore: await place.open(),
        agentRunWorkers: workers,
        actionWorkers: { scopes: [SCOPE] },
        skillCatalog: createSkillCatalog([deskSkill('http://127.0.0.1:1')]),
        transports: {
          function: createFunctionTransport({
            here: async (dispatch) => {
              done.push(dispatch.arguments)
              return { count: 7 }
            },
          }),
        },
        modelHost: scripted((turn) =>
          turn === 1
            ? { action: { bindingId: 'desk', action: 'here', arguments: { text: 'how many?' }, summary: 'Look' } }
            : { status: 'completed', output: { stars: 7 } },
        ),
      })
      await install(api, {
        manifest: { skillRequirements: [], authority: { maximumRisk: 'read', maxConcurrentRuns: 1 } },
      })
      const put = { binding: bindingOf({ allowedActions: ['here'], credentials: {}, maximumRisk: 'read' }), ...BY }
      const bound = await api.put('/agent-deployments/ana/skill-bindings/desk', { ...put, expectedRevision: 0 })
      expect([bound.status, bound.body.error]).toEqual([201, undefined])
      const { run } = (await api.post('/agent-runs', RUN)).body
      expect(await reached(api, run.id, 'completed')).toMatchObject({ output: { stars: 7 }, lastAppliedTurn: 2 })
      expect(done).toEqual([{ text: 'how many?' }])
      expect((await api.get(`/action-calls?runId=${run.id}`)).body).toMatchObject([{ status: 'succeeded' }])
      expect((await api.get(`/agent-turns?runId=${run.id}`)).body).toHaveLength(2)
      const { checks } = (await served.call('GET', '/health')).body
      expect(checks).toMatchObject({ model: { status: 'ok' }, workers: { status: 'ok' } })
    },
  )
}

test('health tells of a model whose last call failed', async () => {
  const failing: ModelHost = {
    async propose() {
      throw new ModelFailure('unavailable', 'the model answered 503')
    },
  }
  const { api, served } = await start({ modelHost: failing, agentRunWorkers: workers })
  await install(api)
  const { run } = (await api.post('/agent-runs', RUN)).body
  await reached(api, run.id, 'sleeping')
  await vi.waitFor(
    async () =>
      expect((await served.call('GET', '/health')).body).toMatchObject({
        status: 'degraded',
        checks: { model: { status: 'degraded', detail: 'the model answered 503' } },
      }),
    { timeout: 5000 },
  )
})

test('dynamic workers serve the scopes that are named when asked', async () => {
  const { api } = await start({
    modelHost: scripted(() => ({ status: 'completed' })),
    dynamicAgentRunWorkers: { scopeSource: async () => [SCOPE], pollIntervalMs: 20 },
  })
  await install(api)
  const { run } = (await api.post('/agent-runs', RUN)).body
  expect(await reached(api, run.id, 'completed')).toMatchObject({ attempt: 1 })
})
