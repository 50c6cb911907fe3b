import { expect, test } from 'vitest'
import { canonicalJson } from '../../src/base/canonical-json.ts'
import type { Claimed } from '../../src/kernel/claim.ts'
import type { NewEvent } from '../../src/kernel/model/event.ts'
import type { StoredOutcome } from '../../src/kernel/model/outcome.ts'
import type { Objective } from '../../src/kernel/model/objective.ts'
import { pauseRun } from '../../src/kernel/run-states.ts'
import {
  approvals,
  findExpired,
  insertApproval,
  listApprovals,
  saveApproval,
} from '../../src/kernel/store/approvals.ts'
import { endCallLease, grantCallLease, markDispatched, renewCallLease } from '../../src/kernel/store/call-leases.ts'
import {
  calls,
  findCallByKey,
  findLapsedCalls,
  findReadyCall,
  findTwin,
  listCalls,
} from '../../src/kernel/store/calls.ts'
import { dependencyGroups, insertGroup, listDependencies, settleChild } from '../../src/kernel/store/dependencies.ts'
import { appendEvents, listEvents } from '../../src/kernel/store/events.ts'
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
import { grantLeases, holdsLease, lapseLeases, releaseLeases, renewLease } from '../../src/kernel/store/run-leases.ts'
import { consumeSignal, findDueTimers, findNextWake, findWaiting } from '../../src/kernel/store/run-wakes.ts'
import { insertRun, listRuns, runs, saveRun } from '../../src/kernel/store/runs.ts'
import { readSlotBlocks } from '../../src/kernel/store/run-admission.ts'
import { setSlot } from '../../src/kernel/store/slots.ts'
import { findTurn, insertTurn, listTurns, storeOutcome, turns } from '../../src/kernel/store/turns.ts'
import { listWorkers, purgeWorkers, saveWorker } from '../../src/kernel/store/workers.ts'
import {
  approvalOf,
  callOf,
  claimRun,
  contextOf,
  describeStores,
  eventOf,
  objectiveOf,
  runOf,
  turnOf,
} from './support.ts'

const UNLIMITED = { agent: 0, owner: 0, objective: 0, concurrency_key: 0 }
const LEASE_MS = 30_000

describeStores('the store', (open) => {
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

  test('kernel#59 those that wait for a reference, or for any, are found by it, also while paused, and wake once', async () => {
    const { store, scope } = open()
    const mine = scope()
    const waiting = (reference?: string): ReturnType<typeof runOf> =>
      runOf(open(), {
        scope: mine,
        status: 'waiting_for_event',
        wakeCondition: { type: 'event', ...(reference !== undefined && { reference }) },
      })
    const [one, any, other] = [waiting('a'), waiting(), waiting('b')]
    const paused = pauseRun(waiting('a'), 'command')
    await store.database.transaction(async (tx) => {
      for (const run of [one, any, other, paused]) await insertRun(tx, run)
    })
    const find = (after?: string): Promise<string[]> =>
      findWaiting(store.database, mine, {
        type: 'event',
        reference: 'a',
        limit: 2,
        ...(after !== undefined && { after }),
      })
    expect(await find()).toEqual([one.id, any.id])
    expect(await find(any.id)).toEqual([paused.id])
    expect(await findWaiting(store.database, mine, { type: 'approval', reference: 'a', limit: 9 })).toEqual([])
    const consume = (): Promise<boolean> => store.database.transaction((tx) => consumeSignal(tx, mine, one.id, 's1'))
    expect([await consume(), await consume()]).toEqual([true, false])
  })

  test('kernel#60 timers that ran out are found in order of their time', async () => {
    const { store, scope, at, advance } = open()
    const mine = scope()
    const timer = (ms: number): ReturnType<typeof runOf> =>
      runOf(open(), { scope: mine, status: 'sleeping', wakeCondition: { type: 'timer', wakeAt: at(ms) } })
    const [late, early] = [timer(2000), timer(1000)]
    await store.database.transaction(async (tx) => {
      await insertRun(tx, late)
      await insertRun(tx, early)
    })
    const due = async (): Promise<string[]> =>
      (await findDueTimers(store.database, store.now(), 100))
        .filter((one) => one.scope.id === mine.id)
        .map(({ id }) => id)
    expect(await due()).toEqual([])
    expect(await findNextWake(store.database, mine)).toBe(store.now() + 1000)
    advance(2000)
    expect(await due()).toEqual([early.id, late.id])
  })

  test('a run has one unfinished turn; its outcome is kept and not shown', async () => {
    const { store, scope } = open()
    const mine = scope()
    const run = runOf(open(), { scope: mine })
    const turn = turnOf(open(), { scope: mine, runId: run.id })
    const lease = { owner: 'w', now: store.now(), leaseMs: LEASE_MS }
    const fencingToken = await store.database.transaction(async (tx) => {
      await insertRun(tx, run)
      const token = (await grantLeases(tx, mine, [run], lease)).get(run.id) ?? NaN
      expect(await insertTurn(tx, turn, token)).toBe(true)
      expect(await insertTurn(tx, turn, token)).toBe(false)
      expect(await insertTurn(tx, turnOf(open(), { scope: mine, runId: run.id }), token + 1)).toBe(false)
      return token
    })
    const second = turnOf(open(), { scope: mine, runId: run.id, sequence: 2 })
    await expect(store.database.transaction((tx) => insertRecord(tx, turns, second))).rejects.toThrow(/unique/i)
    const action = { bindingId: 'mail', action: 'send', arguments: { to: 'x' }, summary: 'Send it', evidenceRefs: [] }
    const outcome: StoredOutcome = {
      outcome: {
        invocationId: turn.id,
        status: 'running',
        summary: 'Sends',
        decisions: [],
        skillDispositions: [],
        action,
      },
      shown: { guidance: [], results: [] },
    }
    const done = await store.database.transaction((tx) =>
      storeOutcome(tx, { turn: { ...turn, status: 'completed' }, outcome }, { fencingToken, now: store.now() }),
    )
    expect(await findTurn(store.database, mine, run.id, 1)).toEqual({ turn: done, outcome })
    await store.database.transaction((tx) => insertRecord(tx, turns, second))
    const listed = async (fields: object): Promise<number[]> =>
      (await listTurns(store.database, mine, { runId: run.id, limit: 10, ...fields })).items.map((one) => one.sequence)
    expect(await listed({})).toEqual([1, 2])
    expect(await listed({ afterSequence: 1 })).toEqual([2])
    expect(await listed({ status: ['completed'] })).toEqual([1])
    expect(canonicalJson(await listTurns(store.database, mine, { runId: run.id, limit: 1 }))).not.toContain('arguments')
  })

  test('a dependency group settles with its children', async () => {
    const { store, scope } = open()
    const mine = scope()
    const run = runOf(open(), { scope: mine })
    const { id, revision, createdAt, updatedAt } = runOf(open(), { scope: mine })
    const group = {
      scope: mine,
      id,
      revision,
      createdAt,
      updatedAt,
      runId: run.id,
      status: 'open',
      join: 'all',
      failure: 'wait',
    } as const
    await store.database.transaction(async (tx) => {
      await insertRun(tx, run)
      await insertGroup(tx, group, [
        { childId: 'c2', name: 'b' },
        { childId: 'c1', name: 'a' },
      ])
    })
    const settle = (): Promise<string[]> => store.database.transaction((tx) => settleChild(tx, mine, 'c1', 'succeeded'))
    expect([await settle(), await settle()]).toEqual([[id], []])
    expect(await listDependencies(store.database, mine, id)).toEqual([
      { groupId: id, childId: 'c1', name: 'a', status: 'succeeded' },
      { groupId: id, childId: 'c2', name: 'b', status: 'pending' },
    ])
    expect(await readRecord(store.database, dependencyGroups, mine, id)).toEqual(group)
  })

  test('calls: ready and due ones are claimed, not while their run is paused', async () => {
    const { store, scope, at, advance } = open()
    const mine = scope()
    const [run, halted] = [runOf(open(), { scope: mine }), runOf(open(), { scope: mine, status: 'paused' })]
    const later = callOf(open(), { scope: mine, runId: run.id, availableAt: at(1000) })
    const now = callOf(open(), { scope: mine, runId: run.id })
    const held = callOf(open(), { scope: mine, runId: halted.id, availableAt: at(-1000) })
    await store.database.transaction(async (tx) => {
      for (const one of [run, halted]) await insertRun(tx, one)
      for (const call of [later, now, held]) await insertRecord(tx, calls, call)
    })
    const next = (): Promise<string | undefined> =>
      store.database.transaction(async (tx) => {
        const call = await findReadyCall(tx, mine, store.now())
        if (!call) return undefined
        const attempt = call.attempt + 1
        await grantCallLease(tx, mine, call.id, { owner: 'w', attempt, now: store.now(), leaseMs: 60_000 })
        await saveRecord(tx, calls, { ...call, status: 'running', attempt }, store.now())
        return call.id
      })
    expect([await next(), await next()]).toEqual([now.id, undefined])
    advance(1000)
    expect([await next(), await next()]).toEqual([later.id, undefined])
    const { items } = await listCalls(store.database, mine, { status: ['running'], runId: run.id }, { limit: 10 })
    expect(items.map(({ leaseOwner, attempt }) => [leaseOwner, attempt])).toEqual([
      ['w', 1],
      ['w', 1],
    ])
    expect((await listCalls(store.database, mine, { deploymentId: 'bo' }, { limit: 10 })).items).toEqual([])
  })

  test('kernel#70 a call lease renews; lost, it neither sends nor ends, and the journal tells what left', async () => {
    const { store, scope, advance, at } = open()
    const mine = scope()
    const run = runOf(open(), { scope: mine })
    const call = callOf(open(), { scope: mine, runId: run.id, status: 'running', attempt: 1 })
    const grant = (attempt: number): Promise<number> =>
      store.database.transaction(
        async (tx) =>
          (await grantCallLease(tx, mine, call.id, { owner: 'w', attempt, now: store.now(), leaseMs: 60_000 }))
            .fencingToken,
      )
    await store.database.transaction(async (tx) => {
      await insertRun(tx, run)
      await insertRecord(tx, calls, call)
    })
    const token = await grant(1)
    for (let i = 0; i < 9; i++) {
      advance(20_000)
      const renewal = { fencingToken: token, now: store.now(), leaseMs: 60_000 }
      expect(await renewCallLease(store.database, mine, call.id, renewal)).toBe(true)
    }
    const mark = (fencingToken: number): Promise<boolean> =>
      store.database.transaction((tx) => markDispatched(tx, mine, call.id, { fencingToken, now: store.now() }))
    expect(await mark(token)).toBe(true)
    expect(await readRecord(store.database, calls, mine, call.id)).toMatchObject({ dispatchedAt: at(), revision: 1 })
    const lapsed = (): Promise<string[]> =>
      store.database.transaction(async (tx) => (await findLapsedCalls(tx, mine, store.now(), 10)).map(({ id }) => id))
    expect(await lapsed()).toEqual([])
    advance(60_000)
    expect(await lapsed()).toEqual([call.id])
    const second = await grant(2)
    const end = (fencingToken: number): Promise<boolean> =>
      store.database.transaction((tx) =>
        endCallLease(tx, mine, call.id, { fencingToken, outcome: 'succeeded', now: store.now() }),
      )
    expect([await mark(token), await end(token), await end(second), await end(second)]).toEqual([
      false,
      false,
      true,
      false,
    ])
    expect(await readRecord(store.database, calls, mine, call.id)).not.toHaveProperty('dispatchedAt')
  })

  test('kernel#69 one live or succeeded call has an external digest; keys are unique in their run', async () => {
    const { store, scope } = open()
    const mine = scope()
    const run = runOf(open(), { scope: mine })
    const externalOperationDigest = 'd'.repeat(64)
    const first = callOf(open(), { scope: mine, runId: run.id, externalOperationDigest, idempotencyKey: 'k' })
    const insert = (fields: object): Promise<unknown> =>
      store.database.transaction((tx) =>
        insertRecord(tx, calls, callOf(open(), { scope: mine, runId: run.id, ...fields })),
      )
    await store.database.transaction(async (tx) => {
      await insertRun(tx, run)
      await insertRecord(tx, calls, first)
    })
    expect(await findTwin(store.database, mine, externalOperationDigest)).toEqual(first)
    expect(await findCallByKey(store.database, mine, run.id, 'k')).toEqual(first)
    await expect(insert({ externalOperationDigest })).rejects.toThrow(/unique/i)
    await expect(insert({ idempotencyKey: 'k' })).rejects.toThrow(/unique/i)
    await insert({ externalOperationDigest, duplicateOfActionCallId: first.id, status: 'succeeded' })
    await store.database.transaction((tx) => saveRecord(tx, calls, { ...first, status: 'failed' }, store.now()))
    expect(await findTwin(store.database, mine, externalOperationDigest)).toBeUndefined()
    await insert({ externalOperationDigest })
  })

  test('approvals: by state, run and owner; those past their time are found', async () => {
    const { store, scope, advance } = open()
    const mine = scope()
    const run = runOf(open(), { scope: mine })
    const call = callOf(open(), { scope: mine, runId: run.id, status: 'waiting_for_approval' })
    const approval = approvalOf(open(), { scope: mine, runId: run.id, actionCallId: call.id })
    await store.database.transaction(async (tx) => {
      await insertRun(tx, run)
      await insertRecord(tx, calls, call)
      await insertApproval(tx, approval, run.owner)
    })
    const listed = async (filter: Parameters<typeof listApprovals>[2]): Promise<number> =>
      (await listApprovals(store.database, mine, filter, 'created_desc', { limit: 10 })).items.length
    expect(await listed({ owner: run.owner, status: ['pending'], runId: run.id })).toBe(1)
    expect(await listed({ owner: { type: 'team', id: 'ana' } })).toBe(0)
    advance(86_400_000)
    const expired = async (): Promise<unknown[]> =>
      (await findExpired(store.database, store.now(), 100)).filter((one) => one.scope.id === mine.id)
    expect(await expired()).toEqual([{ scope: mine, id: approval.id }])
    await store.database.transaction(async (tx) => {
      const pending = await lockRecord(tx, approvals, mine, approval.id)
      await saveApproval(tx, { ...pending, status: 'expired' }, store.now())
    })
    expect(await expired()).toEqual([])
    expect(await listed({ owner: run.owner, status: ['expired'] })).toBe(1)
  })

  test('kernel#89 20 writers: each stream and the scope are numbered without gaps', async () => {
    const { store, scope } = open()
    const mine = scope()
    const write = (events: NewEvent[]): Promise<unknown> => store.database.transaction((tx) => appendEvents(tx, events))
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        write([
          eventOf(open(), { scope: mine, runId: `r${i % 2}` }),
          eventOf(open(), { scope: mine, runId: 'r2' }),
          eventOf(open(), { scope: mine, runId: `r${i % 2}` }),
        ]),
      ),
    )
    await expect(
      store.database.transaction(async (tx) => {
        await appendEvents(tx, [eventOf(open(), { scope: mine, runId: 'r0' })])
        throw new Error('undone')
      }),
    ).rejects.toThrow('undone')
    await write([eventOf(open(), { scope: mine, runId: 'r0' })])
    const all = await listEvents(store.database, mine, {}, PAGE)
    expect(all.map(({ position }) => position)).toEqual(all.map((_, i) => i + 1))
    for (const [runId, length] of [
      ['r0', 21],
      ['r1', 20],
      ['r2', 20],
    ] as const) {
      const stream = await listEvents(store.database, mine, { runId }, PAGE)
      expect(stream.map(({ event }) => event.sequence)).toEqual(Array.from({ length }, (_, i) => i + 1))
    }
  })

  test('kernel#90 each selector, category and order; payloads only with details; a follower misses nothing', async () => {
    const { store, scope } = open()
    const mine = scope()
    const ids = { runId: 'r', agentId: 'a', objectiveId: 'o', teamId: 't', projectId: 'p' }
    const event = eventOf(open(), {
      scope: mine,
      ...ids,
      conversationRefs: ['c1', 'c2'],
      payload: { x: 1 },
      usageDelta: { turns: 1 },
    })
    const other = eventOf(open(), {
      scope: mine,
      eventType: 'collaboration.requested',
      severity: 'warning',
      visibility: 'team',
    })
    await store.database.transaction((tx) => appendEvents(tx, [event, other]))
    const list = (filter: object, page: object = {}): ReturnType<typeof listEvents> =>
      listEvents(store.database, mine, filter, { ...PAGE, ...page })
    for (const [name, value] of [...Object.entries(ids), ['conversationId', 'c2']]) {
      expect([name, ...(await list({ [name ?? '']: value })).map((one) => one.event.id)]).toEqual([name, event.id])
    }
    for (const filter of [
      { category: ['activity'] },
      { severity: ['warning'] },
      { visibility: ['team'] },
      { eventType: ['collaboration.requested'] },
    ]) {
      expect((await list(filter)).map((one) => one.event.id)).toEqual([other.id])
    }
    expect((await list({}, { order: 'desc' })).map(({ position }) => position)).toEqual([2, 1])
    expect(await list({}, { after: 1 })).toHaveLength(1)
    const [detailed] = await list({ runId: 'r' })
    expect(detailed).toEqual({
      event: { ...event, sequence: 1, severity: 'info', visibility: 'scope' },
      position: 1,
      detailAvailable: true,
    })
    const [brief] = await list({ runId: 'r' }, { details: false })
    expect(brief).toMatchObject({ detailAvailable: true })
    expect(brief?.event).not.toHaveProperty('payload')
    expect(brief?.event).not.toHaveProperty('usageDelta')
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

const PAGE = { order: 'asc', limit: 1000, details: true } as const
