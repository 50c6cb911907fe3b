import { expect, test } from 'vitest'
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
})
