import { expect, test } from 'vitest'
import type { Objective } from '../../src/kernel/model/objective.ts'
import { findKey, useKey } from '../../src/kernel/store/keys.ts'
import { listObjectives, objectives } from '../../src/kernel/store/objectives.ts'
import {
  findRecord,
  insertRecord,
  lockRecord,
  readRecord,
  saveRecord,
  type Key,
} from '../../src/kernel/store/records.ts'
import { insertRun, listRuns, runs, saveRun } from '../../src/kernel/store/runs.ts'
import { describeStores, objectiveOf, runOf } from './support.ts'

describeStores('records of the store', (open) => {
  test('a record comes back as it was written, in its scope alone', async () => {
    const { store, scope } = open()
    const mine = scope()
    const objective = objectiveOf(open(), { scope: mine, constraints: { 'ключ "q"': [1.5, 'ä\u0000'.slice(0, 1)] } })
    await store.database.transaction((tx) => insertRecord(tx, objectives, objective))
    expect(await readRecord(store.database, objectives, mine, objective.id)).toEqual(objective)
    expect(await findRecord(store.database, objectives, scope(), objective.id)).toBeUndefined()
    await expect(readRecord(store.database, objectives, scope(), objective.id)).rejects.toMatchObject({
      code: 'not_found',
    })
    const again = store.database.transaction((tx) => insertRecord(tx, objectives, objective))
    await expect(again).rejects.toMatchObject({ code: 'conflict' })
  })

  test('kernel#5 scopes whose parts look alike do not mix', async () => {
    const { store } = open()
    const [one, two] = [
      { kind: 'a/b', id: 'c%' },
      { kind: 'a', id: 'b/c%' },
    ]
    const objective = objectiveOf(open(), { scope: one })
    await store.database.transaction((tx) => insertRecord(tx, objectives, objective))
    expect(await findRecord(store.database, objectives, two, objective.id)).toBeUndefined()
  })

  test('a save needs the revision that was read', async () => {
    const { store, scope, advance, at } = open()
    const objective = objectiveOf(open(), { scope: scope() })
    await store.database.transaction((tx) => insertRecord(tx, objectives, objective))
    advance(5)
    const saved = await store.database.transaction((tx) =>
      saveRecord(tx, objectives, { ...objective, title: 'Suns' }, store.now()),
    )
    expect(saved).toMatchObject({ revision: 2, title: 'Suns', updatedAt: at() })
    const stale = store.database.transaction((tx) => saveRecord(tx, objectives, objective, store.now()))
    await expect(stale).rejects.toThrow('revision conflict: expected 1, current 2')
  })

  test('of racing writers that lock, none loses a change', async () => {
    const { store, scope } = open()
    const objective = objectiveOf(open(), { scope: scope() })
    await store.database.transaction((tx) => insertRecord(tx, objectives, objective))
    await Promise.all(
      Array.from({ length: 20 }, () =>
        store.database.transaction(async (tx) => {
          const current = await lockRecord(tx, objectives, objective.scope, objective.id)
          await saveRecord(tx, objectives, { ...current, priority: current.priority + 1 }, store.now())
        }),
      ),
    )
    const last = await readRecord(store.database, objectives, objective.scope, objective.id)
    expect(last).toMatchObject({ priority: 20, revision: 21 })
  })

  test('objectives: the highest priority, then the last changed, by owner and state', async () => {
    const { store, scope, advance } = open()
    const mine = scope()
    const made: Objective[] = []
    for (const [title, priority, status] of [
      ['a', 0, 'draft'],
      ['b', 5, 'active'],
      ['c', 5, 'retired'],
      ['d', 1, 'active'],
    ] as const) {
      advance(1)
      made.push(
        objectiveOf(open(), { scope: mine, title, priority, status, owner: { type: 'team', id: `t-${title}` } }),
      )
    }
    await store.database.transaction(async (tx) => {
      for (const objective of made) await insertRecord(tx, objectives, objective)
    })
    const titles = async (filter: Parameters<typeof listObjectives>[2]): Promise<string> =>
      (await listObjectives(store.database, mine, filter, { limit: 10, now: store.now() })).items
        .map(({ title }) => title)
        .join('')
    expect(await titles({})).toBe('cbda')
    expect(await titles({ status: ['active', 'draft'] })).toBe('bda')
    expect(await titles({ owner: { type: 'team', id: 't-d' } })).toBe('d')
  })

  test('kernel#12 250 runs walked by key under inserts and updates: each old run once', async () => {
    const { store, scope, advance } = open()
    const mine = scope()
    const old = Array.from({ length: 250 }, (_, i) => {
      if (i % 3 === 0) advance(1)
      return runOf(open(), { scope: mine, priority: i % 4 })
    })
    await store.database.transaction(async (tx) => {
      for (const run of old) await insertRun(tx, run)
    })
    const seen: string[] = []
    let after: Key | undefined
    do {
      const page = await listRuns(store.database, mine, {}, 'scheduler', { limit: 40, ...(after && { after }) })
      seen.push(...page.items.map(({ id }) => id))
      after = page.next
      await store.database.transaction(async (tx) => {
        await insertRun(tx, runOf(open(), { scope: mine, priority: 3 }))
        await insertRun(tx, runOf(open(), { scope: mine, priority: 0 }))
        const touched = await lockRecord(tx, runs, mine, seen.at(-1) ?? '')
        await saveRun(tx, { ...touched, checkpoint: { at: seen.length } }, store.now())
      })
    } while (after)
    const before = new Set(old.map(({ id }) => id))
    expect(seen.filter((id) => before.has(id)).sort()).toEqual([...before].sort())
    expect(new Set(seen).size).toBe(seen.length)
  })

  test('kernel#48 q is a literal part of goal or state in any case; the newest come first when asked', async () => {
    const { store, scope, advance } = open()
    const mine = scope()
    const goals = ['100% of Äpfel', '100 of them', 'snake_case', 'snakeXcase']
    await store.database.transaction(async (tx) => {
      for (const goal of goals) {
        advance(1)
        await insertRun(tx, runOf(open(), { scope: mine, goal }))
      }
    })
    const found = async (q: string): Promise<string[]> =>
      (await listRuns(store.database, mine, { q }, 'created_desc', { limit: 10 })).items.map(({ goal }) => goal)
    expect(await found('100%')).toEqual(['100% of Äpfel'])
    expect(await found('ÄPFEL')).toEqual(['100% of Äpfel'])
    expect(await found('e_c')).toEqual(['snake_case'])
    expect(await found('QUEUED')).toEqual(goals.toReversed())
  })

  test('every filter of runs', async () => {
    const { store, scope } = open()
    const mine = scope()
    const other = runOf(open(), { scope: mine, goal: 'other', owner: { type: 'team', id: 'x' } })
    const wanted = runOf(open(), {
      scope: mine,
      kind: 'conversation',
      source: 'chat',
      status: 'completed',
      objectiveId: 'o',
      projectId: 'p',
      parentRunId: other.id,
      rootRunId: other.id,
      assignedAgentId: 'bo',
    })
    await store.database.transaction(async (tx) => {
      await insertRun(tx, other)
      await insertRun(tx, wanted)
    })
    for (const filter of [
      { kind: ['conversation'] },
      { source: ['chat', 'event'] },
      { status: ['completed'] },
      { objectiveId: 'o' },
      { projectId: 'p' },
      { parentRunId: other.id },
      { rootRunId: other.id, owner: { type: 'agent', id: 'ana' } },
      { assignedAgentId: 'bo' },
      { owner: { type: 'agent', id: 'ana' } },
    ] satisfies Parameters<typeof listRuns>[2][]) {
      const { items } = await listRuns(store.database, mine, filter, 'scheduler', { limit: 10 })
      expect({ filter, items }).toEqual({ filter, items: [wanted] })
    }
    const { items } = await listRuns(store.database, mine, {}, 'scheduler', { limit: 1, offset: 1 })
    expect(items).toHaveLength(1)
  })

  test('kernel#20 50 writes with one key at once: one effect, and its record for all', async () => {
    const { store, scope, newId } = open()
    const mine = scope()
    const use = { scope: mine, route: 'POST /objectives', keyHash: 'k', fingerprint: 'f' }
    const results = await Promise.all(
      Array.from({ length: 50 }, async () => {
        const objective = objectiveOf(open(), { scope: mine, id: newId() })
        return store.database.transaction(async (tx) => {
          const earlier = await useKey(tx, use, objective.id, store.now())
          if (earlier !== undefined) return { id: earlier, made: false }
          await insertRecord(tx, objectives, objective)
          return { id: objective.id, made: true }
        })
      }),
    )
    expect(results.filter(({ made }) => made)).toHaveLength(1)
    expect(new Set(results.map(({ id }) => id)).size).toBe(1)
    expect((await listObjectives(store.database, mine, {}, { limit: 10, now: store.now() })).items).toHaveLength(1)
  })

  test('kernel#19 a key belongs to its scope and route; kernel#17 other content is a conflict', async () => {
    const { store, scope } = open()
    const use = { scope: scope(), route: 'POST /objectives', keyHash: 'k', fingerprint: 'f' }
    await store.database.transaction((tx) => useKey(tx, use, 'o1', 1))
    expect(await findKey(store.database, use)).toBe('o1')
    expect(await findKey(store.database, { ...use, scope: scope() })).toBeUndefined()
    expect(await findKey(store.database, { ...use, route: 'POST /projects' })).toBeUndefined()
    await expect(findKey(store.database, { ...use, fingerprint: 'g' })).rejects.toMatchObject({ code: 'conflict' })
  })

  test('kernel#22 a refused write consumes no key', async () => {
    const { store, scope } = open()
    const use = { scope: scope(), route: 'POST /objectives', keyHash: 'k', fingerprint: 'f' }
    const refused = store.database.transaction(async (tx) => {
      await useKey(tx, use, 'o1', 1)
      throw new Error('refused')
    })
    await expect(refused).rejects.toThrow('refused')
    expect(await findKey(store.database, use)).toBeUndefined()
  })
})
