import { test } from 'vitest'
import { appendFileSync } from 'node:fs'
import type { Param, Queryable } from '../../src/database/database.ts'
import { listDependencies } from '../../src/kernel/store/dependencies.ts'
import { findLapsedCalls, findReadyCall } from '../../src/kernel/store/calls.ts'
import { findUndecided } from '../../src/kernel/store/request-runs.ts'
import { listDue, listNotDue, readSlotBlocks } from '../../src/kernel/store/run-admission.ts'
import { findLiveDescendants } from '../../src/kernel/store/run-cascades.ts'
import { findClaimable, markDue } from '../../src/kernel/store/run-claims.ts'
import { findNextWake, findWaiting } from '../../src/kernel/store/run-wakes.ts'
import { listWorkers } from '../../src/kernel/store/workers.ts'
import { fillTables, idOf, SCOPE } from './query-plans-support.ts'
import { createStorePlace } from './support.ts'
const NOW = 1_900_000_000_000
const LIMITS = { agent: 1, owner: 0, objective: 0, concurrency_key: 0 }
const asking = { kinds: ['agent_work' as const], limits: LIMITS, knownAgents: true, now: NOW }
const RUN = idOf('r', 700)
const out = (s: string) => appendFileSync('/tmp/scratch.out', s + '\n')
for (const driver of ['sqlite', 'postgres'] as const)
  test(driver, async () => {
    const place = await createStorePlace(driver)
    const store = await place.open()
    const db = store.database
    await fillTables(db, 100_000)
    const cases: [string, (db: Queryable) => Promise<unknown>][] = [
      ['claim', (db) => findClaimable(db, SCOPE, asking)],
      ['waiting', (db) => findWaiting(db, SCOPE, { type: 'event', reference: 'event 7', limit: 100 })],
      ['descendants', (db) => findLiveDescendants(db, SCOPE, { id: RUN, status: 'canceled' }, 100)],
      ['due', (db) => listDue(db, SCOPE, asking, { blocked: false, limit: 100 })],
      ['blocks', (db) => readSlotBlocks(db, SCOPE, [RUN], asking)],
      ['dependencies', (db) => listDependencies(db, SCOPE, idOf('g', 7))],
      ['undecided', (db) => findUndecided(db, SCOPE, { limit: 100 })],
      ['mark due', (db) => markDue(db, SCOPE, NOW)],
      ['next wake', (db) => findNextWake(db, SCOPE)],
      ['not due', (db) => listNotDue(db, SCOPE, asking, 100)],
      ['lapsed calls', (db) => findLapsedCalls(db, SCOPE, NOW, 100)],
      ['ready call', (db) => findReadyCall(db, SCOPE, NOW)],
      ['workers', (db) => listWorkers(db, SCOPE, NOW)],
    ]
    for (const [name, fn] of cases) {
      await db.transaction(async (tx) => {
        const list: [string, readonly Param[]][] = []
        const t = performance.now()
        await fn({
          dialect: tx.dialect,
          get: (sql, params = []) => (list.push([sql, params]), tx.get(sql, params)),
          all: (sql, params = []) => (list.push([sql, params]), tx.all(sql, params)),
          run: (sql, params = []) => (list.push([sql, params]), tx.run(sql, params)),
        })
        out(`\n##### ${driver} ${name} ${(performance.now() - t).toFixed(1)} ms`)
        for (const [sql, params] of list) {
          out('--- ' + sql.replace(/\s+/g, ' '))
          if (driver === 'sqlite') {
            for (const r of await tx.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, params)) out('  ' + r.detail)
          } else {
            out('  custom:')
            for (const r of await tx.all<Record<string, string>>(`EXPLAIN ${sql}`, params)) out('    ' + r['QUERY PLAN'])
            out('  generic:')
            for (const r of await tx.all<Record<string, string>>(`EXPLAIN (GENERIC_PLAN) ${sql}`)) out('    ' + r['QUERY PLAN'])
          }
        }
        throw new Error('undone')
      }).catch((e: Error) => { if (e.message !== 'undone') throw e })
    }
    await store.close()
    await place.remove()
  }, 120_000)
