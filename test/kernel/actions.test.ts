import { expect, test } from 'vitest'
import { DEFAULT_POLICY, openStage, servedParts, useDesk } from './actions-support.ts'
import { describeKernels } from './api.ts'

const desk = useDesk()

describeKernels(
  'actions',
  (open) => {
    test('kernel#62 allow, require_approval and deny: states of call and run', async () => {
      const stage = await openStage(open())
      const allowed = await stage.begin()
      expect(await stage.propose(allowed.id, { action: 'note' })).toMatchObject({
        status: 'waiting_for_dependency',
        wakeCondition: { type: 'action', reference: (await stage.call(allowed.id)).id },
      })
      expect(await stage.call(allowed.id)).toMatchObject({
        status: 'ready',
        attempt: 0,
        risk: 'write',
        bindingRevision: 1,
      })
      await stage.work()
      expect(await stage.call(allowed.id)).toMatchObject({ status: 'succeeded', output: { ok: true }, attempt: 1 })
      expect(await stage.run(allowed.id)).toMatchObject({
        status: 'queued',
        pendingResults: [{ kind: 'action', status: 'succeeded', action: 'desk.note', output: { ok: true } }],
      })
      expect(await stage.events(allowed.id)).toEqual(['action.proposed', 'action.succeeded'])

      desk.policy({ evaluate: () => ({ outcome: 'require_approval', reason: 'it is loud' }) })
      const asking = await stage.begin()
      const waiting = await stage.propose(asking.id, { action: 'note' })
      const call = await stage.call(asking.id)
      expect(waiting).toMatchObject({ status: 'waiting_for_approval', wakeCondition: { type: 'approval' } })
      expect(call).toMatchObject({ status: 'waiting_for_approval', approvalId: waiting.wakeCondition?.reference })
      expect((await stage.api.get(`/action-approvals/${call.approvalId}`)).body).toMatchObject({
        status: 'pending',
        actionCallId: call.id,
        policyReason: 'it is loud',
        eligibleApprovers: [{ type: 'role', id: 'operator' }],
        proposedAction: { skillId: 'desk', action: 'note', arguments: { text: 'hello' } },
      })
      expect(await stage.work()).toBe(false)

      desk.policy({ evaluate: () => ({ outcome: 'deny', reason: 'not today' }) })
      const denied = await stage.begin()
      expect(await stage.propose(denied.id, { action: 'note' })).toMatchObject({
        status: 'queued',
        pendingResults: [{ kind: 'denied', status: 'denied', error: 'not today' }],
      })
      expect(await stage.call(denied.id)).toMatchObject({ status: 'denied', error: 'not today' })
      expect(await stage.events(denied.id)).toEqual(['action.denied'])
    })

    test('kernel#63 by default the operator has 24 hours to approve what is more than reading', async () => {
      desk.policy(DEFAULT_POLICY)
      const stage = await openStage(open())
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'note' })
      expect((await stage.api.get('/action-approvals')).body).toMatchObject([
        {
          eligibleApprovers: [{ type: 'role', id: 'operator' }],
          expiresAt: open().at(86_400_000),
          timeoutDecision: 'expire',
        },
      ])
      const reader = await stage.begin()
      await stage.propose(reader.id, { action: 'look' })
      expect(await stage.call(reader.id)).toMatchObject({ status: 'ready' })
    })

    test('kernel#63 the strictest layer wins, and a policy that throws denies', async () => {
      const stage = await openStage(open(), {
        authority: { requireApprovalAt: 'external' },
        binding: { argumentRestrictions: { note: { text: { enum: ['good'] } } } },
      })
      const restricted = await stage.begin()
      await stage.propose(restricted.id, { action: 'note', arguments: { text: 'bad' } })
      expect(await stage.call(restricted.id)).toMatchObject({
        status: 'denied',
        error: 'argument text is not an allowed value',
      })
      const asked = await stage.begin()
      await stage.propose(asked.id, { action: 'send' })
      expect(await stage.call(asked.id)).toMatchObject({ status: 'waiting_for_approval' })
      desk.validators.push(() => 'the validator says no')
      const invalid = await stage.begin()
      await stage.propose(invalid.id, { action: 'send' })
      expect(await stage.call(invalid.id)).toMatchObject({ status: 'denied', error: 'the validator says no' })
      desk.validators.length = 0
      desk.policy({
        evaluate: () => {
          throw new Error('broken')
        },
      })
      const broken = await stage.begin()
      await stage.propose(broken.id, { action: 'look' })
      expect(await stage.call(broken.id)).toMatchObject({ status: 'denied' })
    })

    test('kernel#63 bounds are asked again before a call is sent', async () => {
      const stage = await openStage(open())
      const sent = desk.service().effects.length
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'note' })
      desk.validators.push(() => 'changed its mind')
      await stage.work()
      expect(await stage.call(run.id)).toMatchObject({
        status: 'failed',
        failurePhase: 'prepare',
        error: 'changed its mind',
      })
      expect(desk.service().effects.length).toBe(sent)
      expect((await stage.run(run.id)).status).toBe('queued')
    })

    test('kernel#64 what the kernel fills in is not for the model to say', async () => {
      const stage = await openStage(open(), { binding: { config: { desk: 'third' } } })
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'fill', arguments: { text: 'hi', room: 'red', copy: 'no', desk: 'mine' } })
      await stage.work()
      expect(desk.service().effects.at(-1)?.body.arguments).toEqual({
        text: 'hi',
        room: 'blue',
        copy: 'hi',
        desk: 'third',
      })
      expect((await stage.call(run.id)).resolvedArguments).toEqual({
        room: { source: 'literal' },
        desk: { source: 'literal' },
      })
    })

    test('kernel#64 arguments that do not fit are told to the model, the same again is refused', async () => {
      const stage = await openStage(open())
      const run = await stage.begin()
      const bad = { action: 'note', arguments: { text: 7, more: 1 } }
      const told = await stage.propose(run.id, bad)
      expect(told).toMatchObject({
        status: 'queued',
        pendingResults: [{ kind: 'error', status: 'refused', action: 'desk.note' }],
      })
      expect(told.pendingResults[0]?.['error']).toBe(
        'the arguments do not fit: arguments must not have more; text must be string',
      )
      expect(await stage.calls(run.id)).toEqual([])
      const repeated = await stage.propose(run.id, bad)
      expect(repeated.pendingResults[0]?.['error']).toMatch(/^this very call came to nothing already/)
    })

    test('kernel#64 after two corrections an action is not looked at, the fifth failure ends the run', async () => {
      const stage = await openStage(open())
      const run = await stage.begin()
      for (const text of [1, 2, 3]) {
        expect((await stage.propose(run.id, { action: 'note', arguments: { text } })).status).toBe('queued')
      }
      const fourth = await stage.propose(run.id, { action: 'note', arguments: { text: 'good' } })
      expect(fourth.pendingResults[0]?.['error']).toBe(
        'desk.note came to nothing after 2 corrections: do something else',
      )
      const last = await stage.propose(run.id, { action: 'look', arguments: {} })
      expect(last).toMatchObject({ status: 'failed', error: { code: 'action_failures' } })
      expect((await stage.api.get(`/agent-runs/${run.id}`)).body.actionFailures).toBeUndefined()
    })

    test('kernel#64 a success lets the same be tried again, and what failed before stays counted', async () => {
      const stage = await openStage(open())
      const run = await stage.begin()
      const failing = { action: 'note', arguments: { text: 'x' } }
      for (const [round, expected] of ['queued', 'queued', 'queued', 'queued', 'failed'].entries()) {
        desk.service().react({ status: 422, body: 'no' })
        await stage.propose(run.id, failing)
        await stage.work()
        expect([round, (await stage.run(run.id)).status]).toEqual([round, expected])
        if (expected === 'failed') break
        await stage.propose(run.id, { action: 'look' })
        await stage.work()
        expect((await stage.run(run.id)).pendingResults).toMatchObject([{ status: 'succeeded' }])
      }
      expect((await stage.run(run.id)).error).toEqual({
        code: 'action_failures',
        message: '5 proposed actions came to nothing, at last: the service answered 422: no',
      })
    })

    test('kernel#9 a key that was used for another call is a conflict the model hears of', async () => {
      const stage = await openStage(open())
      const run = await stage.begin()
      await stage.propose(run.id, { action: 'note', idempotencyKey: 'mine' })
      await stage.work()
      const again = await stage.propose(run.id, { action: 'note', idempotencyKey: 'mine' })
      expect(again).toMatchObject({ status: 'queued', pendingResults: [{ status: 'succeeded', output: { ok: true } }] })
      const other = await stage.propose(run.id, { action: 'note', arguments: { text: 'b' }, idempotencyKey: 'mine' })
      expect(other.pendingResults[0]?.['error']).toMatch(/was used by call .* with other content$/)
      expect((await stage.calls(run.id)).length).toBe(1)
      const odd = await stage.propose(run.id, { action: 'look', idempotencyKey: 'käse' })
      expect(odd.pendingResults[0]?.['error']).toBe('idempotencyKey must be 1 to 256 printable ASCII characters')
    })

    test('kernel#69 of one operation in the world a finished twin is copied, a live one is a conflict', async () => {
      const stage = await openStage(open())
      const book = { action: 'book', arguments: { order: 'A-1', text: 'first' } }
      const first = await stage.begin()
      await stage.propose(first.id, book)
      const second = await stage.begin()
      const told = await stage.propose(second.id, { ...book, arguments: { order: 'A-1', text: 'second' } })
      expect(told.pendingResults[0]?.['error']).toMatch(/is at this very operation already$/)
      await stage.work()
      const sent = desk.service().effects.length
      const third = await stage.begin()
      expect(await stage.propose(third.id, book)).toMatchObject({
        status: 'queued',
        pendingResults: [{ status: 'succeeded', output: { ok: true } }],
      })
      expect(await stage.call(third.id)).toMatchObject({
        status: 'succeeded',
        duplicateOfActionCallId: (await stage.call(first.id)).id,
        attempt: 0,
      })
      expect(await stage.events(third.id)).toEqual(['action.duplicate'])
      const other = await stage.begin()
      await stage.propose(other.id, { ...book, arguments: { order: 'A-2' } })
      await stage.work()
      expect((await stage.call(other.id)).status).toBe('succeeded')
      expect(desk.service().effects.length).toBe(sent + 1)
    })

    test('an action without budget pauses the run, and is not done', async () => {
      const stage = await openStage(open())
      const run = await stage.begin({ budget: { maxActions: 1 } })
      await stage.propose(run.id, { action: 'note' })
      await stage.work()
      expect(await stage.run(run.id)).toMatchObject({ budgetUsage: { actions: 1 }, budgetReservations: {} })
      expect(await stage.propose(run.id, { action: 'look' })).toMatchObject({
        status: 'paused',
        pauseReason: 'budget',
        budgetState: 'exhausted',
        budgetAdmission: { dimension: 'maxActions', required: 1, remaining: 0 },
      })
      expect((await stage.calls(run.id)).length).toBe(1)
      expect(await stage.events(run.id)).toEqual([
        'budget.reserved',
        'action.proposed',
        'action.succeeded',
        'budget.reservation_reconciled',
        'budget.exhausted',
        'run.paused',
      ])
    })
  },
  servedParts(desk),
)
