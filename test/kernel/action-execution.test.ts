import { once } from 'node:events'
import { createServer } from 'node:http'
import { beforeAll, expect, test } from 'vitest'
import { createSkillCatalog } from '../../src/kernel/actions/catalog.ts'
import { createHttpTransport } from '../../src/kernel/actions/http-transport.ts'
import { KernelError } from '../../src/kernel/errors.ts'
import { countOf, deskSkill, NEVER, openStage, SECRET, servedParts, useDesk, type Stage } from './actions-support.ts'
import { describeKernels, type Reply } from './api.ts'

const desk = useDesk()
const BROKEN: unknown = expect.stringMatching(/^the connection broke before the answer: /)

describeKernels(
  'carrying out actions',
  (open) => {
    const resolve = async (stage: Stage, runId: string, resolution: object): Promise<void> => {
      const { revision, humanInterventions } = await stage.run(runId)
      const { status, body } = await stage.api.post(`/agent-runs/${runId}/commands`, {
        kind: 'intervene',
        expectedRevision: revision,
        humanInterventionId: humanInterventions.at(-1)?.id,
        resolution,
      })
      expect([status, body.error]).toEqual([200, undefined])
    }

    test('kernel#65 kernel2#9 the service sees one key on each attempt, 1, 2, 4 and 4 s apart', async () => {
      const stage = await openStage(open())
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'send', idempotencyKey: 'send once' })
      const waits: number[] = []
      for (const status of [503, 429, 503, 503]) {
        desk.service().react({ status, body: `busy, ${SECRET}` })
        expect(await stage.work()).toBe(true)
        const call = await stage.call(run.id)
        expect(call).toMatchObject({ status: 'ready', error: `the service answered ${status}: busy, [REDACTED]` })
        waits.push(Date.parse(call.availableAt) - open().place.clock.now())
        expect(await stage.work()).toBe(false)
        open().advance(waits.at(-1) ?? 0)
      }
      expect(waits).toEqual([1000, 2000, 4000, 4000])
      await stage.work()
      const { id, ...call } = await stage.call(run.id)
      expect(call).toMatchObject({ status: 'succeeded', attempt: 5 })
      expect(call.error).toBeUndefined()
      const mine = desk.service().effects.filter(({ body }) => body.invocationId === id)
      expect(mine.map(({ body, headers }) => [body.attempt, headers['idempotency-key']])).toEqual(
        [1, 2, 3, 4, 5].map((attempt) => [attempt, 'send once']),
      )
      expect(mine[0]).toMatchObject({
        headers: { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' },
        body: {
          scope: stage.scope,
          skillId: 'desk',
          skillVersion: '1.0.0',
          action: 'send',
          arguments: { text: 'hello' },
        },
      })
      expect((await stage.events(run.id)).filter((type) => type === 'action.retry_scheduled').length).toBe(4)
    })

    test('kernel#65 an error is cut to 1,024 characters, without the credential', async () => {
      const stage = await openStage(open())
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'send' })
      desk.service().react({ status: 400, body: `${SECRET} `.repeat(200) })
      await stage.work()
      const { error = '' } = await stage.call(run.id)
      expect(error).not.toContain(SECRET)
      expect(error.length).toBeLessThanOrEqual(1024)
      expect(error).toContain('[REDACTED]')
    })

    test('kernel#66 a write whose answer does not come is ambiguous, and a person says what became of it', async () => {
      const stage = await openStage(open())
      for (const [outcome, status, runStatus, results] of [
        ['succeeded', 'succeeded', 'queued', [{ status: 'succeeded', output: { found: 1 } }]],
        ['failed', 'failed', 'queued', [{ status: 'failed', error: BROKEN }]],
        ['retry', 'ready', 'waiting_for_dependency', []],
      ] as const) {
        const run = await stage.begin()
        await stage.propose(run.id, { action: 'rush' })
        desk.service().react(outcome === 'succeeded' ? NEVER : { drop: 'after' })
        await stage.work()
        expect(await stage.call(run.id)).toMatchObject({
          status: 'ambiguous',
          failurePhase: 'unknown',
          error: outcome === 'succeeded' ? 'no answer within 1000 ms' : BROKEN,
        })
        const waiting = await stage.run(run.id)
        expect(waiting).toMatchObject({
          status: 'waiting_for_event',
          wakeCondition: { type: 'human_intervention', reference: waiting.humanInterventions[0]?.id },
          humanInterventions: [{ kind: 'action_outcome', status: 'pending' }],
        })
        expect((await stage.events(run.id)).slice(-2)).toEqual([
          'action.ambiguous',
          'action.human_intervention_required',
        ])
        open().advance(3_600_000)
        expect(await stage.work()).toBe(false)
        expect(await countOf(desk, stage, run.id)).toBe(1)
        await resolve(stage, run.id, { outcome, ...(outcome === 'succeeded' && { output: { found: 1 } }) })
        expect((await stage.call(run.id)).status).toBe(status)
        expect((await stage.run(run.id)).status).toBe(runStatus)
        expect((await stage.run(run.id)).pendingResults).toMatchObject(results)
      }
      const [retried] = (await stage.api.get('/action-calls?status=ready')).body
      await stage.work()
      expect(await stage.call(retried.runId)).toMatchObject({ status: 'succeeded', attempt: 2 })
      expect((await stage.run(retried.runId)).status).toBe('queued')
      const sent = desk.service().effects.filter(({ body }) => body.invocationId === retried.id)
      expect(sent.map(({ headers }) => headers['idempotency-key'])).toEqual([
        retried.idempotencyKey,
        retried.idempotencyKey,
      ])
    })

    test('kernel#66 what a call of a canceled run did can still be told, once, and frees the external operation', async () => {
      const stage = await openStage(open())
      const cancel = async (runId: string): Promise<void> => {
        const { revision } = await stage.run(runId)
        const command = { kind: 'cancel', expectedRevision: revision }
        expect((await stage.api.post(`/agent-runs/${runId}/commands`, command)).status).toBe(200)
      }
      const answer = async (runId: string, resolution: object): Promise<Reply> => {
        const { revision: expectedRevision, humanInterventions } = await stage.run(runId)
        const command = {
          kind: 'intervene',
          expectedRevision,
          humanInterventionId: humanInterventions[0]?.id,
          resolution,
        }
        return stage.api.post(`/agent-runs/${runId}/commands`, command)
      }
      for (const [isCanceledFirst, outcome] of [
        [false, 'failed'],
        [true, 'succeeded'],
      ] as const) {
        const run = await stage.begin({ budget: { maxActions: 5 } })
        await stage.propose(run.id, { action: 'send' })
        let answerNow = (): void => {}
        const until = new Promise<void>((done) => (answerNow = done))
        const before = desk.service().effects.length
        desk.service().react({ until, status: 500 })
        const working = stage.work()
        await desk.service().received(before + 1)
        if (isCanceledFirst) await cancel(run.id)
        answerNow()
        await working
        if (!isCanceledFirst) await cancel(run.id)
        expect((await stage.call(run.id)).status).toBe('ambiguous')
        const { budgetUsage, humanInterventions } = await stage.run(run.id)
        expect(humanInterventions).toMatchObject([{ status: isCanceledFirst ? 'pending' : 'canceled' }])
        expect(budgetUsage.actions).toBe(1)

        expect(await answer(run.id, { outcome: 'retry' })).toMatchObject({ status: 409 })
        expect(await answer(run.id, { outcome, note: 'seen' })).toMatchObject({
          status: 200,
          body: { run: { status: 'canceled', pendingInterventions: [], budgetUsage, budgetReservations: {} } },
        })
        expect((await stage.call(run.id)).status).toBe(outcome)
        expect((await stage.run(run.id)).humanInterventions).toMatchObject([{ status: 'resolved' }])
        expect(await answer(run.id, { outcome })).toMatchObject({ status: 409 })
        open().advance(60_000)
        await stage.work()
        expect(await countOf(desk, stage, run.id)).toBe(1)
      }
    })

    test('kernel#66 kernel2#9 a break after sending and a 500 leave a write ambiguous', async () => {
      const stage = await openStage(open())
      for (const reaction of [{ drop: 'before' }, { drop: 'after' }, { status: 500, body: 'broken' }] as const) {
        const run = await stage.begin()
        await stage.propose(run.id, { action: 'note' })
        desk.service().react(reaction)
        await stage.work()
        expect((await stage.call(run.id)).status).toBe('ambiguous')
      }
    })

    test('kernel#67 a read without an answer is sent again, up to its last attempt', async () => {
      const stage = await openStage(open())
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'glance' })
      desk.service().react(NEVER, { drop: 'after' })
      for (const status of ['ready', 'ready', 'succeeded']) {
        await stage.work()
        expect((await stage.call(run.id)).status).toBe(status)
        open().advance(10_000)
      }
      expect(await countOf(desk, stage, run.id)).toBe(3)
      const hopeless = await stage.begin()
      await stage.propose(hopeless.id, { action: 'glance' })
      desk.service().react({ status: 500 }, { status: 502 }, { status: 500 })
      for (let i = 0; i < 3; i++) {
        await stage.work()
        open().advance(10_000)
      }
      expect(await stage.call(hopeless.id)).toMatchObject({ status: 'failed', attempt: 3 })
      expect(await stage.run(hopeless.id)).toMatchObject({ status: 'queued', pendingResults: [{ status: 'failed' }] })
    })

    test('kernel2#9 redirects and other refusals are definite', async () => {
      const stage = await openStage(open())
      for (const [reaction, error] of [
        [{ status: 307, headers: { Location: desk.service().url } }, 'the service answered 307: redirects are refused'],
        [{ status: 422, body: 'too long' }, 'the service answered 422: too long'],
        [{ status: 200, body: 'fine' }, 'the answer is not JSON'],
        [{ status: 200, body: [1] }, 'the answer is not a JSON object'],
        [{ status: 200, body: 'x'.repeat(4 * 1024 * 1024 + 1) }, 'the answer is above 4194304 bytes'],
      ] as const) {
        const run = await stage.begin()
        await stage.propose(run.id, { action: 'note' })
        desk.service().react(reaction)
        await stage.work()
        expect(await stage.call(run.id)).toMatchObject({ status: 'failed', error })
        expect(await countOf(desk, stage, run.id)).toBe(1)
      }
    })

    test('an output that does not fit its schema is a failure; one that fits is kept', async () => {
      const stage = await openStage(open())
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'checked' })
      await stage.work()
      expect(await stage.call(run.id)).toMatchObject({ status: 'failed', failurePhase: 'validate_output' })
      await stage.propose(run.id, { action: 'checked', arguments: { text: 'again' } })
      desk.service().react({ status: 200, body: { count: 3 } })
      await stage.work()
      expect((await stage.call(run.id)).output).toEqual({ count: 3 })
    })

    test('kernel#91 a credential that the service sends back is kept nowhere', async () => {
      const stage = await openStage(open())
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'send' })
      desk.service().react({ status: 200, body: { you: { said: `Bearer ${SECRET}`, [SECRET]: [SECRET] } } })
      await stage.work()
      expect((await stage.call(run.id)).output).toEqual({
        you: { said: 'Bearer [REDACTED]', '[REDACTED]': ['[REDACTED]'] },
      })
      const tables = ['kernel_calls', 'kernel_call_journal', 'kernel_approvals', 'kernel_runs', 'kernel_events']
      const rows = await Promise.all(tables.map((table) => open().store.database.all(`SELECT * FROM ${table}`)))
      expect(JSON.stringify(rows).includes(SECRET)).toBe(false)
    })

    test('a handler of this process: its output, its refusal, and what it leaves open', async () => {
      const stage = await openStage(open(), { binding: { maximumRisk: 'destructive' } })
      const tried = async (): Promise<object> => {
        const run = await stage.begin()
        await stage.propose(run.id, { action: 'here' })
        await stage.work()
        return stage.call(run.id)
      }
      desk.handler(async ({ arguments: given }) => ({ heard: given['text'] }))
      expect(await tried()).toMatchObject({ status: 'succeeded', output: { heard: 'hello' } })
      desk.handler(async () => {
        throw new KernelError('conflict', 'it is taken')
      })
      expect(await tried()).toMatchObject({ status: 'failed', error: 'it is taken' })
      desk.handler(async () => {
        throw new Error('lost')
      })
      expect(await tried()).toMatchObject({ status: 'failed', error: 'lost', failurePhase: 'unknown' })
    })
  },
  servedParts(desk),
)

describeKernels(
  'services that are not there',
  (open) => {
    test('kernel#67 a refused connection is tried again, a write too', async () => {
      const stage = await openStage(open(), { binding: { allowedActions: ['rush'], credentials: {} } })
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'rush' })
      for (const status of ['ready', 'ready', 'failed']) {
        await stage.work()
        expect(await stage.call(run.id)).toMatchObject({ status, failurePhase: 'dispatch' })
        open().advance(10_000)
      }
      expect((await stage.call(run.id)).error).toMatch(/^not sent: /)
    })
  },
  servedParts(refusing()),
)

/** A desk whose service does not listen. */
function refusing(): typeof desk {
  let catalog = createSkillCatalog([])
  beforeAll(async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    const port = address !== null && typeof address === 'object' ? address.port : 0
    await new Promise((done) => server.close(done))
    catalog = createSkillCatalog([deskSkill(`http://127.0.0.1:${port}/act`)])
  })
  return { ...desk, parts: { ...desk.parts, catalog: { find: (...args) => catalog.find(...args) } } }
}

test('kernel2#9 http to other machines is refused, https is not', async () => {
  const transport = createHttpTransport()
  const dispatch = (endpoint: string) =>
    transport.execute({
      invocationId: 'i',
      scope: { kind: 'a', id: 'b' },
      runId: 'r',
      deploymentId: 'd',
      skillId: 's',
      skillVersion: '1',
      action: 'a',
      arguments: {},
      attempt: 1,
      idempotencyKey: 'k',
      transport: { kind: 'http', endpoint, arguments: {} },
      credentials: {},
      signal: new AbortController().signal,
      canceled: new AbortController().signal,
    })
  for (const endpoint of [
    'http://example.com/a',
    'http://10.0.0.1/a',
    'ftp://localhost/a',
    'http://127.0.0.1.example.com/',
  ]) {
    expect(await dispatch(endpoint)).toMatchObject({
      kind: 'failed',
      retryable: false,
      error: expect.stringMatching(/is refused/),
    })
  }
  expect(await dispatch('nonsense')).toMatchObject({ kind: 'failed', error: 'the action has no endpoint' })
  expect(await dispatch('https://127.0.0.1:1/a')).toMatchObject({ kind: 'failed', retryable: true })
})
