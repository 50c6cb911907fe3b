import { expect, test } from 'vitest'
import type { Claimed } from '../../src/kernel/claim.ts'
import { listEvents } from '../../src/kernel/store/events.ts'
import { readRecord } from '../../src/kernel/store/records.ts'
import { grantLeases, holdsLease, lapseLeases, releaseLeases, renewLease } from '../../src/kernel/store/run-leases.ts'
import { findNextWake } from '../../src/kernel/store/run-wakes.ts'
import { insertRun, runs, saveRun } from '../../src/kernel/store/runs.ts'
import { readSlotBlocks } from '../../src/kernel/store/run-admission.ts'
import { setSlot } from '../../src/kernel/store/slots.ts'
import { listWorkers, purgeWorkers, saveWorker } from '../../src/kernel/store/workers.ts'
import { claimRun, contextOf, describeStores, runOf } from './support.ts'

const UNLIMITED = { agent: 0, owner: 0, objective: 0, concurrency_key: 0 }
const LEASE_MS = 30_000
const PAGE = { order: 'asc', limit: 1000, details: true } as const

describeStores('claims of the store', (open) => {
  const claim = (scope: { kind: string; id: string }, fields: object = {}): ReturnType<typeof claimRun> =>
    claimRun(contextOf(open()), {
      scope,
      worker: 'w1',
      kinds: ['agent_work', 'conversation'],
      leaseMs: LEASE_MS,
      limits: UNLIMITED,
      knownAgents: false,
      ...fields,
    })

  const claimed = async (scope: { kind: string; id: string }): Promise<Claimed> => {
    const one = await claim(scope)
    if (!one) throw new Error('nothing was claimed')
    return one
  }

  test('kernel#40 priority 5 now against priority 0 waiting six minutes; equal rank: the earlier deadline, none last', async () => {
    const { store, scope, advance, at } = open()
    const mine = scope()
    const waited = runOf(open(), { scope: mine, goal: 'waited' })
    advance(6 * 60_000)
    const urgent = runOf(open(), { scope: mine, goal: 'urgent', priority: 5 })
    const dated = runOf(open(), { scope: mine, goal: 'dated', priority: 5, deadline: at(60_000) })
    const dated2 = runOf(open(), { scope: mine, goal: 'dated later', priority: 5, deadline: at(90_000) })
    await store.database.transaction(async (tx) => {
      for (const run of [urgent, dated2, waited, dated]) await insertRun(tx, run)
    })
    const order: (string | undefined)[] = []
    for (let i = 0; i < 5; i++) order.push((await claim(mine))?.run.goal)
    expect(order).toEqual(['waited', 'dated', 'dated later', 'urgent', undefined])
  })

  test('a claim sets state, attempt, lease and token, and says so in one event', async () => {
    const { store, scope, at } = open()
    const mine = scope()
    const run = runOf(open(), { scope: mine })
    await store.database.transaction((tx) => insertRun(tx, run))
    const first = await claim(mine)
    expect(first).toMatchObject({ fencingToken: 1, run: { id: run.id, status: 'running', revision: 2, attempt: 1 } })
    const read = await readRecord(store.database, runs, mine, run.id)
    expect(read).toEqual(first?.run)
    expect(read).toMatchObject({
      leaseOwner: 'w1',
      leaseExpiresAt: at(LEASE_MS),
      fencingToken: 1,
      lastClaimedAt: at(),
      budgetUsage: { attempts: 1 },
    })
    const events = await listEvents(store.database, mine, { runId: run.id }, PAGE)
    expect(events.map(({ event }) => event)).toMatchObject([
      {
        eventType: 'run.claimed',
        sequence: 1,
        payload: { worker: 'w1', fencingToken: 1, attempt: 1, recovered: false },
      },
    ])
  })

  test('a run is not claimed before its time', async () => {
    const { store, scope, advance, at } = open()
    const mine = scope()
    await store.database.transaction((tx) => insertRun(tx, runOf(open(), { scope: mine, availableAt: at(1000) })))
    expect(await claim(mine)).toBeUndefined()
    expect(await findNextWake(store.database, mine)).toBe(store.now() + 1000)
    advance(1000)
    expect(await claim(mine)).toMatchObject({ fencingToken: 1 })
  })

  test('kernel#36 100 lease renewals: a revision read before still matches', async () => {
    const { store, scope, advance } = open()
    const mine = scope()
    await store.database.transaction((tx) => insertRun(tx, runOf(open(), { scope: mine })))
    const { run, fencingToken } = await claimed(mine)
    for (let i = 0; i < 100; i++) {
      advance(10_000)
      const renewal = { fencingToken, now: store.now(), leaseMs: LEASE_MS }
      expect(await renewLease(store.database, mine, run.id, renewal)).toBe(true)
    }
    await store.database.transaction((tx) => saveRun(tx, run, store.now()))
    expect(await claim(mine)).toBeUndefined()
  })

  test('kernel#56 once another has the run, the stale token neither renews nor writes', async () => {
    const { store, scope, advance } = open()
    const mine = scope()
    await store.database.transaction((tx) => insertRun(tx, runOf(open(), { scope: mine })))
    const first = await claimed(mine)
    advance(LEASE_MS)
    const renewal = { fencingToken: first.fencingToken, now: store.now(), leaseMs: LEASE_MS }
    expect(await renewLease(store.database, mine, first.run.id, renewal)).toBe(false)
    const holds = (token: number): Promise<boolean> =>
      store.database.transaction((tx) => holdsLease(tx, mine, first.run.id, token))
    expect(await holds(first.fencingToken)).toBe(true)
    const second = await claim(mine, { worker: 'w2' })
    expect(second).toMatchObject({ fencingToken: 2, run: { id: first.run.id, attempt: 2, leaseOwner: 'w2' } })
    expect(await holds(first.fencingToken)).toBe(false)
    expect(await holds(2)).toBe(true)
    await store.database.transaction((tx) => releaseLeases(tx, mine, [first.run]))
    expect(await holds(2)).toBe(false)
    const read = await readRecord(store.database, runs, mine, first.run.id)
    expect(read).not.toHaveProperty('leaseOwner')
    expect(read.fencingToken).toBe(2)
  })

  test('kernel#41 agent, owner, objective, key and resource limits hold back with exact numbers', async () => {
    const { store, scope } = open()
    const objectiveId = 'o1'
    for (const [kind, fields, limits, capacity] of [
      ['agent', {}, { agent: 1 }, null],
      ['owner', {}, { owner: 1 }, null],
      ['objective', {}, {}, 1],
      ['concurrency_key', { concurrencyKey: 'runbook:r' }, { concurrency_key: 1 }, null],
      ['resource', { resourceRequirements: { gpu: 2 } }, {}, 3],
    ] as const) {
      const mine = scope()
      const name = kind === 'resource' ? `${objectiveId}/gpu` : objectiveId
      if (capacity !== null) {
        await store.database.transaction((tx) => setSlot(tx, mine, { kind, name, capacity, closed: false }))
      }
      const [one, two] = [
        runOf(open(), { scope: mine, objectiveId, ...fields }),
        runOf(open(), { scope: mine, objectiveId, ...fields }),
      ]
      await store.database.transaction(async (tx) => {
        await insertRun(tx, one)
        await insertRun(tx, two)
      })
      const bounds = { ...UNLIMITED, ...limits }
      expect(await claim(mine, { limits: bounds })).toMatchObject({ run: { id: one.id } })
      expect([kind, await claim(mine, { limits: bounds })]).toEqual([kind, undefined])
      const amount = kind === 'resource' ? 2 : 1
      expect(
        await readSlotBlocks(store.database, mine, [two.id], { limits: bounds, knownAgents: false, now: store.now() }),
      ).toMatchObject([{ kind, active: amount, amount, limit: capacity ?? 1, closed: false }])
      await store.database.transaction((tx) => releaseLeases(tx, mine, [one]))
      expect([kind, await claim(mine, { limits: bounds })]).toMatchObject([kind, { run: { id: two.id } }])
    }
  })

  test('kernel#27 runs of a closed objective stay queued until it opens; kernel#47 unknown agents are not worked for', async () => {
    const { store, scope } = open()
    const mine = scope()
    const run = runOf(open(), { scope: mine, objectiveId: 'o1', assignedAgentId: 'bo' })
    const slot = (kind: 'objective' | 'agent', name: string, closed: boolean): Promise<void> =>
      store.database.transaction((tx) => setSlot(tx, mine, { kind, name, capacity: null, closed }))
    await store.database.transaction((tx) => insertRun(tx, run))
    await slot('objective', 'o1', true)
    const blocks = (): ReturnType<typeof readSlotBlocks> =>
      readSlotBlocks(store.database, mine, [run.id], { limits: UNLIMITED, knownAgents: true, now: store.now() })
    expect(await claim(mine, { knownAgents: true })).toBeUndefined()
    expect(await blocks()).toMatchObject([
      { kind: 'agent', closed: true },
      { kind: 'objective', closed: true },
    ])
    await slot('objective', 'o1', false)
    expect(await claim(mine, { knownAgents: true })).toBeUndefined()
    await slot('agent', 'bo', false)
    expect(await blocks()).toEqual([])
    expect(await claim(mine, { knownAgents: true })).toMatchObject({ run: { id: run.id } })
  })

  test('a crashed holder keeps no slot: another run of its agent is claimed, then its own', async () => {
    const { store, scope, advance } = open()
    const mine = scope()
    const crashed = runOf(open(), { scope: mine, priority: -1 + 2 })
    const limits = { ...UNLIMITED, agent: 1 }
    await store.database.transaction((tx) => insertRun(tx, crashed))
    expect(await claim(mine, { limits })).toMatchObject({ run: { id: crashed.id } })
    advance(LEASE_MS - 1)
    const next = runOf(open(), { scope: mine, priority: 60 })
    await store.database.transaction((tx) => insertRun(tx, next))
    expect(await claim(mine, { limits })).toBeUndefined()
    advance(1)
    expect(await claim(mine, { limits })).toMatchObject({ run: { id: next.id } })
    expect(await claim(mine, { limits })).toBeUndefined()
    await store.database.transaction((tx) => releaseLeases(tx, mine, [next]))
    expect(await claim(mine, { limits })).toMatchObject({ fencingToken: 2, run: { id: crashed.id } })
  })

  test('kernel#45 at the attempt limit the next claim pauses', async () => {
    const { store, scope } = open()
    const mine = scope()
    const run = runOf(open(), { scope: mine, budget: { maxAttempts: 2 }, budgetUsage: { attempts: 2 } })
    await store.database.transaction((tx) => insertRun(tx, run))
    expect(await claim(mine)).toBeUndefined()
    const paused = await readRecord(store.database, runs, mine, run.id)
    expect(paused).toMatchObject({ status: 'paused', pauseReason: 'budget', pausedFrom: 'queued' })
    expect(paused).not.toHaveProperty('error')
  })

  test('many workers at once: each run once, limits never broken', async () => {
    const { store, scope } = open()
    const mine = scope()
    const owners = ['ana', 'bo', 'cy']
    await store.database.transaction(async (tx) => {
      for (let i = 0; i < 12; i++) {
        await insertRun(tx, runOf(open(), { scope: mine, owner: { type: 'agent', id: owners[i % 3] ?? '' } }))
      }
    })
    const limits = { ...UNLIMITED, agent: 2 }
    const all = (
      await Promise.all(Array.from({ length: 16 }, (_, i) => claim(mine, { limits, worker: `w${i}` })))
    ).flatMap((one) => (one ? [one.run] : []))
    for (let more = await claim(mine, { limits }); more; more = await claim(mine, { limits })) all.push(more.run)
    expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
    expect(all.map(({ owner }) => owner.id).sort()).toEqual(['ana', 'ana', 'bo', 'bo', 'cy', 'cy'])
  })

  test('kernel#89 a fault after a claim leaves neither claim nor event', async () => {
    const { store, scope } = open()
    const mine = scope()
    const run = runOf(open(), { scope: mine })
    await store.database.transaction((tx) => insertRun(tx, run))
    const broken = {
      ...store,
      database: {
        transaction: <T>(fn: Parameters<typeof store.database.transaction<T>>[0]) =>
          store.database.transaction<T>(async (tx) => {
            await fn(tx)
            throw new Error('power cut')
          }),
      },
    }
    const request = {
      scope: mine,
      worker: 'w',
      kinds: ['agent_work' as const],
      leaseMs: 1,
      limits: UNLIMITED,
      knownAgents: false,
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of a database the claim uses this alone
    await expect(claimRun(contextOf({ ...open(), store: broken as typeof store }), request)).rejects.toThrow(
      'power cut',
    )
    expect(await readRecord(store.database, runs, mine, run.id)).toEqual(run)
    expect(await listEvents(store.database, mine, {}, PAGE)).toEqual([])
    expect(await claim(mine)).toMatchObject({ fencingToken: 1 })
  })

  test('kernel#42 pools are seen while they report', async () => {
    const { store, scope, advance } = open()
    const mine = scope()
    const worker = {
      id: 'agent-1',
      scope: mine,
      kind: 'run' as const,
      runKinds: ['agent_work' as const],
      concurrency: 2,
      active: 1,
      limits: UNLIMITED,
      lastSeenAt: store.now(),
    }
    await saveWorker(store.database, worker)
    await saveWorker(store.database, { ...worker, active: 2 })
    expect(await listWorkers(store.database, mine, store.now() - 30_000)).toEqual([{ ...worker, active: 2 }])
    advance(30_000)
    expect(await listWorkers(store.database, mine, store.now() - 30_000)).toEqual([])
    expect(await purgeWorkers(store.database, store.now())).toBe(1)
  })

  test('lapsed leases are counted out once', async () => {
    const { store, scope, advance } = open()
    const mine = scope()
    const run = runOf(open(), { scope: mine })
    await store.database.transaction(async (tx) => {
      await insertRun(tx, run)
      await grantLeases(tx, mine, [run], { owner: 'w', now: store.now(), leaseMs: 10 })
    })
    advance(10)
    const lapse = (): Promise<number> => store.database.transaction((tx) => lapseLeases(tx, mine, store.now()))
    expect([await lapse(), await lapse()]).toEqual([1, 0])
  })
})
