import { expect, test } from 'vitest'
import { BY_KERNEL, makeChange } from '../../src/kernel/change.ts'
import { saveMoved } from '../../src/kernel/runs/save.ts'
import { lockRecord } from '../../src/kernel/store/records.ts'
import { runs } from '../../src/kernel/store/runs.ts'
import { describeKernels } from './api.ts'
import { agent, ANA, BO, Desk, TEAM } from './requests-support.ts'

describeKernels('requests between agents', (open) => {
  const desk = (): Desk => new Desk(open())

  test('kernel#76 handoff: the source completes, the recipient owns the run that goes on', async () => {
    const d = desk()
    const { id, runId } = await d.asked({ kind: 'handoff', instructions: 'At night' })
    expect(await d.readRun(runId)).toMatchObject({
      status: 'waiting_for_agent',
      wakeCondition: { type: 'agent_request', reference: id },
    })
    const { body } = await d.answer(id, 'accept')
    expect(body.request).toMatchObject({ status: 'accepted', revision: 2, childRunId: body.childRun.id })
    expect(body.sourceRun).toMatchObject({ id: runId, status: 'completed' })
    expect(body.childRun).toMatchObject({
      source: 'handoff',
      owner: BO,
      parentRunId: runId,
      rootRunId: runId,
      status: 'queued',
      goal: 'Count the moons',
    })
    expect(body.childRun.context.request).toMatchObject({ id, instructions: 'At night' })
    expect(await d.get(id)).toMatchObject({ status: 'accepted' })
    await d.end(body.childRun.id, 'completed', { output: { summary: 'Two' } })
    expect(await d.get(id)).toMatchObject({ status: 'completed', completionSummary: 'Two' })
    expect(await d.events(runId)).toEqual(['handoff.proposed', 'handoff.accepted', 'handoff.completed'])
  })

  test('kernel#76 a handoff from a paused run waits until it is resumed', async () => {
    const d = desk()
    const { id } = await d.asked(
      { kind: 'handoff' },
      { status: 'paused', pausedFrom: 'queued', pauseReason: 'command' },
    )
    expect((await d.answer(id, 'accept')).status).toBe(409)
    expect(await d.get(id)).toMatchObject({ status: 'pending', revision: 1 })
  })

  test('kernel#77 clarification loop, then acceptance; the source waits for the work and gets the result', async () => {
    const d = desk()
    const { id, runId } = await d.asked()
    expect((await d.answer(id, 'request_clarification')).status).toBe(400)
    const asked = await d.answer(id, 'request_clarification', 1, { message: 'Which planet?' })
    expect(asked.body.request).toMatchObject({ status: 'clarification_requested', clarification: 'Which planet?' })
    expect((await d.answer(id, 'request_clarification', 2, { message: 'Hm?' })).status).toBe(409)
    expect((await d.answer(id, 'provide_clarification', 2, { principal: BO, message: 'Mars' })).status).toBe(403)
    const told = await d.answer(id, 'provide_clarification', 2, { message: 'Mars' })
    expect(told.body.request).toMatchObject({ status: 'pending', response: 'Mars', revision: 3 })
    const { body } = await d.answer(id, 'accept', 3)
    expect(body.sourceRun).toMatchObject({
      status: 'waiting_for_dependency',
      wakeCondition: { type: 'agent_request', reference: id },
    })
    expect(body.childRun).toMatchObject({ source: 'agent_request', owner: ANA, assignedAgentId: 'bo' })
    expect(body.childRun.context.request).toMatchObject({ clarification: 'Which planet?', response: 'Mars' })
    await d.end(body.childRun.id, 'completed', { output: { moons: 2 } })
    const source = await d.readRun(runId)
    expect(source).toMatchObject({
      status: 'queued',
      output: { collaborationResults: [{ id, status: 'completed', output: { moons: 2 } }] },
      pendingResults: [{ kind: 'request', id, status: 'completed' }],
    })
    expect(await d.events(runId)).toEqual([
      'collaboration.requested',
      'collaboration.clarification_requested',
      'collaboration.clarification_provided',
      'collaboration.accepted',
      'collaboration.completed',
      'run.woken',
    ])
  })

  test('kernel#77 a rejected request wakes its source; strangers 403, wrong state 409, stale revision 409', async () => {
    const d = desk()
    const { id, runId } = await d.asked()
    expect((await d.answer(id, 'reject', 1, { principal: agent('eve') })).status).toBe(403)
    expect((await d.answer(id, 'reject', 1, { decisionRunId: 'none' })).status).toBe(404)
    expect((await d.answer(id, 'reject', 7)).body.error).toBe('revision conflict: expected 7, current 1')
    const { body } = await d.answer(id, 'reject', 1, { message: 'No time' })
    expect(body.request).toMatchObject({ status: 'rejected', resolutionReason: 'No time' })
    expect(body.sourceRun).toMatchObject({ status: 'queued' })
    expect((await d.readRun(runId)).pendingResults).toMatchObject([{ status: 'rejected', reason: 'No time' }])
    for (const decision of ['accept', 'reject']) expect((await d.answer(id, decision, 2)).status).toBe(409)
    expect((await d.answer(id, 'reject', 2)).body.error).toBe('the request is rejected already')
    expect((await d.complete(id, 2)).status).toBe(409)
    expect((await d.review(id, 2, 'ana', true)).status).toBe(409)
  })

  test('creation: strangers 403, ended runs 409, unknown runs 404, a paused or waiting source stays where it is', async () => {
    const d = desk()
    const { id } = await d.run()
    expect((await d.ask(id, { requester: agent('eve') })).status).toBe(403)
    expect((await d.ask('none')).status).toBe(404)
    expect((await d.ask((await d.run({ status: 'completed' })).id)).status).toBe(409)
    expect((await d.ask(id, { assignedAgentId: 'cy' })).status).toBe(400)
    expect((await d.ask(id, { sharedContext: { a: { b: { api_key: 'x' } } } })).status).toBe(400)
    expect((await d.ask(id, { kind: 'escalation' })).status).toBe(400)
    const wakeCondition = { type: 'event', reference: 'x' } as const
    const waiting = await d.asked({}, { status: 'waiting_for_event', wakeCondition })
    await d.answer(waiting.id, 'accept')
    expect(await d.readRun(waiting.runId)).toMatchObject({ status: 'waiting_for_event', wakeCondition })
    const executed = await d.run({ owner: { type: 'team', id: 'x' }, assignedAgentId: 'ana' })
    expect((await d.ask(executed.id)).status).toBe(201)
  })

  test('a paused source remembers that its result came', async () => {
    const d = desk()
    const { id, runId, childId } = await d.accepted()
    await makeChange(open().kernel.context, d.scope, BY_KERNEL, async (change) => {
      const run = await lockRecord(change.tx, runs, d.scope, runId)
      const { wakeCondition, ...rest } = run
      if (!wakeCondition) throw new Error('it waits for nothing')
      const paused = { pausedFrom: run.status, pausedWakeCondition: wakeCondition, pauseReason: 'command' } as const
      return saveMoved(change, run, { ...rest, status: 'paused', ...paused })
    })
    await d.end(childId, 'completed')
    expect(await d.readRun(runId)).toMatchObject({ status: 'paused', pausedFrom: 'queued' })
    expect((await d.readRun(runId)).pendingResults).toMatchObject([{ id, status: 'completed' }])
  })

  test('kernel#22 a completion or review without key is refused; kernel#21 a key that comes again does nothing', async () => {
    const d = desk()
    const { id } = await d.accepted()
    const body = { expectedRevision: 2, principal: BO, summary: 'Two' }
    expect((await d.api.post(`/agent-requests/${id}/completions`, body)).body.error).toContain('Idempotency-Key')
    const vote = { expectedRevision: 2, principal: ANA, approve: true, summary: 'Good' }
    expect((await d.api.post(`/agent-requests/${id}/completion-review`, vote)).status).toBe(400)
    const done = await d.complete(id, 2, {}, 'once')
    expect(done.status).toBe(200)
    expect(done.body.request.completionKey).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(done.text).not.toContain('"once"')
    const again = await d.complete(id, 2, {}, 'once')
    expect(again.headers.get('idempotent-replay')).toBe('true')
    expect(again.body).not.toHaveProperty('events')
    expect(again.body.request).toMatchObject({ status: 'completed', revision: done.body.request.revision })
    expect((await d.complete(id, 2, { summary: 'Three' }, 'once')).status).toBe(409)
  })

  test('kernel#78 what the request asks for must come with the completion', async () => {
    const d = desk()
    const { id, childId } = await d.accepted({
      acceptanceCriteria: 'Each with its name',
      artifactRequirements: [
        { name: 'map', type: 'chart' },
        { name: 'notes', required: false },
      ],
    })
    const map = { id: 'a1', version: 1, name: 'map', type: 'chart', contentRef: 'file:map' }
    for (const nothing of [{}, { acceptanceEvidence: [] }, { acceptanceEvidence: {} }]) {
      const { body } = await d.complete(id, 2, { artifacts: [map], ...nothing })
      expect([nothing, body.error]).toEqual([nothing, expect.stringContaining('acceptanceEvidence')])
    }
    const evidence = { acceptanceEvidence: 'Phobos, Deimos' }
    expect((await d.complete(id, 2, evidence)).body.error).toBe('artifacts must bring map of type chart')
    expect((await d.complete(id, 2, { ...evidence, artifacts: [{ ...map, type: 'text' }] })).status).toBe(400)
    await d.end(childId, 'completed', { output: 'no artifact' })
    expect(await d.get(id)).toMatchObject({ status: 'accepted' })
    const stale = { ...evidence, artifacts: [map], expectedChildRevision: 1 }
    expect((await d.complete(id, 2, stale)).status).toBe(409)
    const { body } = await d.complete(id, 2, { ...evidence, artifacts: [map], expectedChildRevision: 2 })
    expect(body.request).toMatchObject({ status: 'completed', acceptanceEvidence: 'Phobos, Deimos' })
    expect(body.request.artifacts).toMatchObject([{ name: 'map', evidenceRefs: [] }])
    const brought = await d.accepted({ artifactRequirements: [{ name: 'map' }] })
    await d.end(brought.childId, 'completed', { output: { summary: 'Here', artifacts: [map] } })
    expect(await d.get(brought.id)).toMatchObject({ status: 'completed', completionSummary: 'Here' })
  })

  test('kernel#78 a completion is reviewed by the side of the requester: 2 of 3, a split vote and its resolution', async () => {
    const d = desk()
    await d.team(
      { ana: 'lead', cy: 'lead', di: 'lead', bo: 'hand' },
      { requireCompletionReview: true, completionReviewQuorum: 2, escalateOnDisagreement: true },
    )
    const owner = { owner: TEAM, assignedAgentId: 'ana' }
    const { id, runId, childId } = await d.accepted({}, owner)
    const submitted = await d.complete(id, 2)
    expect(submitted.body.request).toMatchObject({ status: 'completion_review', revision: 3 })
    expect(submitted.body.childRun).toMatchObject({ id: childId, status: 'completed' })
    expect(await d.readRun(runId)).toMatchObject({ status: 'waiting_for_dependency' })
    expect((await d.review(id, 3, 'bo', true)).status).toBe(403)
    expect((await d.review(id, 3, 'eve', true)).status).toBe(403)
    expect((await d.review(id, 3, 'ana', true, { resolveDisagreement: true })).status).toBe(409)
    expect((await d.review(id, 3, 'ana', true)).body.request).toMatchObject({ status: 'completion_review' })
    expect((await d.review(id, 4, 'ana', true)).status).toBe(409)
    expect((await d.review(id, 4, 'cy', false)).body.request).toMatchObject({ reviewDisagreement: true })
    const last = await d.review(id, 5, 'di', true)
    expect(last.body.request).toMatchObject({ status: 'completed', completionReviewer: agent('di') })
    expect(last.body.sourceRun).toMatchObject({ id: runId, status: 'queued' })

    const split = await d.accepted({}, owner)
    await d.complete(split.id, 2)
    await d.review(split.id, 3, 'ana', true)
    await d.review(split.id, 4, 'cy', false)
    const decided = await d.review(split.id, 5, 'ana', false, { resolveDisagreement: true })
    expect(decided.body.request).toMatchObject({ status: 'rejected', resolutionReason: 'Not good' })
    expect((await d.readRun(split.runId)).pendingResults).toMatchObject([{ status: 'rejected' }])
    expect(await d.events(split.runId)).toEqual([
      'collaboration.requested',
      'collaboration.accepted',
      'collaboration.review_submitted',
      'collaboration.review_submitted',
      'collaboration.review_submitted',
      'escalation.raised',
      'collaboration.review_submitted',
      'escalation.resolved',
      'collaboration.rejected',
      'run.woken',
    ])
  })

  test('kernel#79 of two creators for the last place one has it; an end gives it back', async () => {
    const d = desk()
    await d.team({ ana: 'lead', bo: 'hand' }, { maximumConcurrent: 2 })
    const owner = { owner: TEAM, assignedAgentId: 'ana' }
    const { id } = await d.asked({}, owner)
    const [one, two] = await Promise.all([d.run(owner), d.run(owner)])
    const replies = await Promise.all([d.ask(one.id), d.ask(two.id)])
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([201, 409]))
    const loser = replies[0]?.status === 409 ? one : two
    expect(await d.readRun(loser.id)).toMatchObject({ status: 'queued', revision: 1 })
    await d.answer(id, 'reject')
    expect((await d.ask(loser.id)).status).toBe(201)
  })

  test('kernel#79 depth, delegation to peers and acceptance ahead of time are what the team allows', async () => {
    const d = desk()
    await d.team({ ana: 'lead', bo: 'hand' }, { maximumDepth: 1, requireAcceptance: true })
    const owner = { owner: TEAM, assignedAgentId: 'ana' }
    const { childId } = await d.accepted({}, owner)
    const deeper = await d.ask(childId, { requester: BO, recipient: agent('cy') })
    expect(deeper.status).toBe(403)
    expect(deeper.body.error).toBe('delegation goes 1 deep at most')
    const { id } = await d.run(owner)
    expect((await d.ask(id, { acceptancePolicy: 'preauthorized' })).status).toBe(403)
    const other = desk()
    await other.team({ ana: 'lead', bo: 'hand' }, { allowPeerDelegation: false })
    expect((await other.ask((await other.run(owner)).id)).status).toBe(403)
    expect((await other.ask((await other.run(owner)).id, { recipient: agent('eve') })).status).toBe(201)
    expect((await other.ask((await other.run(owner)).id, { requester: TEAM })).status).toBe(201)
  })

  test('a team answers through an active member of the role; candidates rank by free slots, active runs, id', async () => {
    const d = desk()
    await d.team({ bo: 'hand', cy: 'hand', di: 'hand', el: 'lead' })
    const { id } = await d.asked({ recipient: TEAM, semanticRole: 'hand' })
    const { candidates } = await d.get(id)
    expect(candidates.map((one: { deploymentId: string }) => one.deploymentId)).toEqual(['cy', 'bo', 'di'])
    for (const fields of [{}, { assignedAgentId: 'el' }, { assignedAgentId: 'eve' }]) {
      const refused = await d.answer(id, 'accept', 1, fields)
      expect(refused.body.error).toBe('assignedAgentId must be an active member of team crew with role hand')
    }
    expect((await d.answer(id, 'accept', 1, { principal: agent('eve') })).status).toBe(403)
    const { body } = await d.answer(id, 'accept', 1, { principal: agent('cy'), assignedAgentId: 'cy' })
    expect(body.request).toMatchObject({ assignedAgentId: 'cy', assignmentDecision: { deploymentId: 'cy' } })
    expect(body.childRun).toMatchObject({ assignedAgentId: 'cy', owner: ANA })
    expect((await d.ask((await d.run()).id, { recipient: { type: 'team', id: 'none' } })).status).toBe(404)
  })

  test('the budget of a request is taken off its source, and is free again when it is rejected', async () => {
    const d = desk()
    const run = await d.run({ budget: { maxTurns: 10 } })
    expect((await d.ask(run.id)).status).toBe(400)
    expect((await d.ask(run.id, { budgetAllocation: { maxTurns: 11 } })).status).toBe(409)
    const { body } = await d.ask(run.id, { budgetAllocation: { maxTurns: 9 } })
    expect(body.sourceRun).toMatchObject({
      budgetState: 'warning',
      budgetAllocations: { [body.request.id]: { maxTurns: 9 } },
    })
    expect((await d.ask(run.id, { budgetAllocation: { maxTurns: 2 } })).status).toBe(409)
    await d.answer(body.request.id, 'reject')
    expect(await d.readRun(run.id)).toMatchObject({ budgetState: 'active', budgetAllocations: {} })
    const next = await d.asked({ budgetAllocation: { maxTurns: 10 } }, { budget: { maxTurns: 10 } })
    const accepted = await d.answer(next.id, 'accept')
    expect(accepted.body.childRun).toMatchObject({ budget: { maxTurns: 10 }, budgetState: 'active' })
  })

  test('what a person is asked for waits for the person, whom no worker replaces', async () => {
    const d = desk()
    const pia = { type: 'user', id: 'pia' }
    const early = { recipient: pia, acceptancePolicy: 'preauthorized' }
    expect((await d.ask((await d.run()).id, early)).status).toBe(400)
    const { id, runId } = await d.asked({ recipient: pia })
    const { body } = await d.answer(id, 'accept', 1, { principal: pia })
    expect(body.childRun).toMatchObject({ status: 'waiting_for_agent', owner: ANA })
    const done = await d.complete(id, 2, { principal: pia })
    expect(done.body.childRun).toMatchObject({ status: 'completed', output: { summary: 'Two moons' } })
    expect(await d.readRun(runId)).toMatchObject({ status: 'queued' })
  })

  test('kernel#80 the failure or cancellation of its run ends a request, and the source hears why', async () => {
    const d = desk()
    const failing = await d.accepted()
    await d.end(failing.childId, 'failed', { error: { code: 'invalid_model_output', message: 'no JSON' } })
    expect(await d.get(failing.id)).toMatchObject({ status: 'failed', resolutionReason: 'no JSON' })
    expect(await d.readRun(failing.runId)).toMatchObject({ status: 'queued', pendingResults: [{ reason: 'no JSON' }] })
    const canceled = await d.accepted()
    await d.end(canceled.childId, 'canceled')
    expect(await d.get(canceled.id)).toMatchObject({ status: 'canceled' })
    expect(await d.readRun(canceled.runId)).toMatchObject({ status: 'queued' })
    expect(await d.events(canceled.runId)).toContain('collaboration.canceled')
  })

  test('kernel#80 the end of the source cancels its open requests and their runs', async () => {
    const d = desk()
    const { id, runId, childId } = await d.accepted()
    const second = await d.ask(runId, { recipient: agent('cy') })
    expect(await d.readRun(runId)).toMatchObject({ wakeCondition: { reference: id } })
    await d.end(runId, 'canceled')
    for (const requestId of [id, second.body.request.id]) {
      expect(await d.get(requestId)).toMatchObject({
        status: 'canceled',
        resolutionReason: `agent run ${runId} is canceled`,
      })
    }
    expect(await d.readRun(childId)).toMatchObject({ status: 'canceled' })
    expect((await d.answer(id, 'accept', 3)).status).toBe(409)
    const told = await d.events(runId)
    expect(told.filter((type) => type === 'collaboration.canceled')).toHaveLength(2)
  })

  test('lists: by source, party, kind and state; half a party 400; another scope 404', async () => {
    const d = desk()
    const { id, runId } = await d.asked()
    const other = await d.asked({ kind: 'handoff', recipient: agent('cy') })
    const ids = async (query: string): Promise<string[]> =>
      (await d.api.get(`/agent-requests?${query}`)).body.map((one: { id: string }) => one.id)
    expect(await ids('')).toEqual([other.id, id])
    expect(await ids(`sourceRunId=${runId}`)).toEqual([id])
    expect(await ids('recipientType=agent&recipientId=cy')).toEqual([other.id])
    expect(await ids('requesterType=agent&requesterId=ana&kind=request,handoff&status=pending')).toEqual([other.id, id])
    expect((await d.api.get('/agent-requests?recipientType=agent')).status).toBe(400)
    expect((await open().api().get(`/agent-requests/${id}`)).status).toBe(404)
  })
})
