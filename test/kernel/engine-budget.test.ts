import { expect, test } from 'vitest'
import { createModelHost, type ModelHostOptions } from '../../src/kernel/engine/model-host.ts'
import { bench, useModel } from './engine-support.ts'
import { describeStores } from './support.ts'

const model = useModel()
const GO_ON = { outcome: {} }
const DONE = { outcome: { status: 'completed', output: 'done' } }

describeStores('budgets of runs', (open) => {
  test('kernel#30 an exhausted run pauses without an error; a raised budget lets it go on', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Two turns')
    model().script(goal, (_, request) => (request < 2 ? GO_ON : DONE))
    const { id } = await it.create({ goal, budget: { maxTurns: 2 } })
    expect(await it.work()).toBe(3)
    const paused = await it.read(id)
    expect(paused).toMatchObject({
      status: 'paused',
      pauseReason: 'budget',
      budgetState: 'exhausted',
      budgetUsage: { turns: 2, attempts: 3, inputTokens: 200, outputTokens: 20 },
      budgetAdmission: { reason: 'reservation_exceeds_remaining', dimension: 'maxTurns', required: 1, remaining: 0 },
      budgetReservations: {},
    })
    expect(paused.error).toBeUndefined()
    await it.command(id, { kind: 'resume', budgetTopUp: { maxTurns: 1 } })
    await it.work()
    const done = await it.read(id)
    expect(done).toMatchObject({ status: 'completed', budgetUsage: { turns: 3 } })
    expect(done.budgetAdmission).toBeUndefined()
    expect(model().asked(goal)).toHaveLength(3)
  })

  test('kernel#29 a warning at 800 permille, and at the limit; each is told once', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Warned')
    model().script(goal, (_, request) => (request < 4 ? GO_ON : DONE))
    const { id } = await it.create({ goal, budget: { maxTurns: 5 } })
    await it.work()
    const told = (await it.events(id)).filter(({ eventType }) => /budget\.(warning|exhausted)/.test(eventType))
    expect(told.map(({ eventType, payload }) => [eventType, payload])).toEqual([
      ['budget.warning', { dimension: 'maxTurns', limit: 5, used: 4 }],
      ['budget.exhausted', { dimension: 'maxTurns', limit: 5, used: 5 }],
    ])
  })

  test('kernel#31 a turn that ends the run exactly at the limit is honoured', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Just enough')
    model().script(goal, [DONE])
    const { id } = await it.create({ goal, budget: { maxTurns: 1, maxOutputTokens: 10 } })
    await it.work()
    expect(await it.read(id)).toMatchObject({ status: 'completed', output: 'done', budgetState: 'exhausted' })
  })

  test('what a turn may use is set aside before the model is asked, and settled after', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Reserved')
    const seen: unknown[] = []
    model().script(goal, [DONE])
    const { id } = await it.create({ goal, budget: { maxTotalTokens: 2000, maxDurationMs: 1000 } })
    it.parts.onStep = (step) => void (step === 'begun' && seen.push(it.read(id)))
    await it.work()
    const [before] = await Promise.all(seen)
    const [turn] = await it.turns(id)
    expect(before).toMatchObject({
      budgetReservations: { [turn?.id ?? '']: { usage: { turns: 1, durationMs: 1000 } } },
    })
    expect(await it.eventTypes(id)).toEqual([
      'run.created',
      'run.claimed',
      'budget.reserved',
      'budget.reservation_reconciled',
      'run.transitioned',
    ])
  })

  test('a run whose input alone is more than is left pauses before the model is asked', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Long input')
    const { id } = await it.create({ goal, budget: { maxInputTokens: 50 } })
    await it.work()
    expect(await it.read(id)).toMatchObject({
      status: 'paused',
      budgetAdmission: { reason: 'hosted_input_preflight', dimension: 'maxInputTokens', remaining: 50 },
    })
    expect(model().asked(goal)).toEqual([])
    expect(await it.turns(id)).toEqual([])
  })

  /** Of 100 tokens in and 10 out, as the scripted model counts. */
  const priced: ModelHostOptions['price'] = (name, { inputTokens, outputTokens }) =>
    name === 'priced' ? inputTokens * 3 + outputTokens * 15 : undefined

  const benchWith = (price?: ModelHostOptions['price'], name = 'priced') => {
    const { baseUrl } = model()
    return bench(open(), model(), { model: createModelHost({ baseUrl, model: name, ...(price && { price }) }) })
  }

  test('a budget in dollars counts the tokens of each turn at their price, and pauses when it is used up', async () => {
    const it = benchWith(priced)
    const goal = it.goal('Priced')
    model().script(goal, [GO_ON])
    const { id } = await it.create({ goal, budget: { maxCostMicros: 20_000 } })
    await it.work()
    const run = await it.read(id)
    const turns = await it.turns(id)
    expect(turns.map(({ usage }) => usage.costMicros)).toEqual(turns.map(() => 450))
    expect(run).toMatchObject({
      status: 'paused',
      pauseReason: 'budget',
      budgetUsage: { costMicros: 450 * turns.length },
      budgetAdmission: { dimension: 'maxCostMicros', remaining: 20_000 - 450 * turns.length },
    })
    // What a turn may cost at most is set aside, as long as so much is left.
    const reserved = (await it.events(id)).find(({ eventType }) => eventType === 'budget.reserved')
    expect(reserved?.payload).toMatchObject({ reservation: turns[0]?.id, usage: { costMicros: 20_000 } })
  })

  test('what the gateway tells of a call wins over the price, and a price of nothing is one', async () => {
    const it = benchWith(priced)
    const goal = it.goal('Told')
    const costs = ['0.00003', '0.0000001', '0', 'much']
    model().script(goal, (_, request) => {
      const headers = { 'x-mem-cost': costs[request] ?? '' }
      return request < 3 ? { outcome: {}, headers } : { outcome: { status: 'completed' }, headers }
    })
    const { id } = await it.create({ goal, budget: { maxCostMicros: 1_000_000 } })
    await it.work()
    expect((await it.turns(id)).map(({ usage }) => usage.costMicros)).toEqual([30, 1, 0, 450])
    expect(await it.read(id)).toMatchObject({ status: 'completed', budgetUsage: { costMicros: 481 } })
  })

  test('a run with a budget in dollars asks a model without a price once, then waits for a person', async () => {
    const it = benchWith(priced, 'unheard-of')
    const goal = it.goal('Unpriced')
    model().script(goal, [GO_ON])
    const { id } = await it.create({ goal, budget: { maxCostMicros: 1000, maxTurns: 9 } })
    await it.work()
    const closed = {
      status: 'paused',
      pauseReason: 'budget',
      budgetState: 'exhausted',
      budgetUsage: { turns: 1 },
      budgetAdmission: { dimension: 'maxCostMicros', required: 1, remaining: 0 },
    }
    const paused = await it.read(id)
    expect(paused).toMatchObject(closed)
    expect(paused.budgetUsage).not.toHaveProperty('costMicros')
    const [turn] = await it.turns(id)
    expect(turn?.usage).not.toHaveProperty('costMicros')
    const told = (await it.events(id)).filter(({ eventType }) => /exhausted|run.paused/.test(eventType))
    expect(told.map(({ summary }) => summary)).toEqual(Array(2).fill(expect.stringContaining('is not known')))

    await it.command(id, { kind: 'resume' })
    expect(await it.read(id)).toMatchObject({ status: 'queued', budgetState: 'active' })
    await it.work()
    expect(await it.read(id)).toMatchObject({ ...closed, budgetUsage: { turns: 2 } })
    expect(model().asked(goal)).toHaveLength(2)
  })

  test('a run whose cost is not known hands on nothing of its budget in dollars', async () => {
    const it = benchWith()
    const goal = it.goal('Fork unpriced')
    const fork = {
      join: 'all',
      failure: 'wait',
      children: [{ key: 'a', goal: 'Nobody', budget: { maxCostMicros: 1 } }],
    }
    model().script(goal, [{ outcome: { fork } }])
    const { id } = await it.create({ goal, budget: { maxCostMicros: 1000 } })
    await it.work()
    const { pendingResults, budgetAllocations } = await it.read(id)
    expect(pendingResults).toMatchObject([{ status: 'refused', error: expect.stringContaining('maxCostMicros') }])
    expect(budgetAllocations).toEqual({})
  })

  test('without a budget in dollars a model needs no price', async () => {
    const it = benchWith()
    const goal = it.goal('No dollars')
    model().script(goal, (_, request) => (request < 2 ? GO_ON : DONE))
    const { id } = await it.create({ goal, budget: { maxTurns: 3 } })
    await it.work()
    expect(await it.read(id)).toMatchObject({ status: 'completed', budgetUsage: { turns: 3 } })
  })
})
