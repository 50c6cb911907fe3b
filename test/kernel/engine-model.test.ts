import { expect, test } from 'vitest'
import { createModelHost } from '../../src/kernel/engine/model-host.ts'
import { renewLease } from '../../src/kernel/store/run-leases.ts'
import { bench, gate, LEASE_MS, useModel, type Bench } from './engine-support.ts'
import { describeStores } from './support.ts'

const model = useModel()

describeStores('models', (open) => {
  const waitUntil = async (it: Bench, id: string): Promise<number> => {
    const { wakeCondition, updatedAt } = await it.read(id)
    return Date.parse(wakeCondition?.wakeAt ?? '') - Date.parse(updatedAt)
  }

  test('kernel#52 a model that is down: 5, 10, 20, 40, 40 s and up to 20 % more, the same turn, then success', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Down')
    model().script(goal, (_, request) =>
      request < 5 ? { status: 503, body: 'busy' } : { outcome: { status: 'completed' } },
    )
    const { id } = await it.create({ goal })
    const waits: number[] = []
    for (let attempt = 1; attempt <= 5; attempt++) {
      const held = await it.claim()
      if (!held) throw new Error('nothing was claimed')
      const lease = { fencingToken: held.fencingToken, now: open().store.now(), leaseMs: LEASE_MS }
      for (let beat = 0; beat < 5; beat++) await renewLease(open().store.database, it.scope, id, lease)
      await it.turn(held)
      waits.push(await waitUntil(it, id))
      const error = { code: 'model_unavailable', message: expect.stringContaining('503') }
      expect(await it.turns(id)).toMatchObject([{ status: 'running', error, usage: { hostAttempts: attempt } }])
      open().advance(waits.at(-1) ?? 0)
      expect(await it.claim()).toBeUndefined()
      await it.wake()
    }
    expect(waits).toEqual([5500, 11_000, 22_000, 44_000, 44_000])
    await it.work()
    expect(await it.read(id)).toMatchObject({ status: 'completed', lastAppliedTurn: 1 })
    const [turn] = await it.turns(id)
    expect(turn).toMatchObject({ status: 'completed', usage: { hostAttempts: 6 } })
    expect(turn?.error).toBeUndefined()
    expect(
      new Set(
        model()
          .asked(goal)
          .map(({ envelope }) => envelope.invocationId),
      ).size,
    ).toBe(1)
    const retries = (await it.events(id)).filter(({ eventType }) => eventType === 'turn.retry_scheduled')
    expect(retries.map(({ payload }) => payload?.['hostAttempt'])).toEqual([1, 2, 3, 4, 5])
  })

  test('a key that is a mere word, as servers without keys are given, changes no answer', async () => {
    const { baseUrl } = model()
    const host = createModelHost({ baseUrl, model: 'scripted', apiKey: 'none' })
    const it = bench(open(), model(), { model: host })
    const goal = it.goal('Speak')
    model().script(goal, [{ outcome: { status: 'completed', output: { wind: 'none at all' } } }])
    const { id } = await it.create({ goal })
    await it.work()
    expect(await it.read(id)).toMatchObject({ status: 'completed', output: { wind: 'none at all' } })
  })

  test.each([
    ['120', 120_000],
    ['9999', 600_000],
  ])('kernel#53 Retry-After: %s is respected, up to 600 s', async (seconds, expected) => {
    const it = bench(open(), model())
    const goal = it.goal('Wait')
    model().script(goal, [{ status: 429, headers: { 'retry-after': seconds } }])
    const { id } = await it.create({ goal })
    await it.work()
    expect(await waitUntil(it, id)).toBe(expected)
  })

  test('kernel#53 20 failures in a row pause the run; resuming it works', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Long down')
    model().script(goal, (_, request) => (request < 21 ? { status: 500 } : { outcome: { status: 'completed' } }))
    const { id } = await it.create({ goal })
    for (let attempt = 1; attempt <= 20; attempt++) {
      await it.work()
      open().advance(48_000)
    }
    expect(await it.work()).toBe(0)
    expect(await it.read(id)).toMatchObject({
      status: 'paused',
      pauseReason: 'model_unavailable',
      pausedFrom: 'queued',
    })
    expect(model().asked(goal)).toHaveLength(20)
    await it.command(id, { kind: 'resume' })
    await it.work()
    expect(await waitUntil(it, id)).toBe(5500)
    open().advance(5500)
    await it.work()
    expect(await it.read(id)).toMatchObject({ status: 'completed', lastAppliedTurn: 1 })
  })

  test('a model that nobody listens for is down, and its key is in no error', async () => {
    const { baseUrl } = model()
    const it = bench(open(), { ...model(), baseUrl: baseUrl.replace(/:\d+$/, ':1') })
    const { id } = await it.create({ goal: it.goal('Nobody') })
    await it.work()
    expect(await it.read(id)).toMatchObject({ status: 'sleeping' })
    expect(JSON.stringify(await it.events(id))).not.toContain('key-of-the-model')
  })

  test('kernel#54 malformed twice, then good: two repairs in one turn, with the errors shown', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Malformed')
    model().script(goal, (_, request) => {
      if (request === 0) return { malformed: '{"summary": ' }
      return request === 1 ? { outcome: { status: 'sleeping' } } : { outcome: { status: 'completed', output: 'good' } }
    })
    const { id } = await it.create({ goal })
    expect(await it.work()).toBe(1)
    expect(await it.read(id)).toMatchObject({ status: 'completed', output: 'good' })
    expect(await it.turns(id)).toMatchObject([{ usage: { repairAttempts: 2, hostAttempts: 1, inputTokens: 300 } }])
    expect(
      model()
        .asked(goal)
        .map(({ envelope }) => envelope.repair?.errors),
    ).toEqual([
      undefined,
      ['the arguments of submit_agent_turn are no JSON'],
      ['wakeCondition: is required with status sleeping'],
    ])
    expect(await it.eventTypes(id)).toContain('turn.repaired')
  })

  test.each([
    ['text instead of a call', { text: 'I think…' }],
    ['a wrong invocationId', { outcome: { invocationId: 'another' } }],
    ['two proposals', { outcome: { runbookCall: { entrypoint: 'a' }, action: { bindingId: 'b' } } }],
    ['a secret in the plan', { outcome: { plan: { apiKey: 'x' } } }],
  ])('kernel#54 three times %s: the run failed with invalid_model_output', async (_name, answer) => {
    const it = bench(open(), model())
    const goal = it.goal('Never good')
    model().script(goal, [answer])
    const { id } = await it.create({ goal })
    expect(await it.work()).toBe(1)
    expect(await it.read(id)).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_model_output' },
      lastAppliedTurn: 1,
    })
    expect(await it.turns(id)).toMatchObject([{ status: 'failed', error: { code: 'invalid_model_output' } }])
    expect(model().asked(goal)).toHaveLength(3)
    expect(await it.eventTypes(id)).toEqual(['run.created', 'run.claimed', 'turn.failed', 'run.transitioned'])
  })

  test.each([401, 400, 302])('kernel#55 %i from the model: the run failed at once', async (status) => {
    const it = bench(open(), model())
    const goal = it.goal('Refused')
    model().script(goal, [{ status, headers: { location: '/' }, body: 'Incorrect API key: key-of-the-model' }])
    const { id } = await it.create({ goal })
    expect(await it.work()).toBe(1)
    const run = await it.read(id)
    expect(run).toMatchObject({ status: 'failed', error: { code: 'model_rejected' } })
    expect(JSON.stringify([run, await it.turns(id), await it.events(id)])).not.toContain('key-of-the-model')
    expect(model().asked(goal)).toHaveLength(1)
  })

  test('kernel#57 the duration budget ends the call in time; absent usage is estimated and marked', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Slow')
    model().script(goal, () => ({ after: gate().opened, outcome: {} }))
    const { id } = await it.create({ goal, budget: { maxDurationMs: 40 } })
    await it.work()
    const run = await it.read(id)
    expect(run).toMatchObject({
      status: 'paused',
      pauseReason: 'budget',
      budgetState: 'exhausted',
      budgetUsage: { durationMs: 40 },
      budgetAdmission: { dimension: 'maxDurationMs', remaining: 0 },
    })
    const [turn] = await it.turns(id)
    expect(turn).toMatchObject({ status: 'canceled', discardReason: 'duration_budget', usage: { estimated: true } })
    expect(turn?.usage.inputTokens).toBeGreaterThan(0)
  })

  test('kernel#57 usage that a provider does not name is estimated and marked', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Unnamed')
    model().script(goal, [{ outcome: { status: 'completed' }, usage: null }])
    const { id } = await it.create({ goal })
    await it.work()
    const [turn] = await it.turns(id)
    expect(turn?.usage).toMatchObject({ estimated: true })
    expect(turn?.usage.inputTokens).toBeGreaterThan(100)
    expect((await it.read(id)).budgetUsage.inputTokens).toBe(turn?.usage.inputTokens)
  })

  test('the request: one forced function with a strict schema, tokens as reserved, the key in the header alone', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Wire')
    model().script(goal, [{ outcome: { status: 'completed' } }])
    await it.create({ goal, budget: { maxOutputTokens: 77 } })
    await it.work()
    const [request] = model().asked(goal)
    expect(request).toMatchObject({ maxTokens: 77, tool: { name: 'submit_agent_turn', strict: true } })
    expect(request?.headers.authorization).toBe('Bearer key-of-the-model')
    expect(request?.envelope).toMatchObject({ goal, run: { turn: 1, owner: { type: 'agent', id: 'ana' } } })
  })
})
