import { expect, test } from 'vitest'
import { canonicalJson } from '../../src/base/canonical-json.ts'
import type { StoredOutcome } from '../../src/kernel/model/outcome.ts'
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
import { insertRecord, lockRecord, readRecord, saveRecord } from '../../src/kernel/store/records.ts'
import { grantLeases } from '../../src/kernel/store/run-leases.ts'
import { consumeSignal, findDueTimers, findNextWake, findWaiting } from '../../src/kernel/store/run-wakes.ts'
import { insertRun } from '../../src/kernel/store/runs.ts'
import { findTurn, insertTurn, listTurns, storeOutcome, turns } from '../../src/kernel/store/turns.ts'
import { approvalOf, callOf, describeStores, runOf, turnOf } from './support.ts'

const LEASE_MS = 30_000

describeStores('waits, turns, calls and approvals of the store', (open) => {
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
})
