import { expect, test } from 'vitest'
import type { Run } from '../../src/kernel/model/run.ts'
import type { WorkerLimits } from '../../src/kernel/store/slots.ts'
import { setSlot } from '../../src/kernel/store/slots.ts'
import { describeKernels } from './api.ts'
import { RunBench, WAITS } from './runs-support.ts'

describeKernels('admission', (open) => {
  const bench = (): RunBench => new RunBench(open())

  const admission = async (desk: RunBench, query = '') => (await desk.api.get(`/agent-runs/admission?${query}`)).body
  const reasons = ({ blocks }: { blocks: { reason: string }[] }): string[] => blocks.map(({ reason }) => reason)

  test('kernel#40 waiting outweighs priority by a point a minute; of equal rank the earlier deadline, none last', async () => {
    const desk = bench()
    await desk.register()
    const old = await desk.run()
    desk.open.advance(6 * 60_000)
    const urgent = await desk.run({ priority: 5 })
    const next = async (): Promise<string | undefined> => {
      await desk.register()
      const report = await admission(desk)
      const claimed = await desk.claim()
      expect(report.run?.id).toBe(claimed?.run.id)
      return claimed?.run.id
    }
    expect([await next(), await next()]).toEqual([old.id, urgent.id])
    const none = await desk.run()
    const late = await desk.run({ deadline: desk.open.at(2000) })
    const early = await desk.run({ deadline: desk.open.at(1000) })
    expect([await next(), await next(), await next()]).toEqual([early.id, late.id, none.id])
    expect(await next()).toBeUndefined()
  })

  test.each([
    ['agent_capacity', { agent: 1 }, {}],
    ['owner_capacity', { owner: 1 }, {}],
    ['objective_capacity', { objective: 1 }, { objectiveId: 'objective' }],
    ['concurrency_key_capacity', { concurrency_key: 1 }, { concurrencyKey: 'nightly' }],
  ] as const)('kernel#41 %s: the numbers of the block', async (reason, limits: Partial<WorkerLimits>, fields) => {
    const desk = bench()
    await desk.register(limits)
    const objective = 'objectiveId' in fields ? { objectiveId: (await desk.objective()).id } : {}
    const first = await desk.run({ ...fields, ...objective })
    const second = await desk.run({ ...fields, ...objective })
    expect(await desk.claim(limits)).toMatchObject({ run: { id: first.id } })
    expect(await desk.claim(limits)).toBeUndefined()
    const report = await admission(desk)
    expect(report.outcome).toBe('backpressured')
    expect(report.blocks).toMatchObject([
      { runId: second.id, reason, active: 1, limit: 1, owner: { type: 'agent', id: 'ana' }, ...fields, ...objective },
      { runId: first.id, reason: 'lease_held', leaseExpiresAt: desk.open.at(30_000) },
    ])
    expect(report).not.toHaveProperty('run')
    desk.open.advance(30_000)
    await desk.register(limits)
    expect(await admission(desk)).toMatchObject({ outcome: 'ready', run: { id: first.id } })
    expect((await admission(desk, `runId=${second.id}`)).outcome).toBe('ready')
  })

  test('kernel#41 an objective bounds its runs and resources itself: the smaller limit counts', async () => {
    const desk = bench()
    await desk.register({ objective: 5 })
    const { id: objectiveId } = await desk.objective({
      executionPolicy: { maximumConcurrentRuns: 2, resourceCapacities: { gpu: 3 } },
    })
    const run = (resourceRequirements?: object) =>
      desk.run({ objectiveId, ...(resourceRequirements && { resourceRequirements }) })
    await run({ gpu: 2, licence: 9 })
    await desk.claim()
    const hungry = await run({ gpu: 2 })
    expect((await admission(desk)).blocks[0]).toMatchObject({
      runId: hungry.id,
      reason: 'resource_capacity',
      resource: 'gpu',
      requested: 2,
      reserved: 2,
      capacity: 3,
    })
    const modest = await run({ gpu: 1 })
    expect(await admission(desk)).toMatchObject({ outcome: 'ready', run: { id: modest.id } })
    expect(await desk.claim()).toMatchObject({ run: { id: modest.id } })
    const third = await run()
    const { blocks } = await admission(desk, `runId=${third.id}`)
    expect(blocks).toMatchObject([{ reason: 'objective_capacity', active: 2, limit: 2 }])
    expect((await admission(desk, `runId=${third.id}&maxActiveForObjective=1`)).blocks[0]).toMatchObject({ limit: 1 })
  })

  test('kernel#42 without a worker no_worker, with one ready, 30 s silent no_worker again', async () => {
    const desk = bench()
    expect((await admission(desk)).outcome).toBe('idle')
    const run = await desk.run()
    expect(await admission(desk)).toMatchObject({
      outcome: 'no_worker',
      blocks: [{ runId: run.id, reason: 'no_worker' }],
      workers: [],
    })
    await desk.register()
    expect(await admission(desk)).toMatchObject({
      outcome: 'ready',
      run: { id: run.id },
      blocks: [],
      workers: [
        { id: 'pool', kind: 'run', runKinds: ['agent_work'], concurrency: 2, active: 0, lastSeenAt: desk.open.at() },
      ],
      evaluatedAt: desk.open.at(),
    })
    expect((await admission(desk, 'kind=conversation')).outcome).toBe('idle')
    await desk.run({ kind: 'conversation' })
    expect((await admission(desk, 'kind=conversation')).outcome).toBe('no_worker')
    desk.open.advance(30_000)
    expect((await admission(desk)).outcome).toBe('no_worker')
  })

  test('kernel#43 a run asked for tells its own reasons; nothing is written', async () => {
    const desk = bench()
    await desk.register()
    const rows = async (): Promise<unknown> => [
      await desk.db.all('SELECT * FROM kernel_runs WHERE scope LIKE $1 ORDER BY id', [`${desk.scope.kind}/%`]),
      await desk.db.all('SELECT * FROM kernel_events ORDER BY scope, position'),
    ]
    const states: [Partial<Run>, string, string][] = [
      [{ status: 'paused', pausedFrom: 'queued', pauseReason: 'command' }, 'paused', 'idle'],
      [{ status: 'completed' }, 'terminal', 'idle'],
      [{ availableAt: desk.open.at(5000) }, 'not_due', 'not_due'],
      ...Object.entries(WAITS).map(([status, wakeCondition]): [Partial<Run>, string, string] => [
        { status: status as Run['status'], wakeCondition },
        'waiting',
        'idle',
      ]),
    ]
    const made = []
    for (const [fields, reason, outcome] of states) made.push({ run: await desk.put(fields), reason, outcome })
    const before = await rows()
    for (const { run, reason, outcome } of made) {
      const report = await admission(desk, `runId=${run.id}`)
      expect([reasons(report), report.outcome, report.run.id]).toEqual([[reason], outcome, run.id])
    }
    expect((await admission(desk)).blocks).toMatchObject([{ reason: 'not_due', readyAt: desk.open.at(5000) }])
    expect((await admission(desk)).nextWakeAt).toBe(desk.open.at(5000))
    expect(await rows()).toEqual(before)
    expect((await desk.api.get('/agent-runs/admission?runId=nobody')).status).toBe(404)
  })

  test('a run asked for tells every reason at once', async () => {
    const desk = bench()
    const run = await desk.run({
      budget: { maxAttempts: 1 },
      availableAt: desk.open.at(1000),
      objectiveId: (await desk.objective()).id,
    })
    await desk.db.transaction((tx) =>
      setSlot(tx, desk.scope, { kind: 'objective', name: run.objectiveId ?? '', capacity: null, closed: true }),
    )
    expect(reasons(await admission(desk, `runId=${run.id}`))).toEqual(['not_due', 'objective_inactive', 'no_worker'])
  })

  test('kernel#44 limits that are not asked for are those of the workers', async () => {
    const desk = bench()
    const own = { agent: 1, owner: 2, objective: 3, concurrency_key: 4 }
    await desk.register(own)
    expect((await admission(desk)).limits).toEqual({
      maxActiveForAgent: 1,
      maxActiveForOwner: 2,
      maxActiveForObjective: 3,
      maxActiveForConcurrencyKey: 4,
    })
    expect((await admission(desk, 'maxActiveForAgent=0&maxActiveForOwner=7')).limits).toMatchObject({
      maxActiveForAgent: 0,
      maxActiveForOwner: 7,
      maxActiveForObjective: 3,
    })
    await desk.register({ agent: 5 }, 'another')
    expect((await admission(desk)).limits).toMatchObject({ maxActiveForAgent: 5, maxActiveForOwner: 0 })
    for (const wrong of ['maxActiveForAgent=-1', 'maxActiveForAgent=1000001', 'maxActiveForAgent=x', 'kind=other']) {
      expect([wrong, (await desk.api.get(`/agent-runs/admission?${wrong}`)).status]).toEqual([wrong, 400])
    }
  })
})

describeKernels(
  'admission with an agent registry',
  (open) => {
    test('kernel#47 a run of an agent that is absent or takes no runs stays queued, and runs once it is there', async () => {
      const desk = new RunBench(open())
      await desk.register()
      const run = await desk.run({ assignedAgentId: 'bo' })
      const block = { runId: run.id, reason: 'agent_unavailable', assignedAgentId: 'bo' }
      const report = async () => (await desk.api.get('/agent-runs/admission')).body
      expect(await report()).toMatchObject({ outcome: 'backpressured', blocks: [block] })
      const set = (closed: boolean) =>
        desk.db.transaction((tx) => setSlot(tx, desk.scope, { kind: 'agent', name: 'bo', capacity: 1, closed }))
      await set(true)
      expect(await report()).toMatchObject({ outcome: 'backpressured', blocks: [block] })
      expect(await desk.claim()).toBeUndefined()
      await set(false)
      expect(await report()).toMatchObject({ outcome: 'ready', run: { id: run.id } })
      expect(await desk.claim()).toMatchObject({ run: { id: run.id } })
    })
  },
  { agents: true },
)
