import { expect, test } from 'vitest'
import { endOverdueApprovals } from '../../src/kernel/actions/expire.ts'
import { createDefaultAuthorizer } from '../../src/kernel/actions/authorizer.ts'
import type { Run } from '../../src/kernel/model/run.ts'
import { APPROVER, DEFAULT_POLICY, openStage, servedParts, useDesk, type Stage } from './actions-support.ts'
import { describeKernels, type Reply } from './api.ts'

const desk = useDesk()

/** A run that waits for the operator. */
async function asking(stage: Stage): Promise<{ run: Run; path: string }> {
  desk.policy(DEFAULT_POLICY)
  const { id } = await stage.begin()
  await stage.propose(id, { action: 'note' })
  const { approvalId } = await stage.call(id)
  return { run: await stage.run(id), path: `/action-approvals/${approvalId}` }
}

const decide = (stage: Stage, path: string, body: object): Promise<Reply> =>
  stage.api.post(`${path}/decisions`, {
    decision: 'approve',
    expectedRevision: 1,
    decisionId: 'd1',
    principal: APPROVER,
    ...body,
  })

describeKernels(
  'approvals',
  (open) => {
    test('kernel#71 who is not named is refused; who is approves, and the call is made', async () => {
      const stage = await openStage(open())
      const { run, path } = await asking(stage)
      expect((await decide(stage, path, { principal: { type: 'user', id: 'eve' } })).status).toBe(403)
      expect((await decide(stage, '/action-approvals/none', {})).status).toBe(404)
      const { status, body } = await decide(stage, path, {})
      expect(status).toBe(200)
      expect(body).toMatchObject({
        resolved: true,
        approval: { status: 'approved', revision: 2, decisionBy: APPROVER, decisionId: 'd1' },
        call: { status: 'ready' },
        run: { status: 'waiting_for_dependency', wakeCondition: { type: 'action' } },
        event: { eventType: 'approval.approved', actor: APPROVER },
      })
      expect(body.run.pendingResults).toBeUndefined()
      await stage.work()
      expect(await stage.run(run.id)).toMatchObject({ status: 'queued', pendingResults: [{ status: 'succeeded' }] })
    })

    test('kernel#72 the same decision again does nothing, another one is a conflict', async () => {
      const stage = await openStage(open())
      const { path } = await asking(stage)
      expect((await decide(stage, path, { expectedRevision: 7 })).status).toBe(409)
      expect((await decide(stage, path, { decision: undefined, approve: true })).body.resolved).toBe(true)
      const again = await decide(stage, path, { decision: undefined, approve: true })
      expect([again.status, again.body.resolved, again.body.event]).toEqual([200, false, undefined])
      expect(again.headers.get('Idempotent-Replay')).toBe('true')
      expect((await decide(stage, path, { decision: 'reject' })).status).toBe(409)
      expect((await decide(stage, path, { decisionId: 'd2' })).status).toBe(409)
      const byHeader = { decision: 'approve', expectedRevision: 1, principal: APPROVER, decisionId: 'd1' }
      const same = await stage.api.post(`${path}/decisions`, byHeader, 'another key')
      expect([same.status, same.body.resolved]).toEqual([200, false])
    })

    test('kernel#72 kernel#22 disagreeing forms and a decision without a key are malformed', async () => {
      const stage = await openStage(open())
      const { path } = await asking(stage)
      expect((await decide(stage, path, { approve: false })).status).toBe(400)
      expect((await decide(stage, path, { decision: undefined })).status).toBe(400)
      expect((await decide(stage, path, { decisionId: undefined })).status).toBe(400)
      const keyed = { decision: 'reject', expectedRevision: 1, principal: APPROVER }
      const { status, body } = await stage.api.post(`${path}/decisions`, keyed, 'by header')
      expect([status, body.approval.decisionId, body.call.status]).toEqual([200, 'by header', 'denied'])
    })

    test('kernel#73 changes asked for must say which; the next turn hears of them', async () => {
      const stage = await openStage(open())
      const { run, path } = await asking(stage)
      expect((await decide(stage, path, { decision: 'request_changes' })).status).toBe(400)
      const { body } = await decide(stage, path, { decision: 'request_changes', reason: 'be polite' })
      expect(body).toMatchObject({
        approval: { status: 'changes_requested', decisionReason: 'be polite' },
        call: { status: 'denied', error: 'be polite' },
        run: { status: 'queued', budgetReservations: {} },
      })
      expect((await stage.run(run.id)).pendingResults).toMatchObject([
        { kind: 'approval', status: 'changes_requested', error: 'be polite', action: 'desk.note' },
      ])
      expect((await stage.events(run.id)).at(-1)).toBe('approval.changes_requested')
    })

    test('kernel#74 nobody decides in time: the call is denied, or approved where the policy says so', async () => {
      const stage = await openStage(open())
      const expiring = await asking(stage)
      desk.policy({ evaluate: () => ({ outcome: 'require_approval', ttlMs: 1000, timeoutDecision: 'approve' }) })
      const { id } = await stage.begin()
      await stage.propose(id, { action: 'note' })
      open().advance(1001)
      await endOverdueApprovals(open().kernel.context)
      expect((await stage.call(id)).status).toBe('ready')
      expect((await stage.run(id)).status).toBe('waiting_for_dependency')
      expect((await stage.events(id)).at(-1)).toBe('approval.auto_approved')
      expect((await stage.call(expiring.run.id)).status).toBe('waiting_for_approval')
      open().advance(86_400_000)
      await endOverdueApprovals(open().kernel.context)
      expect((await stage.api.get(expiring.path)).body.status).toBe('expired')
      expect(await stage.run(expiring.run.id)).toMatchObject({
        status: 'queued',
        pendingResults: [{ status: 'expired' }],
      })
    })

    test('kernel#74 a decision after the deadline commits what time decided, and is a conflict', async () => {
      const stage = await openStage(open())
      const { run, path } = await asking(stage)
      open().advance(86_400_001)
      expect((await decide(stage, path, {})).status).toBe(409)
      expect((await stage.api.get(path)).body).toMatchObject({ status: 'expired', revision: 2 })
      expect((await stage.call(run.id)).status).toBe('denied')
      expect((await decide(stage, path, {})).status).toBe(409)
    })

    test('kernel#75 a paused run accepts the decision; resume goes on from it', async () => {
      const stage = await openStage(open())
      const command = (run: Run, kind: string): Promise<Reply> =>
        stage.api.post(`/agent-runs/${run.id}/commands`, { kind, expectedRevision: run.revision })
      const { run, path } = await asking(stage)
      await command(run, 'pause')
      expect((await decide(stage, path, {})).body).toMatchObject({
        call: { status: 'ready' },
        run: { status: 'paused', pausedFrom: 'waiting_for_dependency', pausedWakeCondition: { type: 'action' } },
      })
      expect(await stage.work()).toBe(false)
      expect((await command(await stage.run(run.id), 'resume')).body.run.status).toBe('waiting_for_dependency')
      expect(await stage.work()).toBe(true)
      expect((await stage.run(run.id)).status).toBe('queued')
      const rejected = await asking(stage)
      await command(rejected.run, 'pause')
      expect((await decide(stage, rejected.path, { decision: 'reject' })).body.run).toMatchObject({
        status: 'paused',
        pausedFrom: 'queued',
      })
      expect((await command(await stage.run(rejected.run.id), 'resume')).body.run.status).toBe('queued')
    })

    test('kernel#34 cancel in waiting_for_approval takes approval and call along', async () => {
      const stage = await openStage(open())
      const { run, path } = await asking(stage)
      await stage.api.post(`/agent-runs/${run.id}/commands`, { kind: 'cancel', expectedRevision: run.revision })
      expect((await stage.api.get(path)).body.status).toBe('canceled')
      expect((await stage.call(run.id)).status).toBe('canceled')
      expect((await decide(stage, path, {})).status).toBe(409)
    })

    test('lists of approvals and calls: filters, order, pages', async () => {
      const stage = await openStage(open())
      const first = await asking(stage)
      open().advance(1)
      const second = await asking(stage)
      await decide(stage, first.path, {})
      const ids = async (query: string): Promise<string[]> =>
        (await stage.api.get(`/action-approvals${query}`)).body.map((one: { runId: string }) => one.runId)
      const [one, two] = [first.run.id, second.run.id]
      expect(await ids('')).toEqual([one, two])
      expect(await ids('?order=created_desc')).toEqual([two, one])
      expect(await ids('?status=pending')).toEqual([two])
      expect(await ids('?status=pending,approved')).toEqual([one, two])
      expect(await ids(`?runId=${one}`)).toEqual([one])
      expect(await ids('?ownerType=agent&ownerId=ana')).toEqual([one, two])
      expect(await ids('?ownerType=team&ownerId=ana')).toEqual([])
      expect((await stage.api.get('/action-approvals?ownerType=agent')).status).toBe(400)
      const page = await stage.api.get('/action-calls?limit=1')
      expect(page.body.map((call: { runId: string }) => call.runId)).toEqual([one])
      const cursor = encodeURIComponent(page.headers.get('X-Next-Cursor') ?? '')
      const next = await stage.api.get(`/action-calls?limit=1&cursor=${cursor}`)
      expect(next.body.map((call: { runId: string }) => call.runId)).toEqual([two])
      expect((await stage.api.get('/action-calls?status=ready&deploymentId=ana')).body.length).toBe(1)
      const call = await stage.call(two)
      expect((await stage.api.get(`/action-calls/${call.id}`)).body).toEqual(call)
      expect((await open().api().get(`/action-calls/${call.id}`)).status).toBe(404)
    })
  },
  servedParts(desk),
)

describeKernels(
  'approvals without an authorizer',
  (open) => {
    test('kernel#71 they are listed, and nobody decides', async () => {
      const stage = await openStage(open())
      const { path } = await asking(stage)
      expect((await stage.api.get('/action-approvals')).body.length).toBe(1)
      const { status, body } = await decide(stage, path, {})
      expect([status, body.error]).toEqual([
        501,
        'approval authorizer is not configured: action-approvals resolve is unavailable',
      ])
    })
  },
  { actions: desk.parts },
)

describeKernels(
  'approvals with a host that knows who asks',
  (open) => {
    test('kernel#71 nobody decides in the name of another', async () => {
      const stage = await openStage(open())
      const { path } = await asking(stage)
      expect((await decide(stage, path, {})).status).toBe(403)
    })
  },
  {
    actions: desk.parts,
    approvalAuthorizer: createDefaultAuthorizer(),
    hostIdentity: () => ({ type: 'user', id: 'eve' }),
  },
)

describeKernels(
  'approvals with an authorizer that fails',
  (open) => {
    test('kernel#71 one that throws denies', async () => {
      const stage = await openStage(open())
      const { path } = await asking(stage)
      expect((await decide(stage, path, {})).status).toBe(403)
    })
  },
  {
    actions: desk.parts,
    approvalAuthorizer: {
      authorize() {
        throw new Error('broken')
      },
    },
  },
)
