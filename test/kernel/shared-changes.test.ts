import { expect, test } from 'vitest'
import type { Change } from '../../src/kernel/change.ts'
import { BY_KERNEL } from '../../src/kernel/change.ts'
import { KernelError } from '../../src/kernel/errors.ts'
import { createRun } from '../../src/kernel/runs/create.ts'
import { makeShared } from '../../src/kernel/shared-changes.ts'
import { insertRecord, readRecord, saveRecord } from '../../src/kernel/store/records.ts'
import { objectives } from '../../src/kernel/store/objectives.ts'
import { listRuns } from '../../src/kernel/store/runs.ts'
import { listEvents } from '../../src/kernel/store/events.ts'
import { contextOf, describeStores, objectiveOf } from './support.ts'

const OWNER = { type: 'agent', id: 'ana' } as const
const PAGE = { limit: 100 }

describeStores('changes that are asked for at the same time', (open) => {
  test('each is made, by whom it is asked for; one that cannot be fails alone', async () => {
    const scope = open().scope()
    const context = contextOf(open())
    const make = (name: string): Promise<unknown> =>
      makeShared(context, scope, { ...BY_KERNEL, actor: { type: 'user', id: name } }, (change) => {
        if (name === 'eve') throw new KernelError('conflict', 'not this one')
        return createRun(change, { id: `run of ${name}`, owner: OWNER, goal: name })
      })
    const made = await Promise.allSettled(['una', 'eve', 'bo'].map(make))
    expect(made.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(made[0]).toMatchObject({
      value: { result: { id: 'run of una' }, events: [{ eventType: 'run.created', runId: 'run of una', sequence: 1 }] },
    })
    expect(made[1]).toMatchObject({ reason: { code: 'conflict', message: 'not this one' } })
    const { items } = await listRuns(open().store.database, scope, {}, 'scheduler', PAGE)
    expect(items.map(({ goal }) => goal).toSorted()).toEqual(['bo', 'una'])
    const told = await listEvents(open().store.database, scope, {}, { order: 'asc', limit: 10, details: false })
    expect(told.map(({ event: { actor, runId } }) => `${actor.id}: ${runId}`).toSorted()).toEqual([
      'bo: run of bo',
      'una: run of una',
    ])
  })

  test('of two that write the same record, each sees what the other wrote', async () => {
    const scope = open().scope()
    const context = contextOf(open())
    const { database } = open().store
    const { id } = await database.transaction((tx) => insertRecord(tx, objectives, objectiveOf(open(), { scope })))
    const raise = async ({ tx, now }: Change): Promise<unknown> => {
      const objective = await readRecord(tx, objectives, scope, id)
      return saveRecord(tx, objectives, { ...objective, priority: objective.priority + 1 }, now)
    }
    const again = async (): Promise<unknown> => {
      try {
        return await makeShared(context, scope, BY_KERNEL, raise)
      } catch (error) {
        if (error instanceof KernelError) return again()
        throw error
      }
    }
    await Promise.all([again(), again(), again()])
    expect(await readRecord(database, objectives, scope, id)).toMatchObject({ priority: 3, revision: 4 })
  })
})
