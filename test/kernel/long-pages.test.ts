import { expect, test } from 'vitest'
import { insertRun, listRuns } from '../../src/kernel/store/runs.ts'
import { describeStores, runOf } from './support.ts'

describeStores('long pages', (open) => {
  test('kernel#12 a page of the longest records is shorter than asked for; the walk goes on behind it', async () => {
    const { store, scope: newScope } = open()
    const scope = newScope()
    const context = { pad: 'x'.repeat(8_300_000) }
    const made = Array.from({ length: 9 }, () => runOf(open(), { scope, context }))
    for (const run of made) await store.database.transaction((tx) => insertRun(tx, run))
    const { items: first, next } = await listRuns(store.database, scope, {}, 'scheduler', { limit: 100 })
    expect(first).toHaveLength(8)
    const { items: rest, ...end } = await listRuns(store.database, scope, {}, 'scheduler', {
      limit: 100,
      after: next ?? [],
    })
    expect([...first, ...rest].map(({ id }) => id)).toEqual(made.map(({ id }) => id))
    expect(end).toEqual({})
  })
})
