import type { Database, Queryable } from '../../src/database/database.ts'
import type { KernelStore } from '../../src/kernel/store/store.ts'

/** The same store, whose writes fail where `fails` says so of their SQL. */
export function faultyStore(store: KernelStore, fails: (sql: string) => boolean): KernelStore {
  const { database } = store
  const guard = (db: Queryable): Queryable => ({
    dialect: db.dialect,
    get: (sql, params) => (fails(sql) ? refuse(sql) : db.get(sql, params)),
    all: (sql, params) => (fails(sql) ? refuse(sql) : db.all(sql, params)),
    run: (sql, params) => (fails(sql) ? refuse(sql) : db.run(sql, params)),
  })
  const faulty: Database = {
    ...guard(database),
    location: database.location,
    transaction: (fn) => database.transaction((tx) => fn(guard(tx))),
    snapshot: (fn) => database.snapshot((view) => fn(guard(view))),
    version: () => database.version(),
    ping: () => database.ping(),
    scrub: () => database.scrub(),
    close: () => database.close(),
  }
  return { ...store, database: faulty }
}

const refuse = async (sql: string): Promise<never> => {
  throw new Error(`the disk is broken: ${sql.slice(0, 40)}`)
}
