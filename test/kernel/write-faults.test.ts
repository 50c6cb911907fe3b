import { afterAll, expect, test } from 'vitest'
import type { Scope } from '../../src/kernel/model/fields.ts'
import { scopeKey } from '../../src/kernel/store/scope-key.ts'
import { DEFAULT_POLICY, servedParts, useDesk } from './actions-support.ts'
import { describeKernels, openKernel, type OpenKernel } from './api.ts'
import { faultyStore } from './faulty-store.ts'
import { STEPS, WRITES } from './writes.ts'

const desk = useDesk()
const PARTS = { ...servedParts(desk), actions: { ...desk.parts, policy: DEFAULT_POLICY }, agents: true }

/** That a cascade is done is noted after all of it, in a transaction of its own: without the note it is looked at again. */
const WRITING = /\b(INSERT INTO|UPDATE|DELETE FROM) kernel_(?!run_cascades)/
/** What the registry does stands in its own records, activations and definitions; that a call was claimed, in its journal. */
const SILENT = /installation|deployment|activation|rollback|evaluation|amendment|team|claim of a call/

/** All rows of a scope, and how many of them are events. */
async function contents(
  { store: { database } }: OpenKernel,
  scope: Scope,
): Promise<{ rows: string[]; events: number }> {
  const tables = await database.all<{ name: string }>(
    database.dialect === 'sqlite'
      ? `SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'kernel%' ORDER BY name`
      : `SELECT tablename AS name FROM pg_catalog.pg_tables WHERE tablename LIKE 'kernel%' ORDER BY 1`,
  )
  const rows: string[] = []
  for (const { name } of tables.filter((table) => table.name !== 'kernel_meta')) {
    const found = await database.all(`SELECT * FROM ${name} WHERE scope = $1`, [scopeKey(scope)])
    rows.push(...found.map((row) => `${name} ${JSON.stringify(row)}`).sort())
  }
  return { rows, events: rows.filter((row) => row.startsWith('kernel_events ')).length }
}

interface Trial {
  status: number | undefined
  rows: string[]
  events: number
}

describeKernels(
  'writes whose database fails',
  (open) => {
    let faulty: OpenKernel | undefined
    /** How many statements that write go well before one fails, once. */
    let left = Infinity
    const fails = (sql: string): boolean => WRITING.test(sql) && left-- === 0
    afterAll(() => faulty?.stop())

    /** Lets the first statement fail, then the second, and so on, until none is left to fail. */
    async function tryEach(scope: Scope, act: (kernel: OpenKernel) => Promise<number | undefined>) {
      faulty ??= await openKernel({ ...open(), store: faultyStore(open().store, fails) }, PARTS)
      const failed: Trial[] = []
      for (;;) {
        left = failed.length
        const status = await act(faulty)
        const trial = { status, ...(await contents(open(), scope)) }
        if (left >= 0) return { failed, done: trial }
        failed.push(trial)
      }
    }

    test.each(Object.entries({ ...WRITES, ...STEPS }))(
      'kernel#10 kernel#89 %s: whichever statement fails, nothing is left; then all of it, with its events',
      async (name, prepare) => {
        const { scope, act } = await prepare(open())
        const before = await contents(open(), scope)
        const { failed, done } = await tryEach(scope, act)
        const isRequest = name in WRITES
        expect(failed.length).toBeGreaterThan(0)
        expect(failed).toEqual(failed.map(() => ({ status: isRequest ? 500 : undefined, ...before })))
        expect(isRequest ? [200, 201] : [undefined]).toContain(done.status)
        expect(done.rows).not.toEqual(before.rows)
        expect(done.events > before.events).toBe(!SILENT.test(name))
      },
    )
  },
  PARTS,
)
