import { expect, test } from 'vitest'
import type { Run } from '../../src/kernel/model/run.ts'
import { reconcileRequests } from '../../src/kernel/requests/reconcile.ts'
import { listRequests } from '../../src/kernel/store/requests.ts'
import { listRuns } from '../../src/kernel/store/runs.ts'
import { bench, useModel, type Bench } from './engine-support.ts'
import { describeStores } from './support.ts'

const model = useModel()
const BO = { type: 'agent', id: 'bo' }

describeStores('requests that models make and decide', (open) => {
  async function decisionRun(it: Bench): Promise<Run> {
    await reconcileRequests(it.context, it.scope)
    const source = ['agent_request_decision'] as const
    const { items } = await listRuns(open().store.database, it.scope, { source }, 'created_desc', { limit: 1 })
    const [run] = items
    if (!run) throw new Error('no decision run was made')
    return run
  }

  /** A run whose model asks Bo, and ends with what came of it. */
  async function delegating(it: Bench, kind: 'request' | 'handoff'): Promise<Run> {
    const goal = it.goal('Know the moons')
    model().script(goal, ({ results }) => ({
      outcome:
        results.length > 0
          ? { status: 'completed', output: results }
          : { delegation: { kind, recipient: BO, goal: it.goal('Count them'), instructions: 'At night' } },
    }))
    return it.create({ goal })
  }

  test('kernel#77 a delegation is decided by the recipient, done in its run, and its result seen by the next turn', async () => {
    const it = bench(open(), model())
    const { id } = await delegating(it, 'request')
    await it.work()
    expect(await it.read(id)).toMatchObject({ status: 'waiting_for_agent' })
    const decision = await decisionRun(it)
    model().script(decision.goal, [{ outcome: { status: 'completed', output: { decision: 'accept' } } }])
    model().script(it.goal('Count them'), [{ outcome: { status: 'completed', output: { moons: 2 } } }])
    await it.work()
    expect(await it.read(id)).toMatchObject({ status: 'waiting_for_agent' })
    await reconcileRequests(it.context, it.scope)
    await it.work()
    expect(await it.read(id)).toMatchObject({
      status: 'completed',
      output: [{ kind: 'request', status: 'completed', output: { moons: 2 } }],
      pendingResults: [],
    })
    const { items } = await listRequests(open().store.database, it.scope, { sourceRunId: id }, { limit: 10 })
    expect(items).toMatchObject([{ status: 'completed', requester: { id: 'ana' }, assignedAgentId: 'bo' }])
  })

  test('kernel#76 a handoff that the recipient takes ends the run of the one who asked', async () => {
    const it = bench(open(), model())
    const { id } = await delegating(it, 'handoff')
    await it.work()
    const decision = await decisionRun(it)
    model().script(decision.goal, [{ outcome: { status: 'completed', output: { decision: 'accept' } } }])
    model().script(it.goal('Count them'), [{ outcome: { status: 'completed', output: 'two' } }])
    await it.work()
    await reconcileRequests(it.context, it.scope)
    await it.work()
    expect(await it.read(id)).toMatchObject({ status: 'completed' })
    const { items } = await listRequests(open().store.database, it.scope, { sourceRunId: id }, { limit: 10 })
    expect(items).toMatchObject([{ status: 'completed', kind: 'handoff' }])
    expect(await it.read(items[0]?.childRunId ?? '')).toMatchObject({ status: 'completed', owner: BO })
  })

  test('a run that decides does nothing else', async () => {
    const it = bench(open(), model())
    await delegating(it, 'request')
    await it.work()
    const decision = await decisionRun(it)
    const delegation = { kind: 'request', recipient: { type: 'agent', id: 'cy' }, goal: 'You do it' }
    model().script(decision.goal, ({ results }) => ({
      outcome: results.length > 0 ? { status: 'completed', output: { decision: 'reject' } } : { delegation },
    }))
    await it.work()
    const told = model().asked(decision.goal)[1]?.envelope.results
    expect(told).toMatchObject([{ kind: 'error', error: expect.stringContaining('this run decides') }])
    const { items } = await listRequests(open().store.database, it.scope, {}, { limit: 10 })
    expect(items).toHaveLength(1)
  })
})
