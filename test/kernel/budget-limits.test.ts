import { expect, test } from 'vitest'
import { openStage, servedParts, useDesk } from './actions-support.ts'
import { describeKernels } from './api.ts'
import { bench, useModel } from './engine-support.ts'
import { install } from './registry-support.ts'

const desk = useDesk()
const model = useModel()

describeKernels(
  'budgets at their limit',
  (open) => {
    test.each([
      ['maxTurns', { maxTurns: 1 }],
      ['maxActions', { maxActions: 1 }],
      ['maxOutputTokens', { maxOutputTokens: 10 }],
    ])(
      'kernel#31 a proposal exactly at the limit of %s is honoured; the next turn asks for more',
      async (_, budget) => {
        const stage = await openStage(open())
        const it = bench({ ...open(), scope: () => stage.scope }, model(), { context: open().kernel.context })
        const goal = it.goal(`Look, with ${JSON.stringify(budget)}`)
        const action = { bindingId: 'desk', action: 'look', arguments: { text: 'hello' }, summary: 'Looks' }
        model().script(goal, (_envelope, request) => ({
          outcome: { action: { ...action, arguments: { text: `${request}` } } },
        }))
        const { id } = await it.create({ goal, budget })
        expect(await it.work()).toBe(1)
        expect(await it.read(id)).toMatchObject({ status: 'waiting_for_dependency' })
        expect(await stage.work()).toBe(true)
        expect(await stage.call(id)).toMatchObject({ status: 'succeeded' })
        await it.work()
        const [dimension] = Object.keys(budget)
        const paused = await it.read(id)
        expect(paused).toMatchObject({
          status: 'paused',
          pauseReason: 'budget',
          budgetState: 'exhausted',
          budgetAdmission: { dimension, remaining: 0 },
          budgetUsage: { actions: 1 },
        })
        expect(paused.error).toBeUndefined()
        expect(await stage.calls(id)).toHaveLength(1)
        const command = { kind: 'resume', expectedRevision: paused.revision }
        const refused = await stage.api.post(`/agent-runs/${id}/commands`, command)
        expect([refused.status, refused.body.error]).toEqual([409, expect.stringContaining(String(dimension))])
        model().script(goal, [{ outcome: { status: 'completed', output: 'seen' } }])
        const more = { ...command, budgetTopUp: { [String(dimension)]: 100 } }
        expect((await stage.api.post(`/agent-runs/${id}/commands`, more)).status).toBe(200)
        await it.work()
        expect(await it.read(id)).toMatchObject({ status: 'completed', output: 'seen' })
      },
    )

    test('an agent stays under the ceilings of its definition and its deployment, whatever budget its run was given', async () => {
      const stage = await openStage(open())
      const authority = {
        maximumRisk: 'read',
        maxConcurrentRuns: 2,
        budgetCeilings: { maxTurns: 3, maxOutputTokens: 500 },
      }
      const { status } = await install(stage.api, {
        manifest: { id: 'bea', authority, skillRequirements: [] },
        deployment: { id: 'bea', restrictions: { budgetCeilings: { maxTurns: 2 } } },
      })
      expect(status).toBe(201)
      const it = bench({ ...open(), scope: () => stage.scope }, model(), { context: open().kernel.context })
      for (const budget of [undefined, { maxTurns: 50, maxActions: 5 }]) {
        const goal = it.goal(`Go on for ever, ${budget ? 'with a budget' : 'without'}`)
        model().script(goal, [{ outcome: {} }])
        const { id } = await it.create({ goal, owner: { type: 'agent', id: 'bea' }, ...(budget && { budget }) })
        await it.work()
        expect(await it.read(id)).toMatchObject({
          status: 'paused',
          pauseReason: 'budget',
          budget: { ...budget, maxTurns: 2, maxOutputTokens: 500 },
          budgetUsage: { turns: 2 },
        })
      }
    })
  },
  { ...servedParts(desk), agents: true },
)
