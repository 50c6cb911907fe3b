import { afterEach, expect, test, vi } from 'vitest'
import { Engine } from '../../src/kernel/engine/engine.ts'
import type { AgentRequest } from '../../src/kernel/model/request.ts'
import { raiseOverdue } from '../../src/kernel/requests/escalation.ts'
import { describeKernels, type ScopedApi } from './api.ts'
import { bench, useModel, type Bench } from './engine-support.ts'
import { install } from './registry-support.ts'

const model = useModel()
const BO = { type: 'agent', id: 'bo' }
const OPERATOR = { type: 'role', id: 'operator' }

/** The next of proposals that nobody can do, each another. */
const nothing = (request: number) => ({ outcome: { runbookCall: { entrypoint: `none ${request}`, input: {} } } })

const engines: Engine[] = []
afterEach(async () => {
  await Promise.all(engines.splice(0).map((engine) => engine.stop({ graceMs: 0 })))
})

describeKernels(
  'agents that do not get on',
  (open) => {
    interface Scene {
      it: Bench
      api: ScopedApi
      escalations(): Promise<AgentRequest[]>
    }

    async function sceneWith(escalation: object): Promise<Scene> {
      const it = bench(open(), model(), { context: open().kernel.context })
      const api = open().api(it.scope)
      for (const id of ['ana', 'bo']) {
        const manifest = { id, authority: { maximumRisk: 'read' }, skillRequirements: [], escalation }
        expect((await install(api, { manifest, deployment: { id } })).status).toBe(201)
      }
      const escalations = async (): Promise<AgentRequest[]> => (await api.get('/agent-requests?kind=escalation')).body
      return { it, api, escalations }
    }

    test('after so many failures a run asks for help, once, and goes on with what comes of it', async () => {
      const { it, api, escalations } = await sceneWith({ afterFailures: 2, recipient: BO })
      const goal = it.goal('Know the moons')
      model().script(goal, ({ results }, request) =>
        request < 2 || results.length === 0 ? nothing(request) : { outcome: { status: 'completed', output: results } },
      )
      const { id } = await it.create({ goal })
      expect(await it.work()).toBe(3)
      expect(model().asked(goal)).toHaveLength(2)
      expect(await it.read(id)).toMatchObject({ status: 'waiting_for_agent' })
      const [request, ...others] = await escalations()
      expect(others).toEqual([])
      expect(request).toMatchObject({
        status: 'pending',
        requester: { type: 'agent', id: 'ana' },
        recipient: BO,
        sourceRunId: id,
        goal: expect.stringContaining(goal),
        sharedContext: { runId: id, failures: ['runbook_call', 'runbook_call'] },
      })
      const shown = (await api.get(`/agent-runs/${id}`)).body
      expect(shown).not.toHaveProperty('escalation')

      const path = `/agent-requests/${request?.id}`
      const answer = { decision: 'accept', expectedRevision: 1, principal: BO }
      const accepted = await api.post(`${path}/responses`, answer)
      expect(accepted.body).toMatchObject({
        childRun: { source: 'escalation', assignedAgentId: 'bo' },
        sourceRun: { status: 'waiting_for_dependency' },
      })
      const done = { expectedRevision: 2, principal: BO, summary: 'Two moons' }
      expect((await api.post(`${path}/completions`, done, 'done')).status).toBe(200)
      await it.work()
      expect(await it.read(id)).toMatchObject({
        status: 'completed',
        output: [
          { kind: 'error' },
          { kind: 'request', requestKind: 'escalation', status: 'completed', summary: 'Two moons' },
        ],
      })
      expect(await it.eventTypes(id)).toEqual(expect.arrayContaining(['escalation.raised', 'escalation.resolved']))
      expect(await escalations()).toHaveLength(1)
    })

    test('a run that takes too long asks for help, also while it waits; nobody named means the operator', async () => {
      const { it, api, escalations } = await sceneWith({ afterDurationMs: 60_000 })
      const [sleeping, waiting] = [it.goal('Sleep'), it.goal('Wait')]
      const wakeAt = open().at(3_600_000)
      const asleep = { status: 'sleeping', wakeCondition: { type: 'timer', wakeAt } }
      model().script(sleeping, ({ results }) => ({
        outcome: results.length > 0 ? { status: 'completed', output: results } : asleep,
      }))
      model().script(waiting, [
        { outcome: { status: 'waiting_for_event', wakeCondition: { type: 'event', reference: 'mail' } } },
      ])
      const sleeper = await it.create({ goal: sleeping })
      const waiter = await it.create({ goal: waiting })
      await it.work()
      open().advance(59_999)
      await raiseOverdue(it.context)
      expect(await escalations()).toEqual([])
      open().advance(1)
      await raiseOverdue(it.context)
      await raiseOverdue(it.context)
      const raised = await escalations()
      expect(new Set(raised.map(({ sourceRunId }) => sourceRunId))).toEqual(new Set([sleeper.id, waiter.id]))
      expect(raised).toMatchObject([{ recipient: OPERATOR }, { recipient: OPERATOR }])
      expect(await it.read(sleeper.id)).toMatchObject({ status: 'waiting_for_agent' })
      expect(await it.read(waiter.id)).toMatchObject({ status: 'waiting_for_event' })
      const id = raised.find(({ sourceRunId }) => sourceRunId === sleeper.id)?.id
      const said = { decision: 'reject', expectedRevision: 1, principal: OPERATOR, message: 'Sleep on' }
      expect((await api.post(`/agent-requests/${id}/responses`, said)).status).toBe(200)
      await it.work()
      expect(await it.read(sleeper.id)).toMatchObject({
        status: 'completed',
        output: [{ kind: 'request', status: 'rejected', reason: 'Sleep on' }],
      })
    })

    test('of a run that is worked on the next turn asks', async () => {
      const { it, escalations } = await sceneWith({ afterDurationMs: 60_000 })
      const goal = it.goal('Go on and on')
      model().script(goal, [{ outcome: {} }])
      const { id } = await it.create({ goal })
      const first = await it.claim()
      if (!first) throw new Error('nothing was claimed')
      await it.turn(first)
      const second = await it.claim()
      if (!second) throw new Error('nothing was claimed')
      open().advance(20_000)
      await raiseOverdue(it.context)
      open().advance(40_000)
      await raiseOverdue(it.context)
      expect(await escalations()).toEqual([])
      const asked = model().asked(goal).length
      expect(await it.turn(second)).toBe(false)
      expect(await it.read(id)).toMatchObject({ status: 'waiting_for_agent' })
      expect(model().asked(goal)).toHaveLength(asked)
      expect(await escalations()).toHaveLength(1)
    })

    test('nobody is asked for help with what it works on itself, here or further up', async () => {
      const { it, api, escalations } = await sceneWith({ afterFailures: 1, recipient: BO })
      const goal = it.goal('Circle')
      model().script(goal, (_, request) =>
        request < 2 ? nothing(request) : { outcome: { status: 'completed', output: request } },
      )
      const own = await it.create({ goal, assignedAgentId: 'bo' })
      await it.work()
      expect(await it.read(own.id)).toMatchObject({ status: 'completed', output: 2 })
      expect(await escalations()).toEqual([])

      const above = await it.create({ goal: it.goal('Above'), assignedAgentId: 'bo', availableAt: open().at(1e9) })
      const child = await it.create({ goal: it.goal('Below'), parentRunId: above.id })
      model().script(it.goal('Below'), (_, request) => nothing(request))
      await it.work()
      expect(await it.read(child.id)).toMatchObject({ status: 'failed' })
      expect(await escalations()).toEqual([])
      expect((await api.get(`/agent-runs/${above.id}`)).body.status).toBe('queued')
    })

    test('the helper gets half of the budget that is left', async () => {
      const { it, escalations } = await sceneWith({ afterFailures: 1, recipient: BO })
      const goal = it.goal('With a budget')
      model().script(goal, (_, request) => nothing(request))
      const { id } = await it.create({ goal, budget: { maxTurns: 9 } })
      await it.work()
      expect(await escalations()).toMatchObject([{ sourceRunId: id, budgetAllocation: { maxTurns: 4 } }])
    })

    test('what is refused is asked again a minute later', async () => {
      const { it, api, escalations } = await sceneWith({ afterDurationMs: 60_000, recipient: BO })
      const goal = it.goal('Wait for room')
      const wakeCondition = { type: 'event', reference: 'mail' }
      model().script(goal, [{ outcome: { status: 'waiting_for_event', wakeCondition } }])
      const { id } = await it.create({ goal, budget: { maxTurns: 2 } })
      await it.work()
      open().advance(60_000)
      await raiseOverdue(it.context)
      expect(await escalations()).toEqual([])
      const { revision: expectedRevision } = await it.read(id)
      const raised = { kind: 'intervene', expectedRevision, budgetTopUp: { maxTurns: 4 } }
      expect((await api.post(`/agent-runs/${id}/commands`, raised)).status).toBe(200)
      open().advance(59_999)
      await raiseOverdue(it.context)
      expect(await escalations()).toEqual([])
      open().advance(1)
      await raiseOverdue(it.context)
      expect(await escalations()).toMatchObject([{ sourceRunId: id, budgetAllocation: { maxTurns: 2 } }])
    })

    test('the engine asks by itself', async () => {
      const { it, escalations } = await sceneWith({ afterDurationMs: 1 })
      const goal = it.goal('By itself')
      const wakeCondition = { type: 'event', reference: 'never' }
      model().script(goal, [{ outcome: { status: 'waiting_for_event', wakeCondition } }])
      await it.create({ goal })
      await it.work()
      open().advance(10)
      const options = { modelHost: it.parts.model, runWorkers: [{ scopes: [it.scope], pollIntervalMs: 20 }] }
      const engine = new Engine(it.context, open().kernel.hints, options)
      engines.push(engine)
      await engine.start()
      await vi.waitFor(async () => expect(await escalations()).toHaveLength(1), { timeout: 20_000, interval: 20 })
    })
  },
  { agents: true },
)
