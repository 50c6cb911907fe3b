import { appendFileSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Database, Param } from '../../../src/database/database.ts'
import { GatewayError } from '../../../src/gateway/errors.ts'
import type { Budget } from '../../../src/gateway/model.ts'
import type { GatewayMetering } from './process.ts'
import type { Reservation } from '../../../src/gateway/metering/metering.ts'
import { windowAt } from '../../../src/gateway/metering/windows.ts'
import { formatUsd } from '../../../src/gateway/cost/money.ts'
import type { GatewayCaller } from '../../../src/gateway/state/organization-state.ts'
import type { Place } from '../../platform/support.ts'
import {
  budgetOf,
  callerOf,
  describeMetering,
  fragile,
  keyOf,
  processOver,
  stalling,
  stillClock,
  usageRecord,
  usd,
} from './support.ts'

const T0 = Date.UTC(2026, 10, 18, 12)
const EXCEEDED = expect.objectContaining({ code: 'budget_exceeded', status: 429 })

let ids = 1000
/** A caller with a key of its own, under a budget. */
const keyCaller = (budget: Budget): GatewayCaller & { keyId: number } => {
  const keyId = ++ids
  return { ...callerOf({}, { key: keyOf(keyId, budget), userId: undefined }), keyId }
}
const withLimit = (caller: ReturnType<typeof keyCaller>, limit: string): GatewayCaller => ({
  ...caller,
  key: keyOf(caller.keyId, budgetOf(limit)),
})

interface BudgetRow {
  spent: bigint
  reserved: bigint
  blocks: bigint
}

async function rowOf(
  { database }: { database: ReturnType<Place['open']> },
  owner: string,
  at: number,
): Promise<BudgetRow> {
  const row = await database.get<{ spent: string; reserved: string; blocks: string }>(
    `SELECT CAST(spent AS TEXT) AS spent, CAST(reserved AS TEXT) AS reserved, (SELECT CAST(COALESCE(sum(amount), 0) AS TEXT)
       FROM gateway_budget_blocks k WHERE k.owner = b.owner AND k.period = b.period AND k.starts_at = b.starts_at) AS blocks
      FROM gateway_budgets b WHERE owner = $1 AND starts_at <= $2 AND ends_at > $2`,
    [owner, at],
  )
  return { spent: BigInt(row?.spent ?? 0), reserved: BigInt(row?.reserved ?? 0), blocks: BigInt(row?.blocks ?? 0) }
}

/** A call that was paid for, and its record. */
function pay(metering: GatewayMetering, held: Reservation, caller: GatewayCaller, cost: bigint, at: number): void {
  held.settle(cost)
  const owner = {
    ...(caller.key && { key_id: caller.key.id }),
    ...(caller.userId !== undefined && { user_id: caller.userId }),
  }
  const { user_id: _, ...record } = usageRecord(at, { cost_usd: formatUsd(cost) })
  metering.meter.record({ ...record, ...owner })
}

test('windows are those of the UTC calendar, weeks from Monday', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4e12 }), fc.constantFrom('day', 'week', 'month', 'total'), (now, period) => {
      const { startsAt, endsAt } = windowAt(period, now)
      expect(startsAt <= now && now < endsAt).toBe(true)
      const start = new Date(startsAt)
      const facts = {
        clock: Math.abs(start.getTime() % 86_400_000),
        weekday: start.getUTCDay(),
        day: start.getUTCDate(),
      }
      expect(facts).toMatchObject(
        { day: { clock: 0 }, week: { clock: 0, weekday: 1 }, month: { clock: 0, day: 1 }, total: {} }[period],
      )
      expect(period === 'total' ? endsAt : windowAt(period, endsAt).startsAt).toBe(endsAt)
    }),
    { seed: 7 },
  )
})

describeMetering('budgets', (place) => {
  test('gateway#87 what calls under way hold may be had soon, what is spent in the next window', async () => {
    const clock = stillClock()
    const metering = processOver(place(), { clock })
    const caller = keyCaller(budgetOf('1', 'day'))
    const waitFor = async (amount: string): Promise<number | undefined> => {
      const refused: unknown = await Promise.resolve(metering.budgets.reserve(caller, usd(amount))).catch(
        (error: unknown) => error,
      )
      if (refused instanceof GatewayError) return refused.retryAfterMs
      throw new Error('it was not refused')
    }
    const untilTomorrow = windowAt('day', clock.now()).endsAt - clock.now()
    const held = await metering.budgets.reserve(caller, usd('0.7'))
    expect(await waitFor('0.4')).toBe(1000)
    expect(await waitFor('1.1')).toBe(untilTomorrow)
    pay(metering, held, caller, usd('0.65'), clock.now())
    expect(await waitFor('0.4')).toBe(untilTomorrow)
    await metering.meter.flush()
    expect(await waitFor('0.4')).toBe(untilTomorrow)
    await metering.close()
  })

  test('gateway#87 a budget used up refuses, at every scope; the next window frees', async () => {
    for (const period of ['day', 'week', 'month'] as const) {
      const clock = stillClock()
      const metering = processOver(place(), { clock })
      const caller = keyCaller(budgetOf('1', period))
      pay(metering, await metering.budgets.reserve(caller, usd('0.7')), caller, usd('0.6'), clock.now())
      await metering.meter.flush()
      await expect(async () => metering.budgets.reserve(caller, usd('0.41'))).rejects.toEqual(EXCEEDED)
      await expect(async () => metering.budgets.reserve(caller, usd('0.41'))).rejects.toThrow('may cost up to 0.41 USD')
      // To the last nano-dollar.
      const rest = await metering.budgets.reserve(caller, usd('0.4'))
      await expect(async () => metering.budgets.reserve(caller, 1n)).rejects.toEqual(EXCEEDED)
      rest.release()
      clock.set(windowAt(period, clock.now()).endsAt)
      pay(metering, await metering.budgets.reserve(caller, usd('1')), caller, usd('1'), clock.now())
      await metering.meter.flush()
      expect(await rowOf(metering, `key:${caller.keyId}`, clock.now())).toEqual({
        spent: usd('1'),
        reserved: 0n,
        blocks: 0n,
      })
      await metering.close()
      await metering.database.close()
    }
  })

  test('key, user and organization: all or none', async () => {
    const clock = stillClock()
    const metering = processOver(place(), { clock })
    const userId = ++ids
    const key = keyOf(++ids, budgetOf('5'))
    const caller = callerOf({ budget: budgetOf('100'), user_budget: budgetOf('2') }, { key, userId })
    const held = await metering.budgets.reserve(caller, usd('2'))
    await expect(async () => metering.budgets.reserve(caller, usd('1'))).rejects.toEqual(EXCEEDED)
    held.release()
    held.release()
    // What the key had set aside for the refused call is free again: all of it fits.
    const alone = { ...caller, userId: undefined }
    const all = await metering.budgets.reserve(alone, usd('5'))
    all.release()
    await metering.close()
    expect(await rowOf(metering, `key:${key.id}`, clock.now())).toEqual({ spent: 0n, reserved: 0n, blocks: 0n })
    await metering.database.close()
  })

  test('gateway#84 an unknown price: denied where a budget says so, else not counted', async () => {
    const metering = processOver(place(), { clock: stillClock() })
    const denied = keyCaller(budgetOf('1'))
    expect(() => metering.budgets.reserve(denied, undefined)).toThrow(
      expect.objectContaining({ code: 'price_unknown', status: 403 }),
    )
    const allowed = keyCaller(budgetOf('1', 'month', 'allow'))
    for (let i = 0; i < 3; i++) (await metering.budgets.reserve(allowed, undefined)).settle(undefined)
    ;(await metering.budgets.reserve(allowed, usd('1'))).release()
    // Without budgets nothing is asked of the database, as where costs are not tracked.
    expect(metering.budgets.reserve(callerOf({}), undefined)).not.toBeInstanceOf(Promise)
    const untracked = callerOf({ cost_tracking: false, budget: budgetOf('0') })
    expect(metering.budgets.reserve(untracked, usd('1'))).not.toBeInstanceOf(Promise)
    await metering.close()
    await metering.database.close()
  })

  test('what a block covers is set aside at once, without the database', async () => {
    const metering = processOver(place(), { clock: stillClock() })
    const caller = keyCaller(budgetOf('100'))
    await metering.budgets.reserve(caller, usd('0.1'))
    // The block is one percent.
    for (let i = 0; i < 9; i++) expect(metering.budgets.reserve(caller, usd('0.1'))).not.toBeInstanceOf(Promise)
    const next = metering.budgets.reserve(caller, usd('0.1'))
    expect(next).toBeInstanceOf(Promise)
    await next
    await metering.close()
    await metering.database.close()
  })

  test('gateway#88 64 parallel calls over two processes never go above, and use all that fits', async () => {
    const clock = stillClock()
    const both = [processOver(place(), { clock }), processOver(place(), { clock })]
    const caller = keyCaller(budgetOf('1'))
    const cost = usd('0.05')
    const attempt = async (i: number): Promise<boolean> => {
      const metering = both[i % 2]
      if (!metering) throw new Error('there are two')
      try {
        const held = await metering.budgets.reserve(caller, cost)
        pay(metering, held, caller, cost, clock.now())
        return true
      } catch (error) {
        if (error instanceof GatewayError && error.code === 'budget_exceeded') return false
        throw error
      }
    }
    const made = (await Promise.all(Array.from({ length: 64 }, (_, i) => attempt(i)))).filter(Boolean).length
    expect(made).toBe(20)
    await Promise.all(both.map(({ meter }) => meter.flush()))
    const [first] = both
    if (!first) throw new Error('there are two')
    expect(await rowOf(first, `key:${caller.keyId}`, clock.now())).toEqual({
      spent: usd('1'),
      reserved: 0n,
      blocks: 0n,
    })
    for (const metering of both) await metering.close().then(() => metering.database.close())
  })

  test('gateway#88 whatever two processes do, what calls set aside and spent stays within the limit', async () => {
    const clock = stillClock()
    const limit = usd('1')
    const both = [processOver(place(), { clock }), processOver(place(), { clock })]
    const step = fc.record({
      who: fc.nat({ max: 1 }),
      what: fc.constantFrom('reserve', 'reserve', 'reserve', 'settle', 'release', 'flush', 'beat'),
      amount: fc.bigInt({ min: 1n, max: usd('0.3') }),
      share: fc.nat({ max: 100 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(step, { minLength: 1, maxLength: 6 }), { maxLength: 12 }), async (rounds) => {
        const caller = keyCaller(budgetOf('1'))
        const owner = `key:${caller.keyId}`
        const held: { who: number; amount: bigint; reservation: Reservation }[] = []
        let spent = 0n
        const run = async ({ who, what, amount, share }: (typeof rounds)[number][number]): Promise<void> => {
          const metering = both[who]
          if (!metering) throw new Error('there are two')
          if (what === 'flush') return metering.meter.flush()
          if (what === 'beat') return metering.processes.beat()
          if (what === 'reserve') {
            const reservation = await (async () => metering.budgets.reserve(caller, amount))().catch(() => undefined)
            if (reservation) held.push({ who, amount, reservation })
            return
          }
          const one = held.shift()
          const its = one && both[one.who]
          if (!one || !its) return
          if (what === 'release') return one.reservation.release()
          const cost = (one.amount * BigInt(share)) / 100n
          spent += cost
          pay(its, one.reservation, caller, cost, clock.now())
        }
        for (const steps of rounds) {
          await Promise.all(steps.map(run))
          clock.advance(4000)
          const open = held.reduce((sum, { amount }) => sum + amount, 0n)
          expect(open + spent).toBeLessThanOrEqual(limit)
          const row = both[0] && (await rowOf(both[0], owner, clock.now()))
          if (!row) throw new Error('there are two')
          expect(row.reserved).toBe(row.blocks)
          expect(row.spent + row.reserved).toBeLessThanOrEqual(limit)
        }
        for (const { reservation } of held) reservation.release()
        for (const { meter } of both) await meter.flush()
        clock.advance(11_000)
        for (const { processes } of both) await processes.beat()
        const row = both[0] && (await rowOf(both[0], owner, clock.now()))
        expect(row).toEqual({ spent, reserved: 0n, blocks: 0n })
      }),
      { numRuns: 30, seed: 88 },
    )
    for (const metering of both) await metering.close().then(() => metering.database.close())
  })

  test('gateway#89 a dearer call is refused where a cheaper one fits', async () => {
    const metering = processOver(place(), { clock: stillClock() })
    const caller = keyCaller(budgetOf('0.5'))
    const first = await metering.budgets.reserve(caller, usd('0.3'))
    first.release()
    await expect(async () => metering.budgets.reserve(caller, usd('0.6'))).rejects.toEqual(EXCEEDED)
    ;(await metering.budgets.reserve(caller, usd('0.5'))).release()
    await metering.close()
    await metering.database.close()
  })

  test('gateway#90 failed calls give back at once, and a dead process what it held after 60 s', async () => {
    const clock = stillClock()
    const [dead, alive] = [processOver(place(), { clock }), processOver(place(), { clock })]
    const caller = keyCaller(budgetOf('1'))
    const lost = await dead.budgets.reserve(caller, usd('1'))
    lost.release()
    await dead.budgets.reserve(caller, usd('1'))
    await alive.processes.beat()
    expect([dead.processes.count(), alive.processes.count()]).toEqual([1, 2])
    await expect(async () => alive.budgets.reserve(caller, usd('0.1'))).rejects.toEqual(EXCEEDED)
    for (let waited = 0; waited < 55_000; waited += 5000) {
      clock.advance(5000)
      await alive.processes.beat()
    }
    expect(alive.processes.count()).toBe(1)
    await expect(async () => alive.budgets.reserve(caller, usd('0.1'))).rejects.toEqual(EXCEEDED)
    clock.advance(5001)
    await alive.processes.beat()
    const held = await alive.budgets.reserve(caller, usd('1'))
    // The one that was taken for dead comes back: what it held is not its own any more.
    await expect(async () => dead.budgets.reserve(caller, usd('0.1'))).rejects.toEqual(EXCEEDED)
    held.release()
    for (const metering of [alive, dead]) await metering.close()
    expect(await rowOf(alive, `key:${caller.keyId}`, clock.now())).toEqual({ spent: 0n, reserved: 0n, blocks: 0n })
    for (const metering of [alive, dead]) await metering.database.close()
  })

  test('gateway#88 who tells that it lives while others take it for dead keeps its blocks', async () => {
    const clock = stillClock()
    const slow = processOver(place(), { clock })
    const caller = keyCaller(budgetOf('1'))
    ;(await slow.budgets.reserve(caller, usd('1'))).release()
    clock.advance(60_001)
    const database = place().open()
    const listed = database.all.bind(database)
    // The other has just read who was not seen for a minute.
    database.all = async <T>(...asked: Parameters<typeof listed>): Promise<T[]> => {
      const rows = await listed<T>(...asked)
      if (asked[0].includes('seen_at <')) await slow.processes.renew()
      return rows
    }
    const other = processOver(place(), { clock, database })
    await other.processes.beat()
    const held = await slow.budgets.reserve(caller, usd('1'))
    await expect(async () => other.budgets.reserve(caller, usd('0.1'))).rejects.toEqual(EXCEEDED)
    held.release()
    for (const metering of [slow, other]) await metering.close().then(() => metering.database.close())
  })

  test('whose blocks others gave back draws anew, and holds nobody up', async () => {
    const clock = stillClock()
    const [ahead, behind] = [stillClock(clock.now() + 70_000), clock].map((at) => processOver(place(), { clock: at }))
    if (!ahead || !behind) throw new Error('there are two')
    const caller = keyCaller(budgetOf('10'))
    ;(await behind.budgets.reserve(caller, usd('0.1'))).release()
    clock.advance(10_001)
    await ahead.processes.beat()
    ;(await behind.budgets.reserve(caller, usd('9'))).release()
    await behind.processes.beat()
    for (const metering of [ahead, behind]) await metering.close()
    expect(await rowOf(ahead, `key:${caller.keyId}`, clock.now())).toEqual({ spent: 0n, reserved: 0n, blocks: 0n })
    for (const metering of [ahead, behind]) await metering.database.close()
  })

  test('calls that a slow database refused ask it for nothing afterwards', async () => {
    const database = stalling(place().open())
    const metering = processOver(place(), { clock: stillClock(), database, drawTimeoutMs: 500 })
    const caller = keyCaller(budgetOf('1'))
    ;(await metering.budgets.reserve(caller, usd('0.1'))).release()
    const { begun } = database
    database.stall()
    const calls = await Promise.allSettled(
      Array.from({ length: 20 }, async () => metering.budgets.reserve(caller, usd('2'))),
    )
    const unavailable = expect.objectContaining({ code: 'metering_unavailable' })
    for (const call of calls) expect(call).toMatchObject({ reason: unavailable })
    expect(database.begun).toBe(begun + 1)
    database.goOn()
    await expect.poll(async () => (await metering.budgets.reserve(caller, usd('1'))).release()).toBeUndefined()
    expect(database.begun - begun).toBeLessThan(calls.length)
    await metering.close()
    await database.close()
  })

  test('gateway#90 calls that lie in the spill file twice, as a full disk may leave them, give back once', async () => {
    const clock = stillClock(T0)
    const dataDir = mkdtempSync(join(tmpdir(), 'mem-test-spill-'))
    const database = fragile(place().open())
    const metering = processOver(place(), { clock, database, dataDir, flushRows: 10 })
    const caller = keyCaller(budgetOf('100'))
    const block = await metering.budgets.reserve(caller, usd('40'))
    block.release()
    const call = async (): Promise<void> =>
      pay(metering, await metering.budgets.reserve(caller, usd('1')), caller, usd('1'), T0)
    database.isAway = true
    for (let i = 0; i < 10; i++) await call()
    await metering.meter.flush()
    const spill = join(dataDir, 'gateway-spill.jsonl')
    appendFileSync(spill, readFileSync(spill))
    for (let i = 0; i < 10; i++) await call()
    database.isAway = false
    clock.advance(5000)
    await metering.meter.flush()
    expect(metering.meter.figures()).toMatchObject({ queue: 0, spillBytes: 0 })
    const owner = `key:${caller.keyId}`
    expect(await rowOf(metering, owner, T0)).toEqual({ spent: usd('20'), reserved: usd('20'), blocks: usd('20') })
    clock.advance(20_000)
    await metering.processes.beat()
    expect(await rowOf(metering, owner, T0)).toEqual({ spent: usd('20'), reserved: 0n, blocks: 0n })
    await metering.close()
    await database.close()
  })

  test('blocks that nobody uses go back, so that others may use them', async () => {
    const clock = stillClock()
    const [idle, other] = [processOver(place(), { clock }), processOver(place(), { clock })]
    const caller = keyCaller(budgetOf('1'))
    ;(await idle.budgets.reserve(caller, usd('0.9'))).release()
    await expect(async () => other.budgets.reserve(caller, usd('0.5'))).rejects.toEqual(EXCEEDED)
    clock.advance(10_001)
    await idle.processes.beat()
    ;(await other.budgets.reserve(caller, usd('1'))).release()
    for (const metering of [idle, other]) await metering.close().then(() => metering.database.close())
  })

  test('gateway#87 a call of the next window, while the block of the last one goes back, keeps its own block', async () => {
    const clock = stillClock(T0)
    const [real, stopped] = [place().open(), stalling(place().open())]
    let isWatched = false
    const database: Database = Object.assign(stopped, {
      get: <T>(sql: string, params?: readonly Param[]) => {
        if (isWatched && sql.includes('AS live')) stopped.stall() // what a heartbeat looks at before blocks go back
        return real.get<T>(sql, params)
      },
    })
    const metering = processOver(place(), { clock, database })
    const caller = keyCaller(budgetOf('1', 'day'))
    const owner = `key:${caller.keyId}`
    ;(await metering.budgets.reserve(caller, usd('0.9'))).release()
    clock.advance(24 * 3600_000)
    const { begun } = stopped
    isWatched = true
    const beat = metering.processes.beat()
    await expect.poll(() => stopped.begun).toBe(begun + 2)
    isWatched = false
    const next = metering.budgets.reserve(caller, usd('0.5'))
    stopped.goOn()
    await beat
    ;(await next).release()
    expect((await rowOf({ database: real }, owner, clock.now())).blocks).toBe(usd('0.5'))
    clock.advance(10_001)
    await metering.processes.beat()
    expect(await rowOf({ database: real }, owner, clock.now())).toMatchObject({ reserved: 0n, blocks: 0n })
    await metering.close()
    for (const each of [real, stopped]) await each.close()
  })

  test('a changed limit holds at once; a budget made later counts what was spent before', async () => {
    const clock = stillClock()
    const metering = processOver(place(), { clock })
    const caller = keyCaller(budgetOf('10'))
    metering.meter.record(usageRecord(T0 - 3600_000, { key_id: caller.keyId, cost_usd: '4' }))
    await metering.meter.flush()
    const held = await metering.budgets.reserve(caller, usd('5'))
    await expect(async () => metering.budgets.reserve(caller, usd('1.01'))).rejects.toEqual(EXCEEDED)
    const raised = await metering.budgets.reserve(withLimit(caller, '20'), usd('3'))
    await expect(async () => metering.budgets.reserve(withLimit(caller, '8'), usd('0.1'))).rejects.toEqual(EXCEEDED)
    held.release()
    raised.release()
    await expect(async () => metering.budgets.reserve(withLimit(caller, '8'), usd('4.1'))).rejects.toEqual(EXCEEDED)
    ;(await metering.budgets.reserve(withLimit(caller, '8'), usd('4'))).release()
    await metering.close()
    await metering.database.close()
  })

  test('a call may cost more than was set aside; what follows is refused until that is made good', async () => {
    const clock = stillClock()
    const metering = processOver(place(), { clock })
    const caller = keyCaller(budgetOf('1'))
    const other = await metering.budgets.reserve(caller, usd('0.3'))
    pay(metering, await metering.budgets.reserve(caller, usd('0.5')), caller, usd('0.9'), clock.now())
    await expect(async () => metering.budgets.reserve(caller, usd('0.05'))).rejects.toEqual(EXCEEDED)
    await metering.meter.flush()
    await expect(async () => metering.budgets.reserve(caller, usd('0.05'))).rejects.toEqual(EXCEEDED)
    other.release()
    ;(await metering.budgets.reserve(caller, usd('0.1'))).release()
    await metering.close()
    expect(await rowOf(metering, `key:${caller.keyId}`, clock.now())).toEqual({
      spent: usd('0.9'),
      reserved: 0n,
      blocks: 0n,
    })
    await metering.database.close()
  })

  test('records of two days that cost more than was set aside leave a call under way what covers it', async () => {
    const midnight = windowAt('day', T0).endsAt
    const clock = stillClock(midnight - 1000)
    const metering = processOver(place(), { clock })
    const caller = keyCaller(budgetOf('10', 'month'))
    const open = await metering.budgets.reserve(caller, usd('1'))
    for (const at of [midnight - 1000, midnight]) {
      pay(metering, await metering.budgets.reserve(caller, usd('0.1')), caller, usd('0.5'), at)
    }
    await metering.meter.flush()
    expect(await rowOf(metering, `key:${caller.keyId}`, midnight)).toMatchObject({
      spent: usd('1'),
      reserved: usd('1'),
    })
    open.release()
    await metering.close()
    await metering.database.close()
  })

  test('with the database away, blocks are used up, then calls under a budget are 503', async () => {
    const clock = stillClock()
    const database = fragile(place().open())
    const metering = processOver(place(), { clock, database })
    const caller = keyCaller(budgetOf('10'))
    await metering.budgets.reserve(caller, usd('0.05'))
    database.isAway = true
    const held = metering.budgets.reserve(caller, usd('0.05'))
    expect(held).not.toBeInstanceOf(Promise)
    const unavailable = expect.objectContaining({ code: 'metering_unavailable', status: 503 })
    await expect(async () => metering.budgets.reserve(caller, usd('0.05'))).rejects.toEqual(unavailable)
    database.isAway = false
    await metering.budgets.reserve(caller, usd('0.05'))
    await metering.close()
    await database.close()
  })
})
