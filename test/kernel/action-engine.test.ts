import { afterEach, expect, test, vi } from 'vitest'
import { Engine, type EngineOptions } from '../../src/kernel/engine/engine.ts'
import { createModelHost } from '../../src/kernel/engine/model-host.ts'
import type { ActivityEvent } from '../../src/kernel/model/event.ts'
import type { Turn } from '../../src/kernel/model/turn.ts'
import { APPROVER, DEFAULT_POLICY, openStage, servedParts, useDesk, type Stage } from './actions-support.ts'
import { describeKernels, type OpenKernel } from './api.ts'
import { useModel } from './engine-support.ts'

const desk = useDesk()
const model = useModel()

const engines: Engine[] = []
afterEach(async () => {
  await Promise.all(engines.splice(0).map((engine) => engine.stop({ graceMs: 0 })))
})

async function startEngine({ kernel, store }: OpenKernel, stage: Stage): Promise<void> {
  const modelHost = createModelHost({ baseUrl: model().baseUrl, model: 'scripted', apiKey: 'key', clock: store })
  const where = { scopes: [stage.scope], pollIntervalMs: 20 }
  const options: EngineOptions = { modelHost, runWorkers: [where], actionWorkers: [where], random: () => 0.5 }
  const engine = new Engine(kernel.context, kernel.hints, options)
  engines.push(engine)
  await engine.start()
}

const until = (check: () => Promise<void>): Promise<void> => vi.waitFor(check, { timeout: 20_000, interval: 20 })

describeKernels(
  'an agent that acts',
  (open) => {
    const start = async (stage: Stage, goal: string): Promise<string> => {
      const made = await stage.api.post('/agent-runs', { owner: { type: 'agent', id: 'ana' }, goal })
      expect([made.status, made.body.error]).toEqual([201, undefined])
      return made.body.run.id
    }
    const action = (name: string, given: object = { text: 'hello' }): object => ({
      bindingId: 'desk',
      action: name,
      arguments: given,
      summary: 'Does it',
    })

    test('kernel#62 a turn proposes, the operator approves, the service is asked once, the next turn sees the result', async () => {
      desk.policy(DEFAULT_POLICY)
      const stage = await openStage(open())
      const goal = `write a note, ${open().place.driver}`
      model().script(goal, [
        { outcome: { action: action('note') } },
        { outcome: { status: 'completed', output: { done: true } } },
      ])
      await startEngine(open(), stage)
      const runId = await start(stage, goal)
      await until(async () => expect((await stage.run(runId)).status).toBe('waiting_for_approval'))
      const { approvalId } = await stage.call(runId)
      const decision = { decision: 'approve', expectedRevision: 1, decisionId: 'd', principal: APPROVER }
      expect((await stage.api.post(`/action-approvals/${approvalId}/decisions`, decision)).status).toBe(200)
      await until(async () => expect((await stage.run(runId)).status).toBe('completed'))
      const { id } = await stage.call(runId)
      expect(desk.service().effects.filter(({ body }) => body.invocationId === id).length).toBe(1)
      const [first, second] = model().asked(goal)
      expect(first?.envelope.actions.map((offered) => offered.action)).toContain('note')
      expect(second?.envelope.results).toMatchObject([
        { kind: 'action', id, status: 'succeeded', output: { ok: true } },
      ])
      expect(await stage.run(runId)).toMatchObject({ pendingResults: [], output: { done: true } })
    })

    test('kernel#64 what does not fit is corrected by the next turn', async () => {
      const stage = await openStage(open())
      const goal = `correct yourself, ${open().place.driver}`
      model().script(goal, [
        { outcome: { action: action('look', { text: 1 }) } },
        { outcome: { action: action('look') } },
        { outcome: { status: 'completed' } },
      ])
      await startEngine(open(), stage)
      const runId = await start(stage, goal)
      await until(async () => expect((await stage.run(runId)).status).toBe('completed'))
      expect(
        model()
          .asked(goal)
          .map(({ envelope }) => envelope.results.map(({ status }) => status)),
      ).toEqual([[], ['refused'], ['succeeded']])
      expect((await stage.calls(runId)).map(({ status }) => status)).toEqual(['succeeded'])
      const refused = 'the arguments do not fit: text must be string'
      const turns = (await stage.api.get(`/agent-turns?runId=${runId}`)).body
      expect(turns.map(({ error }: Turn) => error)).toEqual([
        { code: 'refused', message: refused },
        undefined,
        undefined,
      ])
      const told = await stage.api.get(
        `/activity?runId=${runId}&eventType=run.transitioned&order=asc&includeDetails=true`,
      )
      expect(told.body.items.map(({ payload }: ActivityEvent) => payload?.['refused'])).toEqual([
        refused,
        undefined,
        undefined,
      ])
    })

    test('kernel#64 the fifth failure ends the run', async () => {
      const stage = await openStage(open())
      const goal = `fail for ever, ${open().place.driver}`
      model().script(goal, (_, request) => ({ outcome: { action: action('look', { text: request }) } }))
      await startEngine(open(), stage)
      const runId = await start(stage, goal)
      await until(async () => expect((await stage.run(runId)).status).toBe('failed'))
      expect(await stage.run(runId)).toMatchObject({ error: { code: 'action_failures' }, lastAppliedTurn: 5 })
    })

    test('kernel#73 the changes that were asked for reach the next turn', async () => {
      desk.policy(DEFAULT_POLICY)
      const stage = await openStage(open())
      const goal = `be corrected, ${open().place.driver}`
      model().script(goal, [{ outcome: { action: action('note') } }, { outcome: { status: 'completed' } }])
      await startEngine(open(), stage)
      const runId = await start(stage, goal)
      await until(async () => expect((await stage.run(runId)).status).toBe('waiting_for_approval'))
      const { approvalId } = await stage.call(runId)
      const decision = { decision: 'request_changes', reason: 'be polite', expectedRevision: 1, principal: APPROVER }
      await stage.api.post(`/action-approvals/${approvalId}/decisions`, decision, 'key')
      await until(async () => expect((await stage.run(runId)).status).toBe('completed'))
      expect(model().asked(goal)[1]?.envelope.results).toMatchObject([
        { kind: 'approval', status: 'changes_requested', error: 'be polite' },
      ])
    })

    test('a pool of action workers shows itself', async () => {
      const stage = await openStage(open())
      await startEngine(open(), stage)
      await until(async () =>
        expect((await stage.api.get('/agent-runs/admission')).body.workers).toMatchObject(
          expect.arrayContaining([expect.objectContaining({ kind: 'action', concurrency: 1 })]),
        ),
      )
    })
  },
  { ...servedParts(desk), agents: true },
)
