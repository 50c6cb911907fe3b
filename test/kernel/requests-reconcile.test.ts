import { expect, test } from 'vitest'
import type { Run } from '../../src/kernel/model/run.ts'
import { reconcileRequests } from '../../src/kernel/requests/reconcile.ts'
import { readRecord } from '../../src/kernel/store/records.ts'
import { requests } from '../../src/kernel/store/requests.ts'
import { listRuns } from '../../src/kernel/store/runs.ts'
import { describeKernels } from './api.ts'
import { agent, Desk, TEAM } from './requests-support.ts'

const BUDGET = {
  maxAttempts: 5,
  maxTurns: 3,
  maxInputTokens: 64_000,
  maxOutputTokens: 4_096,
  maxTotalTokens: 68_096,
  maxDurationMs: 180_000,
}

describeKernels('requests that are brought on', (open) => {
  const reconcile = (d: Desk): Promise<number> => reconcileRequests(open().kernel.context, d.scope)

  const runsOf = async (d: Desk, source: Run['source']): Promise<Run[]> =>
    (await listRuns(open().store.database, d.scope, { source: [source] }, 'created_desc', { limit: 100 })).items

  async function decisionRun(d: Desk, source: Run['source'] = 'agent_request_decision'): Promise<Run> {
    await reconcile(d)
    const [run] = await runsOf(d, source)
    if (!run) throw new Error('no decision run was made')
    return run
  }

  test('kernel#80 what was accepted ahead of time is accepted once, by itself', async () => {
    const d = new Desk(open())
    const { id, runId } = await d.asked({ acceptancePolicy: 'preauthorized' })
    await Promise.all([reconcile(d), reconcile(d)])
    const request = await d.get(id)
    expect(request).toMatchObject({ status: 'accepted', revision: 2, assignedAgentId: 'bo' })
    expect(await d.readRun(request.childRunId)).toMatchObject({ status: 'queued', assignedAgentId: 'bo' })
    expect(await d.events(runId)).toEqual(['collaboration.requested', 'collaboration.accepted'])
    expect(await reconcile(d)).toBe(0)
    await new Desk(open()).asked()
    expect(await runsOf(d, 'agent_request_decision')).toEqual([])
  })

  test('another pending request gets one bounded run that accepts, rejects or asks', async () => {
    const d = new Desk(open())
    const { id, runId } = await d.asked({ instructions: 'At night' })
    await Promise.all([reconcile(d), reconcile(d), reconcile(d)])
    expect(await runsOf(d, 'agent_request_decision')).toHaveLength(1)
    const first = await decisionRun(d)
    expect(first).toMatchObject({
      owner: agent('bo'),
      budget: BUDGET,
      context: { request: { id, instructions: 'At night' } },
    })
    expect(await d.get(id)).toMatchObject({ status: 'pending', revision: 1 })
    await d.end(first.id, 'completed', { output: { decision: 'request_clarification', message: 'Which planet?' } })
    await reconcile(d)
    expect(await d.get(id)).toMatchObject({ status: 'clarification_requested', clarification: 'Which planet?' })
    await d.answer(id, 'provide_clarification', 2, { message: 'Mars' })
    const second = await decisionRun(d)
    expect(second.id).not.toBe(first.id)
    expect(second.context).toMatchObject({ request: { clarification: 'Which planet?', response: 'Mars' } })
    await d.end(second.id, 'completed', { output: { decision: 'accept' } })
    await reconcile(d)
    const request = await d.get(id)
    expect(request).toMatchObject({ status: 'accepted', revision: 4 })
    expect(await d.readRun(runId)).toMatchObject({ status: 'waiting_for_dependency' })
    const other = await d.asked()
    const third = await decisionRun(d)
    await d.end(third.id, 'completed', { output: { decision: 'reject', message: 'No time' } })
    await reconcile(d)
    expect(await d.get(other.id)).toMatchObject({ status: 'rejected', resolutionReason: 'No time' })
    expect(await d.readRun(other.runId)).toMatchObject({ status: 'queued' })
  })

  test.each([
    ['failed', undefined],
    ['completed', { decision: 'complete' }],
    ['completed', { decision: 'request_clarification' }],
    ['completed', 'yes'],
  ] as const)('a run that is %s with output %j leaves the request to others', async (status, output) => {
    const d = new Desk(open())
    const { id } = await d.asked()
    const { id: runId } = await decisionRun(d)
    await d.end(runId, status, output === undefined ? {} : { output })
    await reconcile(d)
    expect(await d.get(id)).toMatchObject({ status: 'pending', revision: 1 })
    expect(await reconcile(d)).toBe(0)
    expect((await d.answer(id, 'accept')).status).toBe(200)
  })

  test('a decision that comes too late is not asked for any more', async () => {
    const d = new Desk(open())
    const { id } = await d.asked()
    const { id: runId } = await decisionRun(d)
    await d.answer(id, 'reject')
    await reconcile(d)
    expect(await d.readRun(runId)).toMatchObject({ status: 'canceled' })
    expect(await reconcile(d)).toBe(0)
  })

  test('kernel#76 a handoff that is accepted while its source is paused goes through when that is resumed', async () => {
    const d = new Desk(open())
    const { id, runId } = await d.asked({ kind: 'handoff' })
    const command = async (kind: string): Promise<void> => {
      const expectedRevision = (await d.readRun(runId)).revision
      expect((await d.api.post(`/agent-runs/${runId}/commands`, { kind, expectedRevision })).status).toBe(200)
    }
    const decision = await decisionRun(d)
    await command('pause')
    await d.end(decision.id, 'completed', { output: { decision: 'accept' } })
    expect(await reconcile(d)).toBe(0)
    expect(await d.get(id)).toMatchObject({ status: 'pending', revision: 1 })
    await command('resume')
    expect(await reconcile(d)).toBe(1)
    const request = await d.get(id)
    expect(request).toMatchObject({ status: 'accepted' })
    expect(await d.readRun(runId)).toMatchObject({ status: 'completed' })
    expect(await d.readRun(request.childRunId)).toMatchObject({ status: 'queued', source: 'handoff' })
  })

  test('of a team the first candidate decides, and does it when it accepts', async () => {
    const d = new Desk(open())
    await d.team({ bo: 'hand', cy: 'hand' })
    const { id } = await d.asked({ recipient: TEAM, semanticRole: 'hand' })
    const run = await decisionRun(d)
    expect(run).toMatchObject({ owner: agent('cy'), context: { candidates: ['cy', 'bo'] } })
    await d.end(run.id, 'completed', { output: { decision: 'accept' } })
    await reconcile(d)
    expect(await d.get(id)).toMatchObject({ status: 'accepted', assignedAgentId: 'cy' })
    const early = await d.asked({ recipient: TEAM, semanticRole: 'hand', acceptancePolicy: 'preauthorized' })
    await reconcile(d)
    expect(await d.get(early.id)).toMatchObject({ status: 'accepted', assignedAgentId: 'cy' })
  })

  test('agents of the side of the requester review one after the other until the quorum', async () => {
    const d = new Desk(open())
    await d.team({ ana: 'lead', bo: 'hand', cy: 'lead' }, { requireCompletionReview: true, completionReviewQuorum: 2 })
    const { id, runId } = await d.accepted({}, { owner: TEAM, assignedAgentId: 'ana' })
    await d.complete(id, 2, { acceptanceEvidence: 'Seen' })
    const first = await decisionRun(d, 'agent_request_completion_review')
    expect(first).toMatchObject({
      owner: agent('ana'),
      budget: BUDGET,
      context: { completion: { summary: 'Two moons', acceptanceEvidence: 'Seen' } },
    })
    await d.end(first.id, 'completed', { output: { approve: true, summary: 'Good' } })
    const second = await decisionRun(d, 'agent_request_completion_review')
    expect(second).toMatchObject({ owner: agent('cy') })
    await d.end(second.id, 'completed', { output: { approve: true, summary: 'Fine' } })
    await reconcile(d)
    expect(await d.get(id)).toMatchObject({
      status: 'completed',
      completionReviews: [{ reviewer: agent('ana') }, { reviewer: agent('cy') }],
    })
    expect(await d.readRun(runId)).toMatchObject({ status: 'queued' })
  })

  test('what a person is asked for is left to the person', async () => {
    const d = new Desk(open())
    const { id } = await d.asked({ recipient: { type: 'user', id: 'pia' } })
    expect(await reconcile(d)).toBe(0)
    expect(await d.get(id)).toMatchObject({ status: 'pending' })
    expect(await runsOf(d, 'agent_request_decision')).toEqual([])
  })

  test('one request that is refused hinders no other', async () => {
    const d = new Desk(open())
    const blocked = await d.asked(
      { kind: 'handoff', acceptancePolicy: 'preauthorized' },
      { status: 'paused', pausedFrom: 'queued', pauseReason: 'command' },
    )
    const { id } = await d.asked({ acceptancePolicy: 'preauthorized' })
    expect(await reconcile(d)).toBe(1)
    expect(await d.get(blocked.id)).toMatchObject({ status: 'pending' })
    expect(await d.get(id)).toMatchObject({ status: 'accepted' })
  })

  test('kernel#80 states survive reopen', async () => {
    const { place, store } = open()
    const d = new Desk(open())
    const { id } = await d.accepted()
    const again = place.driver === 'memory' ? store : await place.open()
    const request = await readRecord(again.database, requests, d.scope, id)
    if (again !== store) await again.close()
    expect(request).toEqual(await d.get(id))
    await d.complete(id, 2)
    expect(await d.get(id)).toMatchObject({ status: 'completed' })
  })
})
