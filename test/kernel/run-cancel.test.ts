import { expect, test } from 'vitest'
import { BY_KERNEL, makeChange } from '../../src/kernel/change.ts'
import type { KernelContext } from '../../src/kernel/context.ts'
import type { Run } from '../../src/kernel/model/run.ts'
import { moveRun } from '../../src/kernel/run-states.ts'
import { cancelRun, reconcileCascades } from '../../src/kernel/runs/cancel.ts'
import { saveMoved } from '../../src/kernel/runs/save.ts'
import { grantCallLease, isStopping } from '../../src/kernel/store/call-leases.ts'
import { calls } from '../../src/kernel/store/calls.ts'
import { findRecord, insertRecord, lockRecord } from '../../src/kernel/store/records.ts'
import { listCascades } from '../../src/kernel/store/run-cascades.ts'
import { runs } from '../../src/kernel/store/runs.ts'
import { turns } from '../../src/kernel/store/turns.ts'
import { describeKernels } from './api.ts'
import { faultyStore } from './faulty-store.ts'
import { RunBench, WAITS } from './runs-support.ts'
import { callOf, turnOf } from './support.ts'

/** The same, over a store whose `n`-th write fails. */
function failingAt(context: KernelContext, n: number): KernelContext {
  let writes = 0
  return {
    ...context,
    store: faultyStore(context.store, (sql) => /^\s*(INSERT|UPDATE|DELETE|WITH numbers)/.test(sql) && ++writes === n),
  }
}

describeKernels('cancel', (open) => {
  const bench = (): RunBench => new RunBench(open())

  const change = (desk: RunBench, id: string, fn: (before: Run, now: number) => Run): Promise<unknown> =>
    makeChange(desk.open.kernel.context, desk.scope, BY_KERNEL, async (made) => {
      const before = await lockRecord(made.tx, runs, desk.scope, id)
      return saveMoved(made, before, fn(before, made.now))
    })

  test('kernel#34 canceled while an approval is open, run, call and approval go together, or none of them', async () => {
    const desk = bench()
    const { run, call, approval } = await desk.awaitingApproval()
    const states = async (): Promise<string[]> => [
      (await desk.read(run.id)).status,
      (await desk.readCall(call.id)).status,
      (await desk.readApproval(approval.id)).status,
      ...(await desk.events(run.id)),
    ]
    const cancel = (context: KernelContext) =>
      makeChange(context, desk.scope, BY_KERNEL, async (made) =>
        cancelRun(made, await lockRecord(made.tx, runs, desk.scope, run.id), 'Enough'),
      )
    const before = await states()
    expect(before).toEqual(['waiting_for_approval', 'waiting_for_approval', 'pending'])
    let writes = 1
    for (; ; writes++) {
      const failed = await cancel(failingAt(desk.open.kernel.context, writes)).then(
        () => false,
        () => true,
      )
      if (!failed) break
      expect(await states()).toEqual(before)
    }
    expect(writes).toBeGreaterThan(4)
    expect(await states()).toEqual(['canceled', 'canceled', 'canceled', 'action.canceled', 'run.canceled'])
  })

  test('kernel#35 a cancel reaches grandchildren, the leaves first', async () => {
    const desk = bench()
    const root = await desk.run()
    const children = [await desk.run({ parentRunId: root.id }), await desk.run({ parentRunId: root.id })]
    const leaves = []
    for (const { id } of children) leaves.push(await desk.run({ parentRunId: id }))
    const sleeping = await desk.put({
      parentRunId: children[0]?.id ?? '',
      rootRunId: root.id,
      status: 'sleeping',
      wakeCondition: WAITS.sleeping,
    })
    const { body } = await desk.command(root.id, 'cancel', { summary: 'Not needed' })
    expect(body).toMatchObject({ run: { status: 'canceled' }, event: { eventType: 'run.canceled', runId: root.id } })
    expect((await desk.all()).map(({ status }) => status)).toEqual(Array(6).fill('canceled'))
    const feed = await desk.api.get('/activity?order=asc&eventType=run.canceled&limit=100')
    const order: string[] = feed.body.items.map(({ runId }: { runId: string }) => runId)
    expect(order[0]).toBe(root.id)
    expect(new Set(order.slice(1, 4))).toEqual(new Set([...leaves, sleeping].map(({ id }) => id)))
    expect(new Set(order.slice(4))).toEqual(new Set(children.map(({ id }) => id)))
    expect(feed.body.items[1]).toMatchObject({ actor: { type: 'system', id: 'kernel' }, actorSource: 'kernel' })
  })

  test('kernel#35 a cascade that was killed half-way is finished by the reconciler', async () => {
    const desk = bench()
    const { context } = desk.open.kernel
    const root = await desk.run()
    const child = await desk.put({ parentRunId: root.id, rootRunId: root.id })
    for (let i = 0; i < 120; i++) await desk.put({ parentRunId: child.id, rootRunId: root.id })
    const live = async (): Promise<number> => (await desk.all()).filter(({ status }) => status === 'queued').length
    expect(await live()).toBe(122)
    let commits = 0
    const dying = { ...context, hint: () => void commits++ }
    const { database } = context.store
    const store = {
      ...context.store,
      database: Object.assign(Object.create(database), {
        transaction: (fn: Parameters<typeof database.transaction>[0]) => {
          if (commits === 2) throw new Error('killed')
          return database.transaction(fn)
        },
      }),
    }
    await makeChange({ ...dying, store }, desk.scope, BY_KERNEL, async (made) =>
      cancelRun(made, await lockRecord(made.tx, runs, desk.scope, root.id), 'Enough'),
    )
    expect(await live()).toBe(21)
    expect((await desk.read(child.id)).status).toBe('queued')
    expect(await listCascades(desk.db, desk.scope, 10)).toEqual([root.id])
    expect(await reconcileCascades(context, desk.scope)).toBe(21)
    expect(await live()).toBe(0)
    expect(await listCascades(desk.db, desk.scope, 10)).toEqual([])
    expect(await reconcileCascades(context, desk.scope)).toBe(0)
  })

  test('a circle of runs does not hold a cancel up', async () => {
    const desk = bench()
    const [one, two] = [desk.open.newId(), desk.open.newId()]
    await desk.put({ id: one, parentRunId: two })
    await desk.put({ id: two, parentRunId: one })
    expect((await desk.command(one, 'cancel')).status).toBe(200)
    expect((await desk.read(two)).status).toBe('canceled')
    expect((await desk.api.get(`/agent-runs/${one}/runbook-audit`)).body.children).toMatchObject([
      { run: { id: two }, children: [{ run: { id: one }, cut: 'cycle' }] },
    ])
  })

  test('the end of a parent cancels what it left behind, but not what it handed off', async () => {
    const desk = bench()
    const parent = await desk.run()
    const child = await desk.run({ parentRunId: parent.id })
    const handedOff = await desk.put({ parentRunId: parent.id, rootRunId: parent.id, source: 'handoff' })
    await change(desk, parent.id, (run, now) => moveRun(run, { to: 'running', now }))
    await change(desk, parent.id, (run, now) => moveRun(run, { to: 'completed', now }))
    expect([(await desk.read(child.id)).status, (await desk.read(handedOff.id)).status]).toEqual(['canceled', 'queued'])
    const alone = await desk.run()
    await desk.command(alone.id, 'cancel')
    expect(await listCascades(desk.db, desk.scope, 10)).toEqual([])
  })

  test('ready calls are canceled; who makes a call is told to stop; a turn that nobody works on is closed', async () => {
    const desk = bench()
    const run = await desk.put({
      status: 'waiting_for_dependency',
      wakeCondition: { type: 'action', reference: 'call' },
      pendingInterventions: [
        { id: 'i1', actor: { type: 'user', id: 'mia' }, instruction: 'Go', createdAt: open().at() },
      ],
      humanInterventions: [
        { id: 'h1', kind: 'question', status: 'pending', summary: 'Which?', challenge: [], createdAt: open().at() },
      ],
    })
    const of = { scope: desk.scope, runId: run.id }
    const [ready, running] = [callOf(desk.open, of), callOf(desk.open, { ...of, status: 'running', attempt: 1 })]
    const turn = turnOf(desk.open, of)
    const lease = await desk.db.transaction(async (tx) => {
      await insertRecord(tx, calls, ready)
      await insertRecord(tx, calls, running)
      await insertRecord(tx, turns, turn)
      const now = desk.open.store.now()
      return grantCallLease(tx, desk.scope, running.id, { owner: 'worker', attempt: 1, now, leaseMs: 60_000 })
    })
    const { body } = await desk.command(run.id, 'cancel')
    expect(body.run).toMatchObject({
      status: 'canceled',
      pendingInterventions: [],
      humanInterventions: [{ status: 'canceled' }],
    })
    expect([(await desk.readCall(ready.id)).status, (await desk.readCall(running.id)).status]).toEqual([
      'canceled',
      'running',
    ])
    expect(await isStopping(desk.db, desk.scope, running.id, lease.fencingToken)).toBe(true)
    expect(await isStopping(desk.db, desk.scope, running.id, lease.fencingToken + 1)).toBe(false)
    expect(await findRecord(desk.db, turns, desk.scope, turn.id)).toMatchObject({
      status: 'canceled',
      discardReason: expect.any(String),
    })
    expect(await desk.events(run.id)).toEqual(['action.canceled', 'turn.canceled', 'run.canceled'])
  })

  test('a canceled run is charged for what may have been done, and for the turn that nobody ends; nothing stays set aside', async () => {
    const desk = bench()
    const id = desk.open.newId()
    const of = { scope: desk.scope, runId: id }
    const [ready, ambiguous] = [callOf(desk.open, of), callOf(desk.open, { ...of, status: 'ambiguous' })]
    const turn = turnOf(desk.open, { ...of, usage: { inputTokens: 70, outputTokens: 7, durationMs: 5 } })
    await desk.put({
      id,
      status: 'waiting_for_event',
      wakeCondition: { type: 'human_intervention', reference: 'h1' },
      budget: { maxActions: 5, maxTurns: 5 },
      budgetReservations: Object.fromEntries(
        [
          { id: ready.id, usage: { actions: 1 } },
          { id: ambiguous.id, usage: { actions: 1 } },
          { id: turn.id, usage: { turns: 1, outputTokens: 4096 } },
        ].map((reservation) => [reservation.id, { ...reservation, createdAt: open().at() }]),
      ),
    })
    await desk.db.transaction(async (tx) => {
      await insertRecord(tx, calls, ready)
      await insertRecord(tx, calls, ambiguous)
      await insertRecord(tx, turns, turn)
    })
    await desk.command(id, 'cancel')
    expect(await desk.read(id)).toMatchObject({
      status: 'canceled',
      budgetUsage: { actions: 1, turns: 1, inputTokens: 70, outputTokens: 7, durationMs: 5 },
      lastAppliedTurn: 1,
    })
    expect((await desk.read(id)).budgetReservations).toEqual({})
    expect((await desk.readCall(ambiguous.id)).status).toBe('ambiguous')
  })
})
