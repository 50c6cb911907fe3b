import { expect, test } from 'vitest'
import { BY_KERNEL, makeChange } from '../../src/kernel/change.ts'
import { closeOrphans } from '../../src/kernel/engine/discard.ts'
import { beginTurn } from '../../src/kernel/engine/begin.ts'
import { Heartbeat } from '../../src/kernel/engine/heartbeat.ts'
import { pauseRun, resumeRun } from '../../src/kernel/run-states.ts'
import { cancelRun } from '../../src/kernel/runs/cancel.ts'
import { saveMoved } from '../../src/kernel/runs/save.ts'
import { objectives } from '../../src/kernel/store/objectives.ts'
import { insertRecord, lockRecord, readRecord } from '../../src/kernel/store/records.ts'
import { runs } from '../../src/kernel/store/runs.ts'
import { bench, changeRun, gate, LEASE_MS, NOTHING_AROUND, useModel } from './engine-support.ts'
import { describeStores, objectiveOf } from './support.ts'

const model = useModel()

describeStores('turns of runs that are paused or canceled', (open) => {
  test.each(['pause', 'cancel'])(
    'kernel#56 the turn of a run that is gone by %s ends canceled, its usage charged',
    async (kind) => {
      const it = bench(open(), model())
      const goal = it.goal('Gone')
      model().script(goal, [{ outcome: { status: 'completed', output: { late: true } } }])
      const { id } = await it.create({ goal, budget: { maxTurns: 5, maxInputTokens: 10_000 } })
      const asking = bench({ ...open(), scope: () => it.scope }, model(), {
        model: {
          propose: async (envelope, call) => {
            const reply = await it.parts.model.propose(envelope, call)
            await makeChange(it.context, it.scope, BY_KERNEL, async (made) => {
              const run = await lockRecord(made.tx, runs, it.scope, id)
              await (kind === 'cancel'
                ? cancelRun(made, run, 'Not needed')
                : saveMoved(made, run, pauseRun(run, 'command')))
            })
            return reply
          },
        },
      })
      await asking.work()
      const run = await it.read(id)
      expect(run).toMatchObject({ status: kind === 'cancel' ? 'canceled' : 'paused', budgetReservations: {} })
      expect(run.budgetUsage).toMatchObject({ turns: 1, inputTokens: 100, outputTokens: 10 })
      expect(run.output).toBeUndefined()
      const discardReason = kind === 'cancel' ? 'run_canceled' : 'run_paused'
      expect(await it.turns(id)).toMatchObject([{ status: 'canceled', discardReason }])
      expect(await it.eventTypes(id)).toContain('turn.canceled')
    },
  )

  test('kernel#56 the turn of a run that is paused, and canceled right after, is charged by who asked the model', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Paused and canceled')
    model().script(goal, [{ outcome: { status: 'completed' } }])
    const budget = { maxTurns: 5, maxInputTokens: 10_000 }
    const objective = objectiveOf(open(), { scope: it.scope, status: 'active', budget })
    await insertRecord(open().store.database, objectives, objective)
    const { id } = await it.create({ goal, budget, objectiveId: objective.id })
    const asking = bench({ ...open(), scope: () => it.scope }, model(), {
      model: {
        propose: async (envelope, call) => {
          const reply = await it.parts.model.propose(envelope, call)
          await it.command(id, { kind: 'pause' })
          open().advance(1000)
          await it.command(id, { kind: 'cancel' })
          expect(await it.turns(id)).toMatchObject([{ status: 'running' }])
          return reply
        },
      },
    })
    await asking.work()
    expect(await it.turns(id)).toMatchObject([{ status: 'canceled', discardReason: 'run_canceled' }])
    const { status, budgetUsage, budgetReservations } = await it.read(id)
    expect([status, budgetReservations]).toEqual(['canceled', {}])
    expect(budgetUsage).toMatchObject({ turns: 1, inputTokens: 100, outputTokens: 10 })
    const { budgetAllocations } = await readRecord(open().store.database, objectives, it.scope, objective.id)
    expect(budgetAllocations).toEqual({ [id]: { maxTurns: 1, maxInputTokens: 100 } })
  })

  test('a turn that its run came back to the queue with is closed at once when the run is paused there, and canceled', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Down, guided, paused')
    model().script(goal, [{ status: 503, body: 'busy' }])
    const { id } = await it.create({ goal, budget: { maxTurns: 5 } })
    await it.work()
    open().advance(1000)
    await it.command(id, { kind: 'intervene', instruction: 'Now' })
    await it.command(id, { kind: 'pause' })
    await it.command(id, { kind: 'cancel' })
    expect(await it.turns(id)).toMatchObject([{ status: 'canceled', discardReason: 'run_canceled' }])
    expect(await it.read(id)).toMatchObject({ budgetUsage: { turns: 1 }, budgetReservations: {} })
  })

  test('a turn of a run that was paused long ago and is canceled now is closed at once', async () => {
    const it = bench(open(), model())
    const { id } = await it.create({ goal: it.goal('Paused long ago') })
    const held = await it.claim()
    if (!held) throw new Error('nothing was claimed')
    await beginTurn(it.parts, held, NOTHING_AROUND)
    await it.command(id, { kind: 'pause' })
    open().advance(60_000)
    await it.command(id, { kind: 'cancel' })
    expect(await it.turns(id)).toMatchObject([{ status: 'canceled', discardReason: 'run_canceled' }])
    expect((await it.read(id)).budgetUsage).toMatchObject({ turns: 1 })
  })

  test('a turn of a canceled run whose holder is gone is closed', async () => {
    const it = bench(open(), model())
    const { id } = await it.create({ goal: it.goal('Orphan') })
    const held = await it.claim()
    if (!held) throw new Error('nothing was claimed')
    await beginTurn(it.parts, held, NOTHING_AROUND)
    await it.command(id, { kind: 'cancel' })
    await closeOrphans(it.context)
    expect(await it.turns(id)).toMatchObject([{ status: 'running' }])
    open().advance(60_000)
    await closeOrphans(it.context)
    expect(await it.turns(id)).toMatchObject([{ status: 'canceled', discardReason: 'run_canceled' }])
    expect(await it.read(id)).toMatchObject({ status: 'canceled', lastAppliedTurn: 1, budgetUsage: { turns: 1 } })
  })

  test('a turn whose answer was stored by a holder that is gone is closed and charged when its run is canceled', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Stored')
    const children = [{ key: 'a', goal: it.goal('A child that never is') }]
    model().script(goal, [{ outcome: { fork: { join: 'all', failure: 'wait', children } } }])
    const { id } = await it.create({ goal })
    it.parts.onStep = (step) => {
      if (step === 'stored') throw new Error('killed')
    }
    const held = await it.claim()
    if (!held) throw new Error('nothing was claimed')
    await expect(it.turn(held)).rejects.toThrow('killed')
    await it.command(id, { kind: 'cancel' })
    expect(await it.turns(id)).toMatchObject([{ status: 'canceled', discardReason: 'run_canceled' }])
    expect(await it.read(id)).toMatchObject({ status: 'canceled', lastAppliedTurn: 1, budgetUsage: { turns: 1 } })
  })

  test('a model call ends as soon as its run is paused', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Aborted')
    model().script(goal, () => ({ after: gate().opened, outcome: { status: 'completed' } }))
    const { id } = await it.create({ goal })
    const held = await it.claim()
    if (!held) throw new Error('nothing was claimed')
    const asked = model().held(goal)
    const heartbeat = new Heartbeat(it.context, it.scope, LEASE_MS)
    heartbeat.start(it.kernel.hints)
    const turn = heartbeat.keep(held, () => it.turn(held))
    await asked
    await changeRun(it, id, (run) => pauseRun(run, 'command'))
    expect(await turn).toBe(false)
    heartbeat.stop()
    expect(await it.turns(id)).toMatchObject([
      { status: 'canceled', discardReason: 'run_paused', usage: { estimated: true } },
    ])
    await changeRun(it, id, resumeRun)
    model().script(goal, [{ outcome: { status: 'completed' } }])
    await it.work()
    expect(await it.read(id)).toMatchObject({ status: 'completed', lastAppliedTurn: 2 })
  })
})
