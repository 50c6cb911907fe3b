import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { BY_KERNEL, makeChange } from '../../src/kernel/change.ts'
import type { Run, RunStatus } from '../../src/kernel/model/run.ts'
import { wakeIn } from '../../src/kernel/runs/wake.ts'
import { insertRecord, lockRecord } from '../../src/kernel/store/records.ts'
import { renewLease } from '../../src/kernel/store/run-leases.ts'
import { runs, saveRun } from '../../src/kernel/store/runs.ts'
import { calls } from '../../src/kernel/store/calls.ts'
import { describeKernels, openKernel } from './api.ts'
import { RunBench, WAITS } from './runs-support.ts'
import { callOf, openStore } from './support.ts'

describeKernels('run commands', (open) => {
  const bench = (): RunBench => new RunBench(open())

  /** Another kernel over the same store; one in memory has the store itself. */
  const restart = async () => {
    const { place, ...opened } = open()
    const isKept = place.driver !== 'memory'
    const kernel = await openKernel(isKept ? await openStore(place) : { ...opened, place })
    const close = async (): Promise<void> => {
      await kernel.stop()
      if (isKept) await kernel.store.close()
    }
    return { api: kernel.api, close }
  }

  test('kernel#21 a pause whose answer was lost replays with the old revision, also after a restart', async () => {
    const desk = bench()
    const run = await desk.run()
    const body = { expectedRevision: run.revision, kind: 'pause', summary: 'Wait a moment' }
    const pause = (api = desk.api) => api.post(`/agent-runs/${run.id}/commands`, body, 'lost')
    const first = await pause()
    expect(first).toMatchObject({
      status: 200,
      body: {
        run: { status: 'paused', pausedFrom: 'queued', pauseReason: 'command' },
        event: { eventType: 'run.paused', payload: { from: 'queued', to: 'paused', reason: 'Wait a moment' } },
      },
    })
    const again = await pause()
    expect([again.status, again.headers.get('Idempotent-Replay'), Object.keys(again.body)]).toEqual([
      200,
      'true',
      ['run'],
    ])
    expect(await desk.events(run.id)).toEqual(['run.created', 'run.paused'])
    expect((await desk.api.post(`/agent-runs/${run.id}/commands`, { ...body, kind: 'resume' })).status).toBe(409)
    const restarted = await restart()
    expect(await pause(restarted.api(desk.scope))).toMatchObject({ status: 200, body: { run: { status: 'paused' } } })
    expect(await desk.events(run.id)).toEqual(['run.created', 'run.paused'])
    await restarted.close()
  })

  test('kernel#33 pause and resume go back to the queue, or into each wait with its condition', async () => {
    const desk = bench()
    for (const [status, wakeCondition] of Object.entries({ queued: undefined, ...WAITS })) {
      const run = await desk.put({ status: status as RunStatus, ...(wakeCondition && { wakeCondition }) })
      const paused = await desk.command(run.id, 'pause')
      expect(paused.body.run).toMatchObject({ status: 'paused', pausedFrom: status })
      expect(paused.body.run.wakeCondition).toBeUndefined()
      const { body } = await desk.command(run.id, 'resume')
      expect([status, body.run.status, body.run.wakeCondition]).toEqual([status, status, wakeCondition])
      expect(body.event).toMatchObject({ eventType: 'run.resumed', payload: { from: 'paused', to: status } })
      for (const left of ['pausedFrom', 'pausedWakeCondition', 'pauseReason']) expect(body.run).not.toHaveProperty(left)
    }
    const running = await desk.run()
    await desk.claim()
    const paused = (await desk.command(running.id, 'pause')).body.run
    expect(paused).toMatchObject({ status: 'paused', pausedFrom: 'queued' })
    expect(paused).toEqual((await desk.api.get(`/agent-runs/${running.id}`)).body)
    expect(paused.leaseOwner).toBeUndefined()
    expect((await desk.command(running.id, 'resume')).body.run.status).toBe('queued')
  })

  test('what a paused run waited for moves what it remembers: it resumes in the queue, with the result', async () => {
    const desk = bench()
    const run = await desk.put({ status: 'waiting_for_event', wakeCondition: WAITS.waiting_for_event })
    await desk.command(run.id, 'pause')
    await makeChange(desk.open.kernel.context, desk.scope, BY_KERNEL, async (change) =>
      wakeIn(change, await lockRecord(change.tx, runs, desk.scope, run.id), {
        signalId: 's1',
        type: 'event',
        reference: 'mail',
        result: { kind: 'action', id: 'x', at: change.at, status: 'succeeded' },
      }),
    )
    expect(await desk.read(run.id)).toMatchObject({ status: 'paused', pausedFrom: 'queued', lastWakeSignalId: 's1' })
    const { body } = await desk.command(run.id, 'resume')
    expect(body.run.status).toBe('queued')
    expect((await desk.read(run.id)).pendingResults).toMatchObject([{ kind: 'action', id: 'x' }])
  })

  test('kernel#36 a revision read before 100 lease renewals still matches', async () => {
    const desk = bench()
    const { revision, id } = await desk.run()
    const claimed = await desk.claim()
    const fencingToken = claimed?.fencingToken ?? 0
    for (let i = 0; i < 100; i++) {
      desk.open.advance(100)
      const now = desk.open.store.now()
      expect(await renewLease(desk.db, desk.scope, id, { fencingToken, now, leaseMs: 30_000 })).toBe(true)
    }
    const read = await desk.read(id)
    expect(read.revision).toBe(revision + 1)
    const intervened = await desk.api.post(`/agent-runs/${id}/commands`, {
      expectedRevision: read.revision,
      kind: 'intervene',
      instruction: 'Look up',
    })
    expect(intervened.status).toBe(200)
    expect((await desk.read(id)).leaseOwner).toBe('worker')
  })

  test('kernel#37 an instruction wakes a sleeper, leaves an approval open, replays by its id and is bounded', async () => {
    const desk = bench()
    const sleeper = await desk.put({ status: 'sleeping', wakeCondition: WAITS.sleeping })
    const woken = await desk.command(sleeper.id, 'intervene', { instruction: 'Get up' })
    expect(woken.body).toMatchObject({
      run: {
        status: 'queued',
        pendingInterventions: [{ instruction: 'Get up', actor: { type: 'user', id: 'anonymous' } }],
      },
      event: { eventType: 'run.intervened', payload: { from: 'sleeping', to: 'queued' } },
    })
    expect(woken.body.run.wakeCondition).toBeUndefined()

    const { run, approval } = await desk.awaitingApproval()
    const interventionId = randomUUID()
    const body = { expectedRevision: 1, kind: 'intervene', instruction: 'Be careful', interventionId }
    const send = (more: object = {}) => desk.api.post(`/agent-runs/${run.id}/commands`, { ...body, ...more })
    expect((await send()).body.run).toMatchObject({
      status: 'waiting_for_approval',
      wakeCondition: run.wakeCondition,
      pendingInterventions: [{ id: interventionId }],
    })
    expect((await desk.readApproval(approval.id)).status).toBe('pending')
    const again = await send()
    expect([again.status, again.headers.get('Idempotent-Replay'), Object.keys(again.body)]).toEqual([
      200,
      'true',
      ['run'],
    ])
    expect(again.body.run.pendingInterventions).toHaveLength(1)
    expect((await send({ interventionId: interventionId.toUpperCase() })).headers.get('Idempotent-Replay')).toBe('true')
    expect((await send({ instruction: 'Be bold' })).status).toBe(409)
    expect((await send({ actor: { type: 'user', id: 'eve' } })).status).toBe(409)

    const long = (bytes: number) =>
      desk.command(run.id, 'intervene', { instruction: 'é'.repeat(bytes / 2) + 'x'.repeat(bytes % 2) })
    expect((await long(16_001)).status).toBe(400)
    expect((await long(16_000)).status).toBe(200)
    for (const wrong of [{}, { instruction: ' ' }, { instruction: 'x', interventionId: 'one' }, { resolution: {} }]) {
      expect([wrong, (await desk.command(run.id, 'intervene', wrong)).status]).toEqual([wrong, 400])
    }
  })

  test('kernel#38 an unknown kind is 400, an illegal state or another revision 409, an absent run 404', async () => {
    const desk = bench()
    const run = await desk.run()
    const status = async (kind: string, more: object = {}): Promise<number> =>
      (await desk.command(run.id, kind, more)).status
    expect(await status('stop')).toBe(400)
    expect(await status('pause', { budgetTopUp: { maxTurns: 1 } })).toBe(400)
    expect(await status('cancel', { instruction: 'Go' })).toBe(400)
    expect(await status('pause', { humanInterventionId: 'x' })).toBe(400)
    expect(await status('resume')).toBe(409)
    expect(await status('pause', { expectedRevision: 7 })).toBe(409)
    expect(await status('pause')).toBe(200)
    expect(await status('pause')).toBe(409)
    expect(await status('cancel')).toBe(200)
    for (const kind of ['pause', 'resume', 'cancel']) expect([kind, await status(kind)]).toEqual([kind, 409])
    expect(await status('intervene', { instruction: 'Go on' })).toBe(409)
    const absent = { expectedRevision: 1, kind: 'pause' }
    expect((await desk.api.post('/agent-runs/nobody/commands', absent)).status).toBe(404)
    expect((await desk.open.api().post(`/agent-runs/${run.id}/commands`, absent)).status).toBe(404)
  })

  test('kernel#30 a run without budget resumes with more, as far as its objective has room', async () => {
    const desk = bench()
    const objective = await desk.objective({ budget: { maxTurns: 4 } })
    const made = await desk.run({ objectiveId: objective.id, budget: { maxTurns: 3 } })
    const reservation = { turns: 1, inputTokens: 100 }
    await desk.db.transaction(async (tx) => {
      const run = await lockRecord(tx, runs, desk.scope, made.id)
      const exhausted: Partial<Run> = {
        status: 'paused',
        pausedFrom: 'queued',
        pauseReason: 'budget',
        budgetUsage: { turns: 3 },
        budgetState: 'exhausted',
        budgetAdmission: {
          reason: 'reservation_exceeds_remaining',
          dimension: 'maxTurns',
          required: 1,
          remaining: 0,
          reservation,
          turnId: 't4',
          evaluatedAt: run.createdAt,
        },
      }
      await saveRun(tx, { ...run, ...exhausted }, desk.open.store.now())
    })
    const resume = (more: object = {}) => desk.command(made.id, 'resume', more)
    const refused = await resume()
    expect(refused.status).toBe(409)
    expect(refused.body.error).toContain('maxTurns')
    expect((await resume({ budgetTopUp: { maxActions: 1 } })).status).toBe(400)
    expect((await resume({ budgetTopUp: { maxTurns: 0 } })).status).toBe(400)
    expect((await resume({ budgetTopUp: {} })).status).toBe(400)
    expect((await resume({ budgetTopUp: { maxTurns: 2 } })).status).toBe(409)
    const { body } = await desk.api.get(`/objectives/${objective.id}`)
    const raised = await desk.api.put(`/objectives/${objective.id}`, {
      expectedRevision: body.objective.revision,
      title: 'Stars',
      goal: 'Know',
      budget: { maxTurns: 5 },
    })
    expect(raised.status).toBe(200)
    const resumed = await resume({ budgetTopUp: { maxTurns: 2 } })
    expect(resumed.body).toMatchObject({
      run: { status: 'queued', budget: { maxTurns: 5 }, budgetState: 'active' },
      event: { eventType: 'run.resumed' },
    })
    expect(resumed.body.run).not.toHaveProperty('budgetAdmission')
    expect(resumed.body.run).not.toHaveProperty('error')
    expect((await desk.api.get(`/objectives/${objective.id}`)).body.objective.budgetAllocations).toEqual({
      [made.id]: { maxTurns: 5 },
    })
    expect(await desk.events(made.id)).toEqual(['run.created', 'run.resumed', 'run.budget_topped_up'])
  })

  test('kernel#45 at its attempt limit the next claim pauses a run; more attempts let it go on', async () => {
    const desk = bench()
    const run = await desk.run({ budget: { maxAttempts: 1 } })
    expect(await desk.claim()).toMatchObject({ run: { id: run.id } })
    desk.open.advance(30_001)
    await desk.register()
    const report = await desk.api.get(`/agent-runs/admission?runId=${run.id}`)
    expect(report.body).toMatchObject({ outcome: 'backpressured', blocks: [{ reason: 'attempt_budget_exhausted' }] })
    expect(await desk.claim()).toBeUndefined()
    expect(await desk.read(run.id)).toMatchObject({ status: 'paused', pauseReason: 'budget', budgetState: 'exhausted' })
    const refused = await desk.command(run.id, 'resume')
    expect([refused.status, refused.body.error.includes('maxAttempts')]).toEqual([409, true])
    expect((await desk.command(run.id, 'resume', { budgetTopUp: { maxAttempts: 1 } })).body.run.status).toBe('queued')
    expect(await desk.claim()).toMatchObject({ run: { id: run.id, attempt: 2 } })
  })

  test('of two commands for one revision one is carried out', async () => {
    const desk = bench()
    const run = await desk.run()
    const send = (kind: string) => desk.api.post(`/agent-runs/${run.id}/commands`, { expectedRevision: 1, kind })
    const answers = await Promise.all(['pause', 'cancel'].map(send))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 409]))
    expect(await desk.events(run.id)).toHaveLength(2)
  })

  test.each([
    ['succeeded', 'succeeded', 'queued'],
    ['failed', 'failed', 'queued'],
    ['retry', 'ready', 'waiting_for_dependency'],
  ] as const)('a person settles an unknown outcome: %s', async (outcome, callStatus, runStatus) => {
    const desk = bench()
    const asked = {
      id: desk.open.newId(),
      kind: 'action_outcome',
      status: 'pending' as const,
      summary: 'Was the mail sent?',
      challenge: [],
      createdAt: desk.open.at(),
    }
    const call = callOf(desk.open, { scope: desk.scope, runId: '', status: 'ambiguous', attempt: 1 })
    const run = await desk.put({
      status: 'waiting_for_event',
      wakeCondition: { type: 'human_intervention', reference: asked.id },
      humanInterventions: [{ ...asked, actionCallId: call.id }],
    })
    await desk.db.transaction((tx) => insertRecord(tx, calls, { ...call, runId: run.id }))
    const settle = (resolution: object) =>
      desk.command(run.id, 'intervene', { humanInterventionId: asked.id, resolution })
    expect((await settle({})).status).toBe(400)
    expect((await desk.command(run.id, 'intervene', { humanInterventionId: 'another' })).status).toBe(404)
    const { status, body } = await settle({
      outcome,
      note: 'I looked it up',
      ...(outcome === 'succeeded' && { output: 7 }),
    })
    expect(status).toBe(200)
    expect(body).toMatchObject({
      run: {
        status: runStatus,
        humanInterventions: [{ status: 'resolved', resolution: { outcome }, resolvedBy: { id: 'anonymous' } }],
        pendingInterventions: [{ instruction: 'I looked it up' }],
      },
      event: { eventType: 'run.human_intervention_resolved', payload: { interventionId: asked.id, outcome } },
    })
    expect(await desk.readCall(call.id)).toMatchObject({
      status: callStatus,
      ...(outcome === 'succeeded' && { output: 7 }),
    })
    const results = (await desk.read(run.id)).pendingResults
    expect(results.map(({ id, status: result }) => [id, result])).toEqual(
      outcome === 'retry' ? [] : [[call.id, callStatus]],
    )
    expect((await settle({ outcome })).status).toBe(409)
  })
})
