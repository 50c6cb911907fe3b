import { expect, test } from 'vitest'
import { freeSlots } from '../../src/kernel/store/slots.ts'
import { hasPostgres } from '../support/postgres.ts'
import { overlaid } from './engine-support.ts'
import { createStorePlace, openStore } from './support.ts'

test.skipIf(!hasPostgres)('slots that are freed are locked in the order of their key', async () => {
  const open = await openStore(await createStorePlace('postgres'))
  const { database } = open.store
  const plan: string[] = []
  const explaining = overlaid(database, {
    run: async (sql, params) => {
      const steps = await database.all<{ 'QUERY PLAN': string }>(`EXPLAIN ${sql}`, params)
      plan.push(...steps.map((step) => step['QUERY PLAN']))
      return 0
    },
  })
  await freeSlots(explaining, open.scope(), [{ id: 'a run' }])
  expect(plan.join('\n')).toMatch(
    /Insert on kernel_slots[^]*Sort Key: kernel_run_slots.kind(?: COLLATE "C")?, kernel_run_slots.name COLLATE "C"/,
  )
  await open.store.close()
  await open.place.remove()
})
