import { expect, test } from 'vitest'
import type { Queryable } from '../../src/database/database.ts'
import type { KernelStore } from '../../src/kernel/store/store.ts'
import { bench, overlaid, useModel } from './engine-support.ts'
import { describeStores } from './support.ts'

const model = useModel()

/** A store that counts the statements that are run on it; those that open and close transactions are not among them. */
function counting(store: KernelStore): { store: KernelStore; count(): number } {
  let statements = 0
  const counted = (db: Queryable): Pick<Queryable, 'get' | 'all' | 'run'> => ({
    get: (sql, params) => (statements++, db.get(sql, params)),
    all: (sql, params) => (statements++, db.all(sql, params)),
    run: (sql, params) => (statements++, db.run(sql, params)),
  })
  const { database } = store
  const watched = overlaid(database, {
    ...counted(database),
    transaction: (fn) => database.transaction((tx) => fn({ dialect: tx.dialect, ...counted(tx) })),
  })
  return { store: { ...store, database: watched, now: () => store.now() }, count: () => statements }
}

describeStores('what a turn costs', (open) => {
  test.each([0, 300])(
    'kernel#46 a turn takes 17 statements, 12 on PostgreSQL, beside %i dormant runs',
    async (dormant) => {
      const counted = counting(open().store)
      const it = bench({ ...open(), store: counted.store }, model())
      const goal = it.goal(`Steps beside ${dormant}`)
      model().script(goal, [{ outcome: {} }])
      const availableAt = open().at(86_400_000)
      for (let i = 0; i < dormant; i++) await it.create({ goal: 'Later', availableAt })
      const { id } = await it.create({ goal })
      const before = counted.count()
      const held = await it.claim({ sweep: false })
      if (!held) throw new Error('nothing was claimed')
      await it.turn(held)
      expect(counted.count() - before).toBe(open().place.driver === 'postgres' ? 12 : 17)
      expect(await it.read(id)).toMatchObject({ status: 'queued', lastAppliedTurn: 1 })
    },
  )
})
