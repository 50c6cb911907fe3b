import { describe, expect, test } from 'vitest'
import { decide } from '../../src/kernel/engine/forks.ts'
import type { DependencyStatus } from '../../src/kernel/model/dependency.ts'
import type { Run } from '../../src/kernel/model/run.ts'
import { listRuns } from '../../src/kernel/store/runs.ts'
import { bench, useModel, type Bench } from './engine-support.ts'
import { describeStores } from './support.ts'

const model = useModel()
const DONE = { outcome: { status: 'completed', output: 'done' } }
const FAILED = { outcome: { status: 'failed', error: { code: 'lost', message: 'Lost' } } }

describe('when a fork is decided', () => {
  const s: DependencyStatus = 'succeeded'
  const f: DependencyStatus = 'failed'
  const p: DependencyStatus = 'pending'
  test.each([
    ['all', 'wait', [s, s], 'satisfied'],
    ['all', 'wait', [s, p], undefined],
    ['all', 'wait', [f, p], undefined],
    ['all', 'wait', [f, s], 'failed'],
    ['all', 'fail_fast', [f, p], 'failed'],
    ['any', 'wait', [p, s], 'satisfied'],
    ['any', 'fail_fast', [f, p], undefined],
    ['any', 'fail_fast', [f, 'canceled'], 'failed'],
    ['quorum', 'wait', [s, s, p], 'satisfied'],
    ['quorum', 'fail_fast', [f, f, p], 'failed'],
    ['quorum', 'wait', [f, f, p], undefined],
  ] as const)('kernel#58 %s, %s: %j is %s', (join, failure, statuses, expected) => {
    const dependencies = statuses.map((status) => ({ status }))
    expect(decide({ join, failure, ...(join === 'quorum' && { quorum: 2 }) }, dependencies)).toBe(expected)
  })
})

describeStores('forks', (open) => {
  /** A run that forks into these, and what it is told when it goes on. */
  async function fork(
    it: Bench,
    spec: object,
    children: Record<string, { outcome: Record<string, unknown> }>,
  ): Promise<Run> {
    const goal = it.goal('Split')
    for (const [key, answer] of Object.entries(children)) model().script(it.goal(key), [answer])
    const keys = Object.keys(children)
    model().script(goal, (envelope) => {
      if (envelope.results.length > 0) return { outcome: { status: 'completed', output: envelope.results } }
      return {
        outcome: { fork: { ...spec, children: keys.map((key) => ({ key, goal: it.goal(key), context: { key } })) } },
      }
    })
    return it.create({ goal, priority: 3 })
  }
  const childrenOf = async (it: Bench, parentRunId: string): Promise<Run[]> =>
    (await listRuns(open().store.database, it.scope, { parentRunId }, 'created_desc', { limit: 50 })).items

  test('kernel#58 all: the run waits for each child, and sees what came of them', async () => {
    const it = bench(open(), model())
    const { id, goal } = await fork(it, { join: 'all', failure: 'wait' }, { a: DONE, b: DONE })
    const parent = await it.claim()
    if (!parent) throw new Error('nothing was claimed')
    await it.turn(parent)
    expect(await it.read(id)).toMatchObject({
      status: 'waiting_for_dependency',
      wakeCondition: { type: 'run_dependencies' },
    })
    expect(await childrenOf(it, id)).toMatchObject([
      { source: 'fork', priority: 3, rootRunId: id, context: { key: 'b' } },
      { source: 'fork', priority: 3, rootRunId: id, context: { key: 'a' } },
    ])
    await it.work()
    const result = { kind: 'dependency', status: 'satisfied' }
    expect(await it.read(id)).toMatchObject({
      status: 'completed',
      output: [{ ...result, children: [{ key: 'a', status: 'succeeded', output: 'done' }, { key: 'b' }] }],
      pendingResults: [],
    })
    expect(model().asked(goal)).toHaveLength(2)
  })

  test('kernel#58 a child that ends at once does not wake its parent before the group is there', async () => {
    const it = bench(open(), model())
    const { id } = await fork(it, { join: 'any', failure: 'wait' }, { quick: DONE, other: DONE })
    const parent = await it.claim()
    if (!parent) throw new Error('nothing was claimed')
    await it.turn(parent)
    expect((await it.read(id)).status).toBe('waiting_for_dependency')
    const child = await it.claim()
    if (!child) throw new Error('no child was claimed')
    await it.turn(child)
    expect(await it.read(id)).toMatchObject({ status: 'queued', pendingResults: [{ status: 'satisfied' }] })
    expect((await it.eventTypes(id)).filter((type) => type === 'run.woken')).toHaveLength(1)
    await it.work()
    expect((await it.read(id)).status).toBe('completed')
    expect((await it.eventTypes(id)).filter((type) => type === 'run.woken')).toHaveLength(1)
  })

  test.each([
    ['fail_fast', 1],
    ['wait', 2],
  ])('kernel#58 all with %s: told of the failure after %i children', async (failure, ended) => {
    const it = bench(open(), model())
    const { id } = await fork(it, { join: 'all', failure }, { bad: FAILED, good: DONE })
    for (let turn = 0; turn <= ended; turn++) {
      expect((await it.read(id)).status).not.toBe('completed')
      const held = await it.claim()
      if (!held) throw new Error('nothing was claimed')
      await it.turn(held)
    }
    expect(await it.read(id)).toMatchObject({
      status: 'queued',
      pendingResults: [
        { kind: 'dependency', status: 'failed', children: [{ key: 'bad', error: { code: 'lost' } }, {}] },
      ],
    })
  })

  test('kernel#58 quorum of two in three', async () => {
    const it = bench(open(), model())
    const { id } = await fork(it, { join: 'quorum', quorum: 2, failure: 'wait' }, { a: FAILED, b: DONE, c: DONE })
    await it.work()
    expect(await it.read(id)).toMatchObject({ status: 'completed', output: [{ status: 'satisfied' }] })
  })

  test('children get parts of the budget; without room nothing is made, and the model is told', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Share')
    const part = (maxTurns: number): object => ({ key: `k${maxTurns}`, goal: it.goal('Part'), budget: { maxTurns } })
    model().script(it.goal('Part'), [DONE])
    model().script(goal, (_, request) => {
      if (request === 0) return { outcome: { fork: { join: 'all', failure: 'wait', children: [part(2), part(9)] } } }
      if (request === 1) return { outcome: { fork: { join: 'all', failure: 'wait', children: [part(2), part(3)] } } }
      return DONE
    })
    const { id } = await it.create({ goal, budget: { maxTurns: 10 } })
    const first = await it.claim()
    if (!first) throw new Error('nothing was claimed')
    await it.turn(first)
    expect(await it.read(id)).toMatchObject({
      status: 'queued',
      budgetAllocations: {},
      pendingResults: [
        { kind: 'error', status: 'refused', proposal: 'fork', error: expect.stringContaining('maxTurns') },
      ],
    })
    expect(await childrenOf(it, id)).toEqual([])
    const second = await it.claim()
    if (!second) throw new Error('nothing was claimed')
    await it.turn(second)
    const allocations = Object.values((await it.read(id)).budgetAllocations)
    expect(allocations.map(({ maxTurns = 0 }) => maxTurns).sort((a, b) => a - b)).toEqual([2, 3])
    await it.work()
    expect((await it.read(id)).status).toBe('completed')
  })

  test('a canceled parent takes its children along', async () => {
    const it = bench(open(), model())
    const { id } = await fork(it, { join: 'all', failure: 'wait' }, { a: DONE, b: DONE })
    const parent = await it.claim()
    if (!parent) throw new Error('nothing was claimed')
    await it.turn(parent)
    await it.command(id, { kind: 'cancel' })
    expect((await childrenOf(it, id)).map(({ status }) => status)).toEqual(['canceled', 'canceled'])
    expect((await it.read(id)).status).toBe('canceled')
    expect(await it.work()).toBe(0)
  })

  test('kernel#58 a parent that ends takes along at once the children that it did not wait for', async () => {
    const it = bench(open(), model())
    const waits = { outcome: { status: 'waiting_for_event', wakeCondition: { type: 'event', reference: 'never' } } }
    const { id } = await fork(it, { join: 'any', failure: 'wait' }, { a: DONE, b: waits })
    await it.work()
    expect((await it.read(id)).status).toBe('completed')
    expect((await childrenOf(it, id)).map(({ status }) => status).toSorted()).toEqual(['canceled', 'completed'])
  })

  test('a call of a runbook is refused, and the model told', async () => {
    const it = bench(open(), model())
    const goal = it.goal('Runbook')
    model().script(goal, (_, request) =>
      request === 0 ? { outcome: { runbookCall: { entrypoint: 'a', input: {} } } } : DONE,
    )
    const { id } = await it.create({ goal })
    await it.work()
    expect((await it.read(id)).status).toBe('completed')
    expect(model().asked(goal)[1]?.envelope.results).toMatchObject([
      { kind: 'error', proposal: 'runbook_call', error: 'runbooks cannot be called here' },
    ])
  })
})
