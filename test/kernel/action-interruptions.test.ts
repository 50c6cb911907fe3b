import { expect, test, vi } from 'vitest'
import { claimAction } from '../../src/kernel/actions/worker.ts'
import { claimCall } from '../../src/kernel/actions/claim-call.ts'
import { performCall } from '../../src/kernel/actions/dispatch.ts'
import { finishCall } from '../../src/kernel/actions/finish.ts'
import { markDispatched } from '../../src/kernel/store/call-leases.ts'
import { countOf, NEVER, openStage, servedParts, useDesk } from './actions-support.ts'
import { describeKernels } from './api.ts'
import { faultyStore } from './faulty-store.ts'
import { BY_USER } from './registry-support.ts'

const desk = useDesk()
const WORKER = { id: 'other', leaseMs: 60_000, heartbeatMs: 20_000, abandoned: new AbortController().signal }

describeKernels(
  'actions that are interrupted',
  (open) => {
    test('kernel#68 cancel during dispatch: the outcome is recorded, nothing is sent again', async () => {
      const stage = await openStage(open())
      for (const [answered, status] of [
        [200, 'succeeded'],
        [503, 'canceled'],
      ] as const) {
        let answer = (): void => {}
        const until = new Promise<void>((done) => (answer = done))
        const run = await stage.begin()
        await stage.propose(run.id, { action: 'send' })
        const before = desk.service().effects.length
        desk.service().react({ until, status: answered })
        const working = stage.work()
        await desk.service().received(before + 1)
        const { revision } = await stage.run(run.id)
        const command = { kind: 'cancel', expectedRevision: revision }
        expect((await stage.api.post(`/agent-runs/${run.id}/commands`, command)).status).toBe(200)
        answer()
        await working
        expect((await stage.run(run.id)).status).toBe('canceled')
        expect((await stage.call(run.id)).status).toBe(status)
        open().advance(60_000)
        await stage.work()
        expect(await countOf(desk, stage, run.id)).toBe(1)
      }
    })

    test('kernel#68 a canceled run interrupts a read', async () => {
      const stage = await openStage(open())
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'look' })
      const before = desk.service().effects.length
      desk.service().react(NEVER)
      const working = stage.work({ heartbeatMs: 20 })
      await desk.service().received(before + 1)
      const { revision } = await stage.run(run.id)
      await stage.api.post(`/agent-runs/${run.id}/commands`, { kind: 'cancel', expectedRevision: revision })
      await working
      expect(await stage.call(run.id)).toMatchObject({ status: 'canceled', error: 'given up before the answer' })
    })

    test('a call of a paused agent waits until it is active, also where it was claimed just before', async () => {
      const stage = await openStage(open())
      const move = async (rolloutStatus: string): Promise<void> => {
        const { deployment } = (await stage.api.get('/agent-deployments/ana')).body
        const put = { ...BY_USER, deployment: { ...deployment, rolloutStatus }, reason: 'r' }
        const reply = await stage.api.put('/agent-deployments/ana', { ...put, expectedRevision: deployment.revision })
        expect(reply.status).toBe(200)
      }
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'note' })
      await move('paused')
      expect(await stage.work()).toBe(false)
      await move('active')
      const claimed = await claimCall(open().store, stage.scope, { worker: 'w', leaseMs: 60_000 })
      await move('paused')
      const never = new AbortController().signal
      if (claimed) await performCall(open().kernel.context, claimed, { abandoned: never, canceled: never })
      expect(await stage.call(run.id)).toMatchObject({ status: 'ready', attempt: 1 })
      expect(await stage.work()).toBe(false)
      expect(await countOf(desk, stage, run.id)).toBe(0)
      await move('active')
      await stage.work()
      expect(await stage.call(run.id)).toMatchObject({ status: 'succeeded' })
      expect(await countOf(desk, stage, run.id)).toBe(1)
    })

    test('kernel#70 heartbeats keep a call over three leases', async () => {
      const stage = await openStage(open())
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'note' })
      const before = desk.service().effects.length
      let answer = (): void => {}
      desk.service().react({ until: new Promise<void>((done) => (answer = done)) })
      const working = stage.work({ leaseMs: 60_000, heartbeatMs: 20 })
      await desk.service().received(before + 1)
      for (let i = 0; i < 4; i++) {
        open().advance(50_000)
        const expected = open().at(60_000)
        await vi.waitFor(async () => expect((await stage.call(run.id)).leaseExpiresAt).toBe(expected), 10_000)
        expect(await claimAction(open().kernel.context, { ...WORKER, scope: stage.scope })).toBeUndefined()
      }
      answer()
      await working
      expect(await stage.call(run.id)).toMatchObject({ status: 'succeeded', attempt: 1 })
    })

    test('kernel#70 of a lost lease the late result is dropped', async () => {
      const stage = await openStage(open())
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'look' })
      const before = desk.service().effects.length
      let answer = (): void => {}
      desk
        .service()
        .react({ until: new Promise<void>((done) => (answer = done)) }, { status: 200, body: { second: true } })
      const late = stage.work()
      await desk.service().received(before + 1)
      open().advance(60_001)
      expect(await stage.work()).toBe(false)
      expect(await stage.call(run.id)).toMatchObject({ status: 'ready', error: 'the worker was lost' })
      open().advance(1000)
      await stage.work()
      answer()
      await late
      expect(await stage.call(run.id)).toMatchObject({ status: 'succeeded', attempt: 2, output: { second: true } })
    })

    test('kernel#50 a call that was claimed and not sent is ready again, a write that was sent is ambiguous', async () => {
      const stage = await openStage(open())
      const { store } = open()
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'note' })
      await claimCall(store, stage.scope, { worker: 'lost', leaseMs: 1000 })
      open().advance(1001)
      await stage.work()
      expect(await stage.call(run.id)).toMatchObject({ status: 'succeeded', attempt: 2, recoveredRunning: true })
      expect(await countOf(desk, stage, run.id)).toBe(1)
      const sent = await stage.begin()
      await stage.propose(sent.id, { action: 'note' })
      const claimed = await claimCall(store, stage.scope, { worker: 'lost', leaseMs: 1000 })
      if (!claimed) throw new Error('nothing to claim')
      const { call, fencingToken } = claimed
      await markDispatched(store.database, stage.scope, call.id, { fencingToken, now: store.now() })
      open().advance(1001)
      expect(await stage.work()).toBe(false)
      expect(await stage.call(sent.id)).toMatchObject({ status: 'ambiguous', error: 'the worker was lost' })
      expect(
        await finishCall(open().kernel.context, {
          scope: stage.scope,
          callId: call.id,
          fencingToken,
          outcome: { kind: 'succeeded', output: {} },
          retry: { initialBackoffMs: 1, maxBackoffMs: 1 },
        }),
      ).toBeUndefined()
    })

    test('kernel#89 an outcome that a failing database refused is written later, whole and once', async () => {
      const stage = await openStage(open())
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'note' })
      let left = 2
      const store = faultyStore(open().store, (sql) => sql.includes('INTO kernel_events') && left-- > 0)
      const make = await claimAction({ ...open().kernel.context, store }, { ...WORKER, scope: stage.scope })
      await make?.()
      expect(left).toBe(-1)
      expect(await stage.call(run.id)).toMatchObject({ status: 'succeeded', attempt: 1 })
      expect(await stage.run(run.id)).toMatchObject({ status: 'queued', budgetUsage: { actions: 1 } })
      expect(await stage.events(run.id)).toEqual(['action.proposed', 'action.succeeded'])
      expect(await countOf(desk, stage, run.id)).toBe(1)
    })

    test('a worker that ends does not wait for a database that is down: the outcome is left unknown', async () => {
      const stage = await openStage(open())
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'note' })
      const ending = new AbortController()
      const store = faultyStore(open().store, (sql) => {
        const isFinish = sql.includes('INTO kernel_events')
        if (isFinish) setImmediate(() => ending.abort())
        return isFinish
      })
      const worker = { ...WORKER, scope: stage.scope, abandoned: ending.signal }
      const make = await claimAction({ ...open().kernel.context, store }, worker)
      await expect(make?.()).rejects.toThrow(/aborted|the disk is broken/)
      expect((await stage.call(run.id)).status).toBe('running')
    })

    test('a worker that ends gives back what was not sent, and leaves what was', async () => {
      const stage = await openStage(open())
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'note' })
      await stage.work({ abandoned: AbortSignal.abort() })
      expect((await stage.call(run.id)).status).toBe('ready')
      const before = desk.service().effects.length
      desk.service().react(NEVER)
      const ending = new AbortController()
      const working = stage.work({ abandoned: ending.signal })
      await desk.service().received(before + 1)
      ending.abort()
      await working
      expect(await stage.call(run.id)).toMatchObject({ status: 'running', leaseOwner: 'worker' })
    })

    test('a paused run keeps its call waiting; its result moves what the run remembers', async () => {
      const stage = await openStage(open())
      const run = await stage.begin()
      const { revision } = await stage.propose(run.id, { action: 'note' })
      const command = (kind: string, expectedRevision: number) =>
        stage.api.post(`/agent-runs/${run.id}/commands`, { kind, expectedRevision })
      const paused = await command('pause', revision)
      expect(await stage.work()).toBe(false)
      const resumed = await command('resume', paused.body.run.revision)
      expect(resumed.body.run.status).toBe('waiting_for_dependency')
      const before = desk.service().effects.length
      let answer = (): void => {}
      desk.service().react({ until: new Promise<void>((done) => (answer = done)) })
      const working = stage.work()
      await desk.service().received(before + 1)
      await command('pause', resumed.body.run.revision)
      answer()
      await working
      const remembering = await stage.run(run.id)
      expect(remembering).toMatchObject({
        status: 'paused',
        pausedFrom: 'queued',
        pendingResults: [{ status: 'succeeded' }],
      })
    })
  },
  servedParts(desk),
)
