import { expect, test } from 'vitest'
import { BY_KERNEL, makeChange } from '../../src/kernel/change.ts'
import type { Run } from '../../src/kernel/model/run.ts'
import { saveMoved } from '../../src/kernel/runs/save.ts'
import { insertRecord, lockRecord } from '../../src/kernel/store/records.ts'
import { runs } from '../../src/kernel/store/runs.ts'
import { turns } from '../../src/kernel/store/turns.ts'
import { describeKernels } from './api.ts'
import { ANA, RunBench } from './runs-support.ts'
import { turnOf } from './support.ts'

describeKernels('runs', (open) => {
  const bench = (): RunBench => new RunBench(open())

  test('kernel#18 a run is made with its event; a replay has none, whoever sends it', async () => {
    const desk = bench()
    const first = await desk.create({ actor: { type: 'user', id: 'mia' } }, 'one')
    expect(first).toMatchObject({
      status: 201,
      body: {
        run: { status: 'queued', kind: 'agent_work', source: 'manual', attempt: 0, revision: 1, budgetUsage: {} },
        event: {
          eventType: 'run.created',
          actor: { id: 'mia' },
          payload: { status: 'queued', source: 'manual', owner: ANA },
        },
      },
    })
    expect(first.body.run).not.toHaveProperty('pendingResults')
    const again = await desk.create({ actor: { type: 'user', id: 'tom' } }, 'one')
    expect([again.status, again.headers.get('Idempotent-Replay'), Object.keys(again.body)]).toEqual([
      200,
      'true',
      ['run'],
    ])
    expect(again.body.run.id).toBe(first.body.run.id)
    expect((await desk.create({ goal: 'Count the moons' }, 'one')).status).toBe(409)
    expect(await desk.events(first.body.run.id)).toEqual(['run.created'])
  })

  test('a child has the root of its parent; an absent parent or project is 404, one at its end 409', async () => {
    const desk = bench()
    const root = await desk.run()
    const child = await desk.run({ parentRunId: root.id })
    const grandchild = await desk.run({ parentRunId: child.id })
    expect([root.rootRunId, child.rootRunId, grandchild.rootRunId]).toEqual([root.id, root.id, root.id])
    expect(grandchild.parentRunId).toBe(child.id)
    expect((await desk.create({ parentRunId: 'nobody' })).status).toBe(404)
    expect((await desk.create({ projectId: 'nothing' })).status).toBe(404)
    await desk.command(child.id, 'cancel')
    expect(await desk.create({ parentRunId: child.id })).toMatchObject({ status: 409 })
    // what is absent is told of before what does not fit
    expect((await desk.create({ parentRunId: child.id, projectId: 'nothing' })).status).toBe(404)
    const bounded = await desk.run({ budget: { maxTurns: 3 } })
    expect((await desk.create({ parentRunId: bounded.id, objectiveId: 'nothing' })).status).toBe(404)
    for (const wrong of [
      { kind: 'workforce_authoring' },
      { kind: 'work' },
      { source: 'fork' },
      { priority: -1 },
      { concurrencyKey: 'two\nlines' },
      { resourceRequirements: { gpu: 0 } },
      { resourceRequirements: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`r${i}`, 1])) },
      { context: { apiKey: 'x' } },
      { checkpoint: {} },
      { deadline: '2026-11-23' },
      // in UTC they have no year of four digits
      { deadline: '9999-12-31T23:59:59-01:00' },
      { availableAt: '0000-01-01T00:00:00+01:00' },
    ]) {
      expect([wrong, (await desk.create(wrong)).status]).toEqual([wrong, 400])
    }
  })

  test('kernel#26 a run on a draft, paused or retired objective is refused; an active one takes it; an unknown is 404', async () => {
    const desk = bench()
    for (const status of ['draft', 'paused', 'retired']) {
      const { id } = await desk.objective({ status })
      const refused = await desk.create({ objectiveId: id })
      expect([refused.status, refused.body]).toEqual([409, { error: `objective is ${status}` }])
    }
    const { id } = await desk.objective()
    expect((await desk.create({ objectiveId: id })).status).toBe(201)
    expect((await desk.create({ objectiveId: 'unknown' })).status).toBe(404)
  })

  test('kernel#27 runs of an objective that is paused later stay queued until it is active again', async () => {
    const desk = bench()
    await desk.register()
    const objective = await desk.objective()
    const run = await desk.run({ objectiveId: objective.id })
    const set = (status: string, expectedRevision: number) =>
      desk.api.put(`/objectives/${objective.id}`, { expectedRevision, title: 'Stars', goal: 'Know', status })
    const paused = await set('paused', objective.revision)
    expect(await desk.claim()).toBeUndefined()
    expect((await desk.api.get('/agent-runs/admission')).body).toMatchObject({
      outcome: 'backpressured',
      blocks: [{ runId: run.id, reason: 'objective_inactive', objectiveId: objective.id }],
    })
    await set('active', paused.body.revision)
    expect((await desk.api.get('/agent-runs/admission')).body).toMatchObject({ outcome: 'ready', run: { id: run.id } })
    expect(await desk.claim()).toMatchObject({ run: { id: run.id } })
  })

  test('kernel#28 a budgeted objective asks for a budget, gives no more than it has, and the last unit once', async () => {
    const desk = bench()
    const { id: objectiveId } = await desk.objective({ budget: { maxTurns: 10, maxActions: 4 } })
    expect((await desk.create({ objectiveId })).status).toBe(400)
    const first = await desk.run({ objectiveId, budget: { maxTurns: 8, maxActions: 1, maxDurationMs: 1000 } })
    expect(first).toMatchObject({ budget: { maxTurns: 8, maxActions: 1, maxDurationMs: 1000 }, budgetState: 'active' })
    expect(await desk.create({ objectiveId, budget: { maxTurns: 3 } })).toMatchObject({
      status: 409,
      body: { error: 'budget has no room: maxTurns needs 3, 2 is left' },
    })
    await desk.run({ objectiveId, budget: { maxTurns: 1, maxActions: 2 } })
    const racers = await Promise.all([1, 2].map(() => desk.create({ objectiveId, budget: { maxTurns: 1 } })))
    expect(new Set(racers.map(({ status }) => status))).toEqual(new Set([201, 409]))
    const last = racers.find(({ status }) => status === 201)
    expect(last?.body.run.budget).toEqual({ maxTurns: 1, maxActions: 1 })
    const { body } = await desk.api.get(`/objectives/${objectiveId}`)
    expect(Object.keys(body.objective.budgetAllocations)).toHaveLength(3)
  })

  test('a child lives on the budget of its parent, and what it did not use goes back when it ends', async () => {
    const desk = bench()
    const { id: objectiveId } = await desk.objective({ budget: { maxTurns: 10 } })
    const parent = await desk.run({ objectiveId, budget: { maxTurns: 6 } })
    expect((await desk.create({ parentRunId: parent.id, objectiveId })).status).toBe(400)
    const child = await desk.run({ parentRunId: parent.id, objectiveId, budget: { maxTurns: 5 } })
    expect((await desk.read(parent.id)).budgetAllocations).toEqual({ [child.id]: { maxTurns: 5 } })
    expect((await desk.create({ parentRunId: parent.id, budget: { maxTurns: 2 } })).status).toBe(409)
    await desk.command(child.id, 'cancel')
    expect((await desk.read(parent.id)).budgetAllocations).toEqual({ [child.id]: { maxTurns: 0 } })
    await desk.command(parent.id, 'cancel')
    const { body } = await desk.api.get(`/objectives/${objectiveId}`)
    expect(body.objective.budgetAllocations).toEqual({ [parent.id]: { maxTurns: 0 } })
  })

  test('what a run used is charged after its end too: the rest of what was reserved goes back', async () => {
    const desk = bench()
    const parent = await desk.run({ budget: { maxTurns: 9 } })
    const child = await desk.run({ parentRunId: parent.id, budget: { maxTurns: 5 } })
    const reserved = { t1: { id: 't1', usage: { turns: 3 }, createdAt: desk.open.at() } }
    const change = (fn: (run: Run) => Partial<Run>) =>
      makeChange(desk.open.kernel.context, desk.scope, BY_KERNEL, async (made) => {
        const run = await lockRecord(made.tx, runs, desk.scope, child.id)
        return saveMoved(made, run, { ...run, ...fn(run) })
      })
    await change(() => ({ budgetReservations: reserved }))
    await desk.command(child.id, 'cancel')
    expect((await desk.read(parent.id)).budgetAllocations).toEqual({ [child.id]: { maxTurns: 3 } })
    await change(() => ({ budgetReservations: {}, budgetUsage: { turns: 1 } }))
    expect((await desk.read(parent.id)).budgetAllocations).toEqual({ [child.id]: { maxTurns: 1 } })
  })

  test('kernel#12 250 runs are walked by the cursor under inserts and updates: each old run once', async () => {
    const desk = bench()
    const old: string[] = []
    for (let i = 0; i < 250; i++) old.push((await desk.put({ priority: i % 3 })).id)
    const seen: string[] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const page = await desk.api.get(`/agent-runs?limit=60${cursor && `&cursor=${cursor}`}`)
      seen.push(...page.body.map(({ id }: { id: string }) => id))
      await desk.put({ priority: 9 })
      await desk.put()
      const [touched] = seen
      if (touched !== undefined) await desk.command(touched, 'intervene', { instruction: 'Go on' })
      cursor = page.headers.get('X-Next-Cursor')
    }
    expect(new Set(seen).size).toBe(seen.length)
    expect(old.filter((id) => !seen.includes(id))).toEqual([])
  })

  test('kernel#48 q is literal; the newest come first on request; a plain run has all it did unassigned', async () => {
    const desk = bench()
    const goals = ['100% of a_b', '100 of axb', 'Nothing']
    const made = []
    for (const goal of goals) {
      made.push(await desk.run({ goal }))
      desk.open.advance(1)
    }
    const found = async (query: string): Promise<string[]> =>
      (await desk.api.get(`/agent-runs?${query}`)).body.map(({ goal }: { goal: string }) => goal)
    expect(await found(`q=${encodeURIComponent('100%')}`)).toEqual(['100% of a_b'])
    expect(await found('q=A_B')).toEqual(['100% of a_b'])
    expect(await found('q=QUEUED')).toHaveLength(3)
    expect(await found('order=created_desc')).toEqual(goals.toReversed())
    expect((await desk.api.get(`/agent-runs?q=${'x'.repeat(1001)}`)).status).toBe(400)
    const [run] = made
    const child = await desk.run({ parentRunId: run?.id })
    await desk.db.transaction((tx) =>
      insertRecord(tx, turns, turnOf(desk.open, { scope: desk.scope, runId: run?.id ?? '' })),
    )
    const audit = await desk.api.get(`/agent-runs/${run?.id}/runbook-audit`)
    expect(audit.body).toMatchObject({
      run: { id: run?.id, pendingApprovals: 0, pendingChildRuns: 1 },
      trace: [],
      nodes: [],
      lineage: [],
      unassignedTurns: [{ sequence: 1 }],
      unassignedActions: [],
      unassignedApprovals: [],
      unassignedArtifacts: [],
      unassignedChildren: [child.id],
      children: [{ run: { id: child.id }, children: [] }],
    })
    expect(audit.text).not.toContain('pendingResults')
    expect((await desk.api.get('/agent-runs/nobody/runbook-audit')).status).toBe(404)
  })

  test('an audit names the lists that go on behind what it shows', async () => {
    const desk = bench()
    const run = await desk.put()
    await desk.db.transaction(async (tx) => {
      for (let sequence = 1; sequence <= 501; sequence++) {
        const fields = { scope: desk.scope, runId: run.id, sequence, status: 'completed' } as const
        await insertRecord(tx, turns, turnOf(desk.open, fields))
      }
    })
    const { body } = await desk.api.get(`/agent-runs/${run.id}/runbook-audit`)
    expect([body.unassignedTurns.length, body.omitted]).toEqual([500, ['turns']])
  })

  test('turns are listed by sequence, of one run, and read alone', async () => {
    const desk = bench()
    const run = await desk.put()
    const made = [1, 2, 3].map((sequence) =>
      turnOf(desk.open, { scope: desk.scope, runId: run.id, sequence, status: 'completed' }),
    )
    await desk.db.transaction(async (tx) => {
      for (const turn of made) await insertRecord(tx, turns, turn)
    })
    const sequences = async (query: string): Promise<number[]> =>
      (await desk.api.get(`/agent-turns?${query}`)).body.map(({ sequence }: { sequence: number }) => sequence)
    expect(await sequences(`runId=${run.id}`)).toEqual([1, 2, 3])
    expect(await sequences(`runId=${run.id}&afterSequence=1`)).toEqual([2, 3])
    const first = await desk.api.get(`/agent-turns?runId=${run.id}&limit=2`)
    const cursor = first.headers.get('X-Next-Cursor') ?? ''
    expect(await sequences(`runId=${run.id}&limit=2&cursor=${cursor}`)).toEqual([3])
    expect((await desk.api.get('/agent-turns')).status).toBe(400)
    expect((await desk.api.get(`/agent-turns/${made[1]?.id}`)).body).toMatchObject({ sequence: 2, usage: {} })
    expect((await desk.api.get('/agent-turns/nothing')).status).toBe(404)
  })
})
