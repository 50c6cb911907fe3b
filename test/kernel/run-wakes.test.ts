import { expect, test } from 'vitest'
import type { WakeCondition } from '../../src/kernel/model/run.ts'
import { addResult } from '../../src/kernel/runs/results.ts'
import { signalRuns, wakeDueRuns } from '../../src/kernel/runs/wake.ts'
import { describeKernels, openKernel } from './api.ts'
import { RunBench } from './runs-support.ts'
import { fixture, openStore, runOf } from './support.ts'

describeKernels('waking runs', (open) => {
  const bench = (): RunBench => new RunBench(open())

  const waiting = (desk: RunBench, wakeCondition: WakeCondition) =>
    desk.put({ status: wakeCondition.type === 'timer' ? 'sleeping' : 'waiting_for_event', wakeCondition })

  test('kernel#59 one signal wakes 100 runs once each; repeated it wakes none, another does', async () => {
    const desk = bench()
    const wake: WakeCondition = { type: 'event', reference: 'mail' }
    const waiters = []
    for (let i = 0; i < 100; i++) waiters.push(await waiting(desk, wake))
    const other = await waiting(desk, { type: 'event', reference: 'post' })
    const send = (id: string) =>
      signalRuns(desk.open.kernel.context, desk.scope, { id, type: 'event', reference: 'mail' })
    expect(await send('s1')).toBe(100)
    expect(await send('s1')).toBe(0)
    expect((await desk.read(other.id)).status).toBe('waiting_for_event')
    const [first] = waiters
    expect(await desk.read(first?.id ?? '')).toMatchObject({ status: 'queued', lastWakeSignalId: 's1' })
    const feed = await desk.api.get('/activity?eventType=run.woken&limit=100&includeDetails=true')
    expect(feed.body.items).toHaveLength(100)
    expect(feed.body.items[0].payload).toEqual({ signalId: 's1', wakeType: 'event', reference: 'mail' })
    const again = await waiting(desk, wake)
    expect(await send('s2')).toBe(1)
    expect((await desk.read(again.id)).status).toBe('queued')
  })

  test('a signal that woke a run is spent for it, also when it waits anew', async () => {
    const desk = bench()
    const run = await waiting(desk, { type: 'event' })
    const { context } = desk.open.kernel
    const signal = { id: 's1', type: 'event' as const }
    const both = await Promise.all([1, 2].map(() => signalRuns(context, desk.scope, signal)))
    expect(new Set(both)).toEqual(new Set([0, 1]))
    await desk.command(run.id, 'cancel')
    expect(await signalRuns(context, desk.scope, { ...signal, id: 's2' })).toBe(0)
  })

  test('kernel#60 a predicate that does not match leaves a run asleep; parts that are not set match anything', async () => {
    const desk = bench()
    const signal = (payload: Record<string, unknown>, id: string, reference = 'mail') =>
      signalRuns(desk.open.kernel.context, desk.scope, { id, type: 'event', reference, payload })
    const picky = await waiting(desk, { type: 'event', reference: 'mail', predicate: { folder: 'in', flags: ['new'] } })
    expect(await signal({ folder: 'out', flags: ['new'] }, 's1')).toBe(0)
    expect(await signal({ folder: 'in' }, 's2')).toBe(0)
    expect(await signal({ folder: 'in', flags: ['new'] }, 's3', 'post')).toBe(0)
    expect((await desk.read(picky.id)).status).toBe('waiting_for_event')
    expect(await signal({ folder: 'in', flags: ['new'], size: 3 }, 's4')).toBe(1)
    await waiting(desk, { type: 'event' })
    expect(await signal({}, 's5', 'whatever')).toBe(1)
    await waiting(desk, { type: 'event', wakeAt: desk.open.at(1000) })
    expect(await signal({}, 's6')).toBe(0)
    desk.open.advance(1000)
    expect(await signal({}, 's7')).toBe(1)
  })

  test('kernel#60 an overdue timer fires after a restart; one in the future does not', async () => {
    const desk = bench()
    const due = await waiting(desk, { type: 'timer', wakeAt: desk.open.at(1000) })
    const later = await waiting(desk, { type: 'timer', wakeAt: desk.open.at(10_000) })
    const paused = await waiting(desk, { type: 'timer', wakeAt: desk.open.at(1000) })
    await desk.command(paused.id, 'pause')
    expect(await wakeDueRuns(desk.open.kernel.context)).toBe(0)
    desk.open.advance(5000)
    const restarted = open().place.driver === 'memory' ? undefined : await openKernel(await openStore(open().place))
    const { context } = (restarted ?? desk.open).kernel
    expect(await wakeDueRuns(context)).toBe(2)
    expect(await wakeDueRuns(context)).toBe(0)
    await restarted?.stop()
    await restarted?.store.close()
    expect(await desk.read(due.id)).toMatchObject({ status: 'queued' })
    expect(await desk.read(later.id)).toMatchObject({ status: 'sleeping' })
    expect(await desk.read(paused.id)).toMatchObject({ status: 'paused', pausedFrom: 'queued' })
  })
})

test('results are bounded: the 32 newest, each of 16 KiB at most', () => {
  const open = fixture()
  let run = runOf(open, { scope: open.scope() })
  for (let i = 0; i < 40; i++) {
    run = addResult(run, {
      kind: 'action',
      id: `c${i}`,
      at: open.at(),
      status: 'succeeded',
      output: 'é'.repeat(20_000),
    })
  }
  expect(run.pendingResults.map(({ id }) => id)).toEqual(Array.from({ length: 32 }, (_, i) => `c${i + 8}`))
  for (const result of run.pendingResults) {
    expect(result).toMatchObject({ kind: 'action', status: 'succeeded', truncated: true })
    expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThanOrEqual(16 * 1024)
  }
})
