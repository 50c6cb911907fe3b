import { afterEach, expect, test } from 'vitest'
import { Engine, type RunWorkers } from '../../src/kernel/engine/engine.ts'
import type { Scope } from '../../src/kernel/model/fields.ts'
import { listWorkers } from '../../src/kernel/store/workers.ts'
import { bench, gate, useModel, type Bench } from './engine-support.ts'
import { faultyStore } from './faulty-store.ts'
import { describeStores } from './support.ts'

const model = useModel()
const DONE = { outcome: { status: 'completed', output: 'done' } }

describeStores('engines', (open) => {
  const started: Engine[] = []
  afterEach(async () => {
    for (const engine of started.splice(0)) await engine.stop({ graceMs: 0 })
  })
  const start = async (it: Bench, workers: RunWorkers, limit = 8): Promise<Engine> => {
    const engine = new Engine(it.context, it.kernel.hints, {
      modelHost: it.parts.model,
      workerConcurrencyLimit: limit,
      runWorkers: [{ pollIntervalMs: 20, maxActivePerAgent: 0, ...workers }],
    })
    started.push(engine)
    await engine.start()
    return engine
  }
  const ended = async (it: Bench, id: string): Promise<void> => {
    await expect.poll(async () => (await it.read(id)).status).toBe('completed')
  }

  test('runs are worked on as they come, with no more than the limit at once', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Many')
    let active = 0
    let most = 0
    const host = it.parts.model
    it.parts.model = {
      propose: async (envelope, call) => {
        most = Math.max(most, ++active)
        const reply = await host.propose(envelope, call)
        active--
        return reply
      },
    }
    const { opened, open: letGo } = gate()
    model().script(goal, (envelope) => {
      if (envelope.run.turn === 1) return { after: opened, outcome: {} }
      return envelope.run.turn < 3 ? { outcome: {} } : DONE
    })
    await start(it, { scopes: [it.scope], concurrency: 6 }, 3)
    const made = await Promise.all(Array.from({ length: 10 }, () => it.create({ goal })))
    await expect.poll(() => model().asked(goal).length).toBe(3)
    letGo()
    for (const { id } of made) await ended(it, id)
    expect(model().asked(goal)).toHaveLength(30)
    expect(most).toBe(3)
  })

  test('kernel#46 two engines on one store never hold one run at the same time', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Two engines')
    const held = new Set<string>()
    const doubled: string[] = []
    const other = bench({ ...open(), scope: () => it.scope }, model())
    model().script(goal, (envelope) => (envelope.run.turn < 4 ? { outcome: {} } : DONE))
    const host = it.parts.model
    it.parts.model = {
      propose: async (envelope, call) => {
        const { id } = envelope.run
        if (held.has(id)) doubled.push(id)
        held.add(id)
        const reply = await host.propose(envelope, call)
        held.delete(id)
        return reply
      },
    }
    other.parts.model = it.parts.model
    await start(it, { scopes: [it.scope], concurrency: 4 })
    await start(other, { scopes: [it.scope], concurrency: 4 })
    const made = await Promise.all(Array.from({ length: 12 }, () => it.create({ goal })))
    for (const { id } of made) await ended(it, id)
    expect(doubled).toEqual([])
    expect(model().asked(goal)).toHaveLength(48)
    for (const { id } of made) expect(await it.read(id)).toMatchObject({ attempt: 4, lastAppliedTurn: 4 })
  })

  test('kernel#61 stop in a model call: the run can be claimed at once, and goes on with the same turn', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Stopped')
    model().script(goal, () => ({ after: gate().opened, outcome: {} }))
    const engine = await start(it, { scopes: [it.scope] })
    const asked = model().held(goal)
    const { id } = await it.create({ goal })
    await asked
    await engine.stop({ graceMs: 0 })
    expect(await it.read(id)).toMatchObject({ status: 'running', attempt: 1 })
    model().script(goal, [DONE])
    const held = await it.claim()
    expect(held).toMatchObject({ fencingToken: 2, run: { id, attempt: 2 } })
    if (held) await it.turn(held)
    expect(await it.read(id)).toMatchObject({ status: 'completed', lastAppliedTurn: 1 })
    expect(await it.turns(id)).toHaveLength(1)
  })

  test('kernel#61 what is under way when the engine stops may end', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Graceful')
    const { opened, open: letGo } = gate()
    model().script(goal, () => ({ after: opened, outcome: { status: 'completed' } }))
    const engine = await start(it, { scopes: [it.scope] })
    const asked = model().held(goal)
    const { id } = await it.create({ goal })
    await asked
    const stopped = engine.stop()
    letGo()
    await stopped
    expect((await it.read(id)).status).toBe('completed')
  })

  test('a run that is paused, guided or canceled during its call is left at once', async () => {
    const it = bench(open(), model())
    await start(it, { scopes: [it.scope], concurrency: 4 })
    for (const [kind, reason] of [
      ['pause', 'run_paused'],
      ['cancel', 'run_canceled'],
      ['intervene', 'newer_guidance'],
    ] as const) {
      const goal = it.goal(kind)
      model().script(goal, (_, request) =>
        request === 0 ? { after: gate().opened, outcome: {} } : { outcome: { status: 'completed' } },
      )
      const asked = model().held(goal)
      const { id } = await it.create({ goal })
      await asked
      await it.command(id, { kind, ...(kind === 'intervene' && { instruction: 'Stop that' }) })
      await expect.poll(async () => (await it.turns(id))[0]?.discardReason).toBe(reason)
      if (kind === 'intervene') await ended(it, id)
    }
  })

  test('scopes come and go with their source; pools show themselves', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Dynamic')
    model().script(goal, [DONE])
    let scopes: Scope[] = []
    await start(it, { scopeSource: () => scopes, reconcileMs: 20, runKinds: ['agent_work'], concurrency: 2 })
    const { id } = await it.create({ goal })
    expect(await listWorkers(open().store.database, it.scope, 0)).toEqual([])
    scopes = [it.scope]
    await ended(it, id)
    expect(await listWorkers(open().store.database, it.scope, 0)).toMatchObject([
      { kind: 'run', runKinds: ['agent_work'], concurrency: 2, limits: { agent: 0, owner: 0 } },
    ])
    scopes = []
  })

  test('the clock of the store is compared as long as the engine works', async () => {
    const it = bench(open(), model())
    const { opened, open: compared } = gate()
    const store = { ...it.context.store, synchronize: async () => compared() }
    const context = { ...it.context, store }
    const engine = new Engine(context, it.kernel.hints, { modelHost: it.parts.model })
    started.push(engine)
    await engine.start()
    await expect(opened).resolves.toBeUndefined()
  })

  test('a fault of the server is told without its cause, and the run waits longer with each; the turn is gone on with', async () => {
    let faults = 3 * 2 // a turn that could not be stored and applied at once is tried to be stored alone
    const isHit = (sql: string): boolean => /UPDATE kernel_turns\s+SET .*outcome = /.test(sql) && faults-- > 0
    const it = bench({ ...open(), store: faultyStore(open().store, isHit) }, model())
    const goal = it.goal('Fault')
    model().script(goal, () => DONE)
    await start(it, { scopes: [it.scope] })
    const { id } = await it.create({ goal })
    const told = async () => (await it.events(id)).filter(({ eventType }) => eventType === 'turn.failed')
    for (const [count, wait] of [5000, 10_000, 20_000].entries()) {
      await expect.poll(async () => (await told()).length).toBe(count + 1)
      const { status, queueEnteredAt, availableAt, leaseOwner } = await it.read(id)
      expect([status, leaseOwner]).toEqual(['queued', undefined])
      const waits = Date.parse(availableAt) - Date.parse(queueEnteredAt)
      expect(waits).toBeGreaterThanOrEqual(wait)
      expect(waits).toBeLessThanOrEqual(wait * 1.2)
      open().advance(waits)
    }
    await ended(it, id)
    const [turn, ...others] = await it.turns(id)
    expect([turn?.status, others]).toEqual(['completed', []])
    for (const event of await told()) {
      expect(event).toMatchObject({ severity: 'error', turnId: turn?.id, payload: { code: 'internal_error' } })
      expect(JSON.stringify(event)).not.toContain('the disk is broken')
    }
  })

  test('kernel#45 the attempt limit: the next claim pauses', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Attempts')
    model().script(goal, [{ outcome: {} }])
    const { id } = await it.create({ goal, budget: { maxAttempts: 2 } })
    expect(await it.work()).toBe(2)
    expect(await it.read(id)).toMatchObject({
      status: 'paused',
      pauseReason: 'budget',
      budgetState: 'exhausted',
      attempt: 2,
    })
  })
})
