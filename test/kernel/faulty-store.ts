import type { Database, Queryable } from '../../src/database/database.ts'
import type { KernelStore } from '../../src/kernel/store/store.ts'

/** The same store, whose writes fail where `fails` says so of their SQL. @param code of the database */
export function faultyStore(store: KernelStore, fails: (sql: string) => boolean, code?: string): KernelStore {
  const { database } = store
  /** The database refuses it too: nothing that comes behind it in its transaction counts. */
  const refuse = async (db: Queryable, sql: string): Promise<never> => {
    await db.get(`SELECT CAST('the disk is broken' AS INTEGER)`).catch(() => undefined)
    throw Object.assign(new Error(`the disk is broken: ${sql.slice(0, 40)}`), code !== undefined && { code })
  }
  const guard = (db: Queryable): Queryable => ({
    dialect: db.dialect,
    get: (sql, params) => (fails(sql) ? refuse(db, sql) : db.get(sql, params)),
    all: (sql, params) => (fails(sql) ? refuse(db, sql) : db.all(sql, params)),
    run: (sql, params) => (fails(sql) ? refuse(db, sql) : db.run(sql, params)),
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
