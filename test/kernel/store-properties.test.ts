import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Run } from '../../src/kernel/model/run.ts'
import { moveRun } from '../../src/kernel/run-states.ts'
import { appendEvents, listEvents } from '../../src/kernel/store/events.ts'
import { lockRecord, readRecord } from '../../src/kernel/store/records.ts'
import { holdsLease, releaseLeases, renewLease } from '../../src/kernel/store/run-leases.ts'
import { insertRun, runs, saveRun } from '../../src/kernel/store/runs.ts'
import { claimRun, contextOf, describeStores, eventOf, runOf, type OpenStore } from './support.ts'

const LEASE_MS = 1000
const SEED = 20261122

type Step =
  { kind: 'claim'; worker: number } | { kind: 'advance'; ms: number } | { kind: 'renew' | 'apply'; worker: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('claim' as const), worker: fc.nat(2) }),
  fc.record({ kind: fc.constant('advance' as const), ms: fc.constantFrom(1, 400, 999, 1000) }),
  fc.record({ kind: fc.constantFrom('renew' as const, 'apply' as const), worker: fc.nat(2) }),
)

interface Held {
  id: string
  token: number
}

/** Applies a turn as T5 does: with the token, or not at all. */
const applyTurn = ({ store }: OpenStore, scope: Run['scope'], { id, token }: Held): Promise<boolean> =>
  store.database.transaction(async (tx) => {
    const run = await lockRecord(tx, runs, scope, id)
    if (!(await holdsLease(tx, scope, id, token))) return false
    await releaseLeases(tx, scope, [{ id }])
    const turned = { ...moveRun(run, { to: 'queued', now: store.now() }), lastAppliedTurn: run.lastAppliedTurn + 1 }
    await saveRun(tx, turned, store.now())
    return true
  })

describeStores('what holds whatever happens', (open) => {
  test('a run has one holder; tokens only grow; a stale one changes nothing; limits hold after every step', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        const { store, scope, newId, advance } = open()
        const mine = scope()
        const all = [0, 1, 2].map((i) =>
          runOf(open(), { scope: mine, priority: i, owner: { type: 'agent', id: `a${i % 2}` } }),
        )
        await store.database.transaction(async (tx) => {
          for (const run of all) await insertRun(tx, run)
        })
        const held: (Held | undefined)[] = []
        const newest = new Map<string, number>()
        const applied = new Map<string, number>()
        const surprises: string[] = []
        for (const { kind, ...rest } of steps) {
          if ('ms' in rest) advance(rest.ms)
          else if (kind === 'claim') {
            const claimed = await claimRun(contextOf({ store, newId }), {
              scope: mine,
              worker: `w${rest.worker}`,
              kinds: ['agent_work'],
              leaseMs: LEASE_MS,
              limits: { agent: 1, owner: 0, objective: 0, concurrency_key: 0 },
              knownAgents: false,
            })
            if (claimed) {
              const { run, fencingToken: token } = claimed
              surprises.push(...(token === (newest.get(run.id) ?? 0) + 1 ? [] : [`token ${token}`]))
              newest.set(run.id, token)
              held[rest.worker] = { id: run.id, token }
            }
          } else {
            const mineNow = held[rest.worker]
            if (!mineNow) continue
            const isNewest = newest.get(mineNow.id) === mineNow.token
            if (kind === 'renew') {
              const renewal = { fencingToken: mineNow.token, now: store.now(), leaseMs: LEASE_MS }
              const renewed = await renewLease(store.database, mine, mineNow.id, renewal)
              if (renewed && !isNewest) surprises.push('a stale token was renewed')
            } else {
              const done = await applyTurn(open(), mine, mineNow)
              if (done !== isNewest) surprises.push(`a turn was ${done ? '' : 'not '}applied`)
              if (done) applied.set(mineNow.id, (applied.get(mineNow.id) ?? 0) + 1)
              held[rest.worker] = undefined
            }
          }
          expect(surprises).toEqual([])
          const now = await Promise.all(all.map(({ id }) => readRecord(store.database, runs, mine, id)))
          for (const agent of ['a0', 'a1']) {
            const live = now.filter(
              (run) =>
                run.owner.id === agent &&
                run.status === 'running' &&
                Date.parse(run.leaseExpiresAt ?? '') > store.now(),
            )
            expect(live.length).toBeLessThanOrEqual(1)
          }
          for (const run of now) expect(run.lastAppliedTurn).toBe(applied.get(run.id) ?? 0)
        }
        const slots = await store.database.all<{ active: number }>(
          'SELECT active FROM kernel_slots WHERE scope LIKE $1',
          [`test/${encodeURIComponent(mine.id)}`],
        )
        for (const { active } of slots) expect(active).toBeGreaterThanOrEqual(0)
      }),
      { seed: SEED, numRuns: 40 },
    )
  })

  test('claims come in the order of rank, deadline, time in the queue and id', async () => {
    const made = fc.record({
      priority: fc.nat(4),
      deadline: fc.option(fc.nat(3), { nil: undefined }),
      wait: fc.nat(150_000),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(made, { minLength: 2, maxLength: 12 }), async (wanted) => {
        const { store, scope, newId, at, advance } = open()
        const mine = scope()
        advance(200_000)
        const all = wanted.map(({ priority, deadline, wait }) =>
          runOf(open(), {
            scope: mine,
            priority,
            queueEnteredAt: at(-wait),
            ...(deadline !== undefined && { deadline: at(deadline * 1000) }),
          }),
        )
        await store.database.transaction(async (tx) => {
          for (const run of all) await insertRun(tx, run)
        })
        const key = (run: Run): (number | string)[] => [
          Math.floor(Date.parse(run.queueEnteredAt) / 60_000) - run.priority,
          run.deadline === undefined ? Infinity : Date.parse(run.deadline),
          Date.parse(run.queueEnteredAt),
          run.id,
        ]
        const expected = all.toSorted((a, b) => {
          const [left, right] = [key(a), key(b)]
          const at0 = left.findIndex((part, i) => part !== right[i])
          return (left[at0] ?? 0) < (right[at0] ?? 0) ? -1 : 1
        })
        const order: string[] = []
        for (let i = 0; i < all.length; i++) {
          const claimed = await claimRun(contextOf({ store, newId }), {
            scope: mine,
            worker: 'w',
            kinds: ['agent_work'],
            leaseMs: 3_600_000,
            limits: { agent: 0, owner: 0, objective: 0, concurrency_key: 0 },
            knownAgents: false,
          })
          order.push(claimed?.run.id ?? '')
        }
        expect(order).toEqual(expected.map(({ id }) => id))
      }),
      { seed: SEED, numRuns: 25 },
    )
  })

  test('a follower that asks again from its last position sees each event once, in order, whatever commits meanwhile', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.nat(2), { minLength: 1, maxLength: 4 }), { maxLength: 12 }),
        async (batches) => {
          const { store, scope } = open()
          const mine = scope()
          const written = batches.map((streams) =>
            streams.map((stream) => eventOf(open(), { scope: mine, runId: `r${stream}` })),
          )
          const writers = Promise.all(
            written.map((events) => store.database.transaction((tx) => appendEvents(tx, events))),
          )
          let finished = false
          void writers.then(() => (finished = true))
          const seen: { id: string; position: number }[] = []
          for (let last = false; ;) {
            const after = seen.at(-1)?.position ?? 0
            const page = await listEvents(store.database, mine, {}, { order: 'asc', after, limit: 3, details: false })
            seen.push(...page.slice(0, 3).map(({ event, position }) => ({ id: event.id, position })))
            if (last && page.length === 0) break
            last = finished
            await new Promise((done) => setImmediate(done))
          }
          await writers
          expect(seen.map(({ position }) => position)).toEqual(seen.map((_, i) => i + 1))
          expect(seen.map(({ id }) => id).sort()).toEqual(
            written
              .flat()
              .map(({ id }) => id)
              .sort(),
          )
        },
      ),
      { seed: SEED, numRuns: 25 },
    )
  })
})
