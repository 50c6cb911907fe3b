import { expect, test } from 'vitest'
import type { Database } from '../../src/database/database.ts'
import { discardTurn } from '../../src/kernel/engine/discard.ts'
import { beginAhead, beginTurn } from '../../src/kernel/engine/begin.ts'
import { Held } from '../../src/kernel/engine/held.ts'
import { ModelFailure } from '../../src/kernel/ports.ts'
import { bench, changeRun, LEASE_MS, NOTHING_AROUND, overlaid, useModel, type Bench } from './engine-support.ts'
import { claimRun, describeStores } from './support.ts'

const model = useModel()

const guide = (it: Bench, id: string, instruction: string): Promise<void> =>
  changeRun(it, id, (run) => ({
    ...run,
    pendingInterventions: [
      ...run.pendingInterventions,
      { id: it.context.newId(), actor: { type: 'user', id: 'eve' }, instruction, createdAt: run.updatedAt },
    ],
  }))

describeStores('turns', (open) => {
  test('kernel#49 sleep with a timer, resume from the checkpoint: exactly two turns', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Sleep')
    const wakeAt = open().at(60_000)
    model().script(goal, [
      { outcome: { status: 'sleeping', checkpoint: { seen: 7 }, wakeCondition: { type: 'timer', wakeAt } } },
      { outcome: { status: 'completed', output: { stars: 7 } } },
    ])
    const { id } = await it.create({ goal })
    expect(await it.work()).toBe(1)
    expect(await it.read(id)).toMatchObject({ status: 'sleeping', wakeCondition: { type: 'timer', wakeAt } })
    expect(await it.work()).toBe(0)
    open().advance(60_000)
    expect(await it.work()).toBe(1)
    expect(await it.read(id)).toMatchObject({
      status: 'completed',
      output: { stars: 7 },
      lastAppliedTurn: 2,
      attempt: 2,
    })
    expect(
      model()
        .asked(goal)
        .map(({ envelope }) => envelope.checkpoint),
    ).toEqual([{}, { seen: 7 }])
    const turns = await it.turns(id)
    expect(turns.map(({ sequence, status, model: name }) => [sequence, status, name])).toEqual([
      [1, 'completed', 'scripted-1'],
      [2, 'completed', 'scripted-1'],
    ])
    expect(await it.eventTypes(id)).toEqual([
      'run.created',
      'run.claimed',
      'run.transitioned',
      'run.woken',
      'run.claimed',
      'run.transitioned',
    ])
  })

  test('kernel#60 an overdue timer fires after a restart', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Overdue')
    const wakeCondition = { type: 'timer', wakeAt: open().at(1000) }
    model().script(goal, [{ outcome: { status: 'sleeping', wakeCondition } }, { outcome: { status: 'completed' } }])
    const { id } = await it.create({ goal })
    await it.work()
    open().advance(3_600_000)
    const again = bench({ ...open(), scope: () => it.scope }, model())
    expect(await again.work()).toBe(1)
    expect((await it.read(id)).status).toBe('completed')
  })

  test('a turn that only goes on gives the run back to the queue', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Steps')
    model().script(goal, [
      { outcome: { checkpoint: { step: 1 }, plan: { next: 'more' } } },
      { outcome: { status: 'failed' } },
    ])
    const { id } = await it.create({ goal })
    expect(await it.work()).toBe(2)
    expect(await it.read(id)).toMatchObject({
      status: 'failed',
      error: { code: 'agent_failed' },
      plan: { next: 'more' },
    })
    expect((await it.eventTypes(id)).filter((type) => type !== 'run.claimed')).toEqual([
      'run.created',
      'run.transitioned',
      'run.yielded',
      'run.transitioned',
    ])
  })

  test('kernel#39 guidance during a turn: output withheld, usage charged, the next turn sees it', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Guided')
    model().script(goal, (_, request) =>
      request === 0
        ? { outcome: { status: 'completed', output: { wrong: true } } }
        : { outcome: { status: 'completed', output: { right: true } } },
    )
    const { id } = await it.create({ goal })
    const held = await it.claim()
    if (!held) throw new Error('nothing was claimed')
    const asking = bench({ ...open(), scope: () => it.scope }, model(), {
      model: {
        propose: async (envelope, call) => {
          const reply = await it.parts.model.propose(envelope, call)
          if (envelope.guidance.length === 0) await guide(it, id, 'Look again')
          return reply
        },
      },
    })
    expect(await asking.turn(held)).toBe(false)
    const between = await it.read(id)
    expect(between).toMatchObject({ status: 'queued', lastAppliedTurn: 1, budgetUsage: { turns: 1, inputTokens: 100 } })
    expect(between.output).toBeUndefined()
    expect(await asking.work()).toBe(1)
    const after = await it.read(id)
    expect(after).toMatchObject({ status: 'completed', output: { right: true }, pendingInterventions: [] })
    expect(after.budgetUsage).toMatchObject({ turns: 2, inputTokens: 200, outputTokens: 20 })
    expect(model().asked(goal)[1]?.envelope.guidance).toMatchObject([{ instruction: 'Look again' }])
    expect(await it.turns(id)).toMatchObject([
      { sequence: 1, status: 'canceled', discardReason: 'newer_guidance', usage: { inputTokens: 100 } },
      { sequence: 2, status: 'completed' },
    ])
  })

  test.each(
    (['cancel', 'pause'] as const).flatMap((kind) =>
      (['unavailable', 'rejected', 'malformed'] as const).map((end) => ({ kind, end })),
    ),
  )(
    'kernel#56 the turn of a run that is gone by $kind while its model is $end ends canceled, its usage charged',
    async ({ kind, end }) => {
      const it = bench(open(), model())
      const { id } = await it.create({ goal: it.goal('Gone'), budget: { maxTurns: 5, maxInputTokens: 10_000 } })
      let asked = 0
      const asking = bench({ ...open(), scope: () => it.scope }, model(), {
        model: {
          propose: async () => {
            if (asked++ === 0) await it.command(id, { kind })
            if (end !== 'malformed') throw new ModelFailure(end, 'not now')
            return { malformed: 'no JSON', usage: { inputTokens: 100, outputTokens: 10 } }
          },
        },
      })
      await asking.work()
      const run = await it.read(id)
      expect(run).toMatchObject({ status: kind === 'cancel' ? 'canceled' : 'paused', budgetReservations: {} })
      expect(run.budgetUsage).toMatchObject({ turns: 1, ...(end === 'malformed' && { inputTokens: 300 }) })
      const discardReason = kind === 'cancel' ? 'run_canceled' : 'run_paused'
      expect(await it.turns(id)).toMatchObject([{ status: 'canceled', discardReason }])
    },
  )

  test('kernel#50 a claim begins the turn with it; not where it has a budget, or was begun before', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Ahead')
    model().script(goal, [{ outcome: { status: 'completed' } }])
    const request = {
      scope: it.scope,
      worker: 'w',
      kinds: ['agent_work' as const],
      leaseMs: LEASE_MS,
      limits: { agent: 0, owner: 0, objective: 0, concurrency_key: 0 },
      knownAgents: false,
      begin: beginAhead,
    }
    const { id } = await it.create({ goal })
    const first = await claimRun(it.context, request)
    const [begun, ...others] = await it.turns(id)
    expect(first?.ahead).toEqual({ turn: begun })
    expect([begun?.status, begun?.sequence, others]).toEqual(['running', 1, []])
    open().advance(LEASE_MS)
    const second = await claimRun(it.context, request)
    expect(second).toMatchObject({ run: { id, attempt: 2 }, fencingToken: 2, recovered: true })
    expect(second?.ahead).toBeUndefined()
    if (second) await it.turn(new Held(second.run, second.fencingToken, open().store.now()))
    expect(await it.turns(id)).toMatchObject([{ id: begun?.id, status: 'completed' }])
    const bounded = await it.create({ goal, budget: { maxTurns: 1 } })
    expect((await claimRun(it.context, request))?.ahead).toBeUndefined()
    expect(await it.turns(bounded.id)).toEqual([])
  })

  test('kernel#56 a stale fencing token writes nothing; the next holder goes on with the same turn', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Stale')
    model().script(goal, [{ outcome: { status: 'completed', output: { by: 'the second' } } }])
    const { id } = await it.create({ goal })
    const first = await it.claim()
    if (!first) throw new Error('nothing was claimed')
    const begun = await beginTurn(it.parts, first, NOTHING_AROUND)
    open().advance(LEASE_MS)
    const second = await it.claim()
    if (!begun || !second) throw new Error('nothing was claimed again')
    expect(second.fencingToken).toBe(first.fencingToken + 1)
    const before = await it.read(id)
    await discardTurn(it.parts, first, begun.turn)
    expect(await it.turn(first)).toBe(false)
    expect(await it.read(id)).toEqual(before)
    await it.turn(second)
    expect(await it.turns(id)).toMatchObject([{ id: begun.turn.id, sequence: 1, status: 'completed' }])
    expect((await it.read(id)).output).toEqual({ by: 'the second' })
  })

  test('kernel#51 a fault inside the last transaction: no change of the run; the retry applies without the model', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Fault')
    model().script(goal, [
      { outcome: { fork: { join: 'all', failure: 'wait', children: [{ key: 'a', goal: it.goal('A child') }] } } },
    ])
    const { id } = await it.create({ goal })
    let isFaulty = true
    const { store } = it.context
    const { database } = store
    const transaction: Database['transaction'] = (fn) =>
      database.transaction(async (tx) => {
        const result = await fn(tx)
        const applied = `SELECT 1 FROM kernel_events WHERE event_type = 'run.transitioned' AND run_id = $1`
        if (isFaulty && (await tx.get(applied, [id]))) throw new Error('power cut')
        return result
      })
    const faulty = { ...it.context, store: { ...store, database: overlaid(database, { transaction }) } }
    const breaking = bench({ ...open(), scope: () => it.scope }, model(), { context: faulty })
    await expect(breaking.work()).rejects.toThrow('power cut')
    const between = await it.read(id)
    expect(between).toMatchObject({ status: 'running', lastAppliedTurn: 0 })
    expect((await it.events()).filter(({ eventType }) => eventType === 'run.created')).toHaveLength(1)
    isFaulty = false
    open().advance(LEASE_MS)
    const held = await it.claim()
    if (!held) throw new Error('nothing was claimed')
    await it.turn(held)
    expect(await it.read(id)).toMatchObject({ status: 'waiting_for_dependency', lastAppliedTurn: 1 })
    expect((await it.events()).filter(({ eventType }) => eventType === 'run.created')).toHaveLength(2)
    expect(model().asked(goal)).toHaveLength(1)
  })
})
