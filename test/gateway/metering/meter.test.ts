import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Database } from '../../../src/database/database.ts'
import { formatUsd } from '../../../src/gateway/cost/money.ts'
import { KINDS, SURFACES, type UsageRecord } from '../../../src/gateway/model.ts'
import { DAY, HOUR, MINUTE, sumSpent } from '../../../src/gateway/store/aggregates.ts'
import { toUsageRecord, toUsageRow } from '../../../src/gateway/store/usage-record.ts'
import { findUsage, listUsage } from '../../../src/gateway/store/usage.ts'
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

const recorded = async (database: Database, organizationId = 1): Promise<UsageRecord[]> =>
  (await listUsage(database, organizationId, {}, undefined, 100_000)).map(toUsageRecord)

describeMetering('usage records', (place) => {
  test('gateway#82 every shape of record goes through the queue and comes back as it was, once', async () => {
    const metering = processOver(place(), { clock: stillClock(), flushRows: 3 })
    const records = [
      usageRecord(T0),
      usageRecord(T0, {
        outcome: 'rejected',
        status: 429,
        error_code: 'budget_exceeded',
        attempts: [],
        input_tokens: null,
        output_tokens: null,
        cost_usd: null,
        cost_state: 'no_usage',
      }),
      usageRecord(T0, { outcome: 'cached', cost_usd: '0', attempts: [] }),
      usageRecord(T0, { outcome: 'client_closed', status: 499, cost_state: 'estimated' }),
      usageRecord(T0, {
        outcome: 'error',
        status: 502,
        error_code: 'upstream_error',
        model_used: 'odd\0name',
        client: 'a\0"\'é😀',
      }),
    ]
    delete records[1]?.credential_id
    for (const record of records) metering.meter.record(record)
    for (const record of records) metering.meter.record(record)
    await metering.meter.flush()
    const found = await recorded(metering.database)
    expect(found).toHaveLength(records.length)
    for (const record of records) expect(found.find(({ id }) => id === record.id)).toEqual(record)
    const sums = await metering.database.all('SELECT sum(requests) AS n FROM gateway_usage_aggregates GROUP BY span')
    expect(sums).toEqual(Array.from({ length: 3 }, () => ({ n: expect.anything() })))
    expect(sums.map(({ n }) => Number(n))).toEqual([5, 5, 5])
    await metering.database.close()
  })

  test('gateway#83 records and aggregates agree for whatever records there are, however they are batched', async () => {
    const metering = processOver(place(), { clock: stillClock(), flushRows: 7 })
    const { database } = metering
    let organization = 1000
    const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null })
    const made = fc.record({
      at: fc.integer({ min: T0 - 3 * DAY, max: T0 }),
      user_id: fc.constantFrom(1, 2),
      key_id: fc.constantFrom(7, 8),
      provider: fc.constantFrom(...KINDS),
      surface: fc.constantFrom(...SURFACES),
      model_used: fc.constantFrom('a', 'b c', 'ü/"x"'),
      input_tokens: maybe(fc.integer({ min: 0, max: 1e9 })),
      output_tokens: maybe(fc.integer({ min: 0, max: 1e9 })),
      cost: maybe(fc.bigInt({ min: 0n, max: 10n ** 16n })),
      outcome: fc.constantFrom('ok', 'error', 'rejected', 'cached', 'client_closed'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(made, { minLength: 1, maxLength: 40 }), async (all) => {
        const organization_id = ++organization
        const records = all.map(({ at, cost, ...fields }) =>
          usageRecord(at, {
            ...fields,
            organization_id,
            cost_usd: cost === null ? null : formatUsd(cost),
            cost_state: cost === null ? 'unknown_price' : 'exact',
          }),
        )
        for (const record of records) metering.meter.record(record)
        await metering.meter.flush()
        const sum = (pick: (record: UsageRecord) => number): number => records.reduce((n, each) => n + pick(each), 0)
        const cost = all.reduce((n, each) => n + (each.cost ?? 0n), 0n)
        for (const span of [MINUTE, HOUR, DAY]) {
          const row = await database.get<Record<string, unknown>>(
            `SELECT sum(requests) AS requests, sum(errors) AS errors, sum(rejected) AS rejected, sum(cached) AS cached,
               sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens, sum(unknown_price) AS unknown,
               CAST(sum(cost_nano) AS TEXT) AS cost FROM gateway_usage_aggregates WHERE organization_id = $1 AND span = $2`,
            [organization_id, span],
          )
          const { cost: text, ...counts } = row ?? {}
          expect(text).toBe(String(cost))
          expect(Object.fromEntries(Object.entries(counts).map(([name, n]) => [name, Number(n)]))).toEqual({
            requests: records.length,
            errors: sum(({ outcome }) => Number(outcome === 'error')),
            rejected: sum(({ outcome }) => Number(outcome === 'rejected')),
            cached: sum(({ outcome }) => Number(outcome === 'cached')),
            input_tokens: sum(({ input_tokens }) => input_tokens ?? 0),
            output_tokens: sum(({ output_tokens }) => output_tokens ?? 0),
            unknown: sum(({ cost_usd }) => Number(cost_usd === null)),
          })
        }
        const organizationSpent = await sumSpent(
          database,
          organization_id,
          { type: 'organization', id: organization_id },
          0,
        )
        expect(organizationSpent).toBe(cost)
      }),
      { numRuns: 25, seed: 83 },
    )
    await database.close()
  })

  test('credentials and keys show when they were last used', async () => {
    const metering = processOver(place(), { clock: stillClock() })
    const { database } = metering
    await database.run(
      `INSERT INTO gateway_credentials (organization_id, provider, name, enabled, fields, secret_names, version, created_by,
         created_at, updated_at) VALUES (1, 'openai', 'used', 1, '{}', '[]', 1, 1, 1, 1)`,
    )
    await database.run(
      `INSERT INTO gateway_keys (organization_id, name, hash, prefix, last4, enabled, fields, created_by, created_at,
         updated_at) VALUES (1, 'used', 'x', 'x', 'x', 1, '{}', 1, 1, 1)`,
    )
    const { id: credential = 0 } = (await database.get<{ id: number }>('SELECT id FROM gateway_credentials')) ?? {}
    const { id: key = 0 } = (await database.get<{ id: number }>('SELECT id FROM gateway_keys')) ?? {}
    const attempt = { credential_id: credential, model: 'm', class: 'ok' as const, started_at: '', duration_ms: 1 }
    for (const at of [T0, T0 + 5000, T0 + 3000]) {
      metering.meter.record(usageRecord(at, { key_id: key, attempts: [attempt, { ...attempt, credential_id: 999 }] }))
      await metering.meter.flush()
    }
    const used = 'SELECT last_used_at FROM gateway_credential_health WHERE credential_id = $1'
    expect(await database.get(used, [credential])).toEqual({ last_used_at: T0 + 5000 })
    expect(await database.get('SELECT last_used_at FROM gateway_keys WHERE id = $1', [key])).toEqual({
      last_used_at: T0 + 5000,
    })
    await database.close()
  })

  test('gateway#92 database away for 60 s: calls go on, and the spill is replayed once', async () => {
    const clock = stillClock()
    const database = fragile(place().open())
    const dataDir = mkdtempSync(join(tmpdir(), 'mem-test-spill-'))
    const spill = join(dataDir, 'gateway-spill.jsonl')
    const metering = processOver(place(), { clock, database, dataDir, flushRows: 20 })
    await metering.meter.start()
    const before = (await recorded(database)).length
    const records: UsageRecord[] = []
    const call = (): void => {
      metering.meter.admit()
      const record = usageRecord(clock.now(), { request_id: `spilled-${records.length}` })
      records.push(record)
      metering.meter.record(record)
    }
    database.isAway = true
    for (let second = 0; second < 60; second++) {
      call()
      call()
      await metering.meter.flush()
      clock.advance(1000)
    }
    expect(metering.meter.figures()).toMatchObject({ queue: 0, dropped: 0, spillBytes: statSync(spill).size })
    expect(statSync(spill).mode & 0o777).toBe(0o600)
    const lines = readFileSync(spill, 'utf8').trim().split('\n')
    expect(lines.map((line) => toUsageRecord(JSON.parse(line).row))).toEqual(records)

    // The answer of a commit may be lost, too: what is there counts no more.
    database.isAway = false
    database.losesAnswers = true
    clock.advance(10_000)
    await metering.meter.flush()
    database.losesAnswers = false
    clock.advance(10_000)
    call()
    await metering.meter.flush()
    expect(metering.meter.figures()).toEqual({ queue: 0, dropped: 0, spillBytes: 0 })
    expect(existsSync(spill)).toBe(false)
    const found = await recorded(database)
    expect(found).toHaveLength(before + records.length)
    const mine = await listUsage(database, 1, { request_id: 'spilled-7' }, undefined, 10)
    expect(mine).toHaveLength(1)
    const { n } = (await database.get<{ n: number }>(
      `SELECT sum(requests) AS n FROM gateway_usage_aggregates WHERE organization_id = 1 AND span = $1`,
      [DAY],
    )) ?? { n: '0' }
    expect(Number(n)).toBe(found.length)
    await metering.meter.close()
    await database.close()
  })

  test('gateway#92 a database that stands still holds nothing up: usage goes to the spill file, and counts once', async () => {
    const database = stalling(place().open())
    const dataDir = mkdtempSync(join(tmpdir(), 'mem-test-spill-'))
    const clock = stillClock()
    const metering = processOver(place(), { clock, database, dataDir, writeTimeoutMs: 20 })
    const caller = callerOf({}, { key: keyOf(4711, budgetOf('1')), userId: undefined })
    const held = await metering.budgets.reserve(caller, usd('0.5'))
    held.settle(usd('0.25'))
    const { begun } = database
    const record = (request_id: string): void =>
      metering.meter.record(usageRecord(T0, { request_id, key_id: 4711, cost_usd: '0.25' }))
    database.stall()
    record('stalled-1')
    await metering.meter.flush()
    record('stalled-2')
    await metering.meter.flush()
    expect(metering.meter.figures()).toMatchObject({ queue: 0, dropped: 0 })
    expect(readFileSync(join(dataDir, 'gateway-spill.jsonl'), 'utf8').split('\n')).toHaveLength(3)
    // Nothing else is asked of it until the first has ended.
    clock.advance(60_000)
    await metering.meter.flush()
    expect(database.begun).toBe(begun + 1)
    database.goOn()
    await expect
      .poll(async () => {
        clock.advance(10_000)
        await metering.meter.flush()
        return metering.meter.figures()
      })
      .toEqual({ queue: 0, dropped: 0, spillBytes: 0 })
    for (const request_id of ['stalled-1', 'stalled-2'])
      expect(await listUsage(database, 1, { request_id }, undefined, 10)).toHaveLength(1)
    const sums = await database.get<{ n: string; cost: string }>(
      'SELECT sum(requests) AS n, sum(cost_nano) AS cost FROM gateway_usage_aggregates WHERE key_id = 4711 AND span = $1',
      [DAY],
    )
    expect([Number(sums?.n), Number(sums?.cost)]).toEqual([2, 500_000_000])
    const budget = await database.get('SELECT spent FROM gateway_budgets WHERE owner = $1', ['key:4711'])
    expect(budget).toEqual({ spent: 500_000_000 })
    await metering.close()
    await database.close()
  })

  test('gateway#90 gateway#92 what was given back for a record is not given back again when its line comes twice', async () => {
    const database = fragile(place().open())
    const dataDir = mkdtempSync(join(tmpdir(), 'mem-test-spill-'))
    const clock = stillClock()
    const metering = processOver(place(), { clock, database, dataDir, flushRows: 1 })
    const caller = callerOf({}, { key: keyOf(4712, budgetOf('1')), userId: undefined })
    const call = async (): Promise<UsageRecord> => {
      const held = await metering.budgets.reserve(caller, usd('0.25'))
      held.settle(usd('0.25'))
      return usageRecord(clock.now(), { key_id: 4712, cost_usd: '0.25' })
    }
    const [first, second] = [await call(), await call()]
    database.isAway = true
    metering.meter.record(first)
    metering.meter.record({ ...usageRecord(T0), started_at: 'never' })
    for (let i = 0; i < 2; i++) await metering.meter.flush()
    const spill = join(dataDir, 'gateway-spill.jsonl')
    appendFileSync(spill, `${readFileSync(spill, 'utf8').split('\n')[0]}\n`)
    database.isAway = false
    const write = database.transaction.bind(database)
    let written = 0
    database.transaction = async (fn) => {
      const result = await write(fn)
      if (++written === 2) throw new Error('the answer never came')
      return result
    }
    clock.advance(10_000)
    await metering.meter.flush()
    expect([written, statSync(spill).size > 0]).toEqual([2, true])
    clock.advance(10_000)
    await metering.meter.flush()
    metering.meter.record(second)
    await metering.meter.flush()
    expect(metering.meter.figures()).toEqual({ queue: 0, dropped: 1, spillBytes: 0 })
    const budget = await database.get('SELECT spent, reserved FROM gateway_budgets WHERE owner = $1', ['key:4712'])
    expect(budget).toEqual({ spent: 500_000_000, reserved: 0 })
    expect(metering.budgets.unsettled.size).toBe(0)
    await metering.close()
    await database.close()
  })

  test('gateway#91 a stop does not wait for a database that stands still', async () => {
    const database = stalling(place().open())
    const dataDir = mkdtempSync(join(tmpdir(), 'mem-test-spill-'))
    const { meter } = processOver(place(), { clock: stillClock(), database, dataDir, writeTimeoutMs: 20 })
    database.stall()
    for (let i = 0; i < 1200; i++) meter.record(usageRecord(T0, { request_id: 'left-standing' }))
    await meter.close()
    expect(meter.figures().queue).toBe(0)
    expect(readFileSync(join(dataDir, 'gateway-spill.jsonl'), 'utf8').trim().split('\n')).toHaveLength(1200)
    database.goOn()
    await database.close()
  })

  test('gateway#92 a clock that is set back while the database is away does not hold the replay up', async () => {
    const database = fragile(place().open())
    const dataDir = mkdtempSync(join(tmpdir(), 'mem-test-spill-'))
    const clock = stillClock()
    const { meter } = processOver(place(), { clock, database, dataDir })
    database.isAway = true
    meter.record(usageRecord(T0, { request_id: 'set-back' }))
    for (let i = 0; i < 3; i++) await meter.flush()
    database.isAway = false
    clock.advance(-DAY)
    await meter.flush()
    expect(meter.figures()).toEqual({ queue: 0, dropped: 0, spillBytes: 0 })
    expect(await listUsage(database, 1, { request_id: 'set-back' }, undefined, 10)).toHaveLength(1)
    await meter.close()
    await database.close()
  })

  test('gateway#92 another process replays what one left, lines of an earlier version too, half a line left out; refused records do not stop it', async () => {
    const clock = stillClock()
    const dataDir = mkdtempSync(join(tmpdir(), 'mem-test-spill-'))
    const away = fragile(place().open())
    const first = processOver(place(), { clock, database: away, dataDir })
    away.isAway = true
    const [good, bad, last] = ['left-1', 'left-2', 'left-3'].map((request_id) => usageRecord(T0, { request_id }))
    if (!good || !bad || !last) throw new Error('three were made')
    for (const record of [good, { ...bad, started_at: 'never' }]) first.meter.record(record)
    await first.meter.close()
    const older = usageRecord(T0, { request_id: 'left-before' })
    const lines = [JSON.stringify({ process: 'x', record: older }), '{"process":"x","rec']
    appendFileSync(join(dataDir, 'gateway-spill.jsonl'), lines.join('\n'))
    first.meter.record(last)
    await first.meter.close()
    await away.close()

    const second = processOver(place(), { clock, dataDir })
    await second.meter.start()
    await second.meter.flush()
    for (const { id } of [good, older, last]) expect(await findUsage(second.database, 1, id)).toBeDefined()
    expect(second.meter.figures()).toEqual({ queue: 0, dropped: 1, spillBytes: 0 })
    await second.meter.close()
    await second.database.close()
  })

  test('gateway#91 a spill file that can neither be read nor written keeps no usage from the database, nor a stop from writing it', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'mem-test-spill-'))
    mkdirSync(join(dataDir, 'gateway-spill.jsonl'))
    const { meter, database } = processOver(place(), { clock: stillClock(), dataDir, flushRows: 10 })
    await meter.start()
    const keep = (): void => {
      for (let i = 0; i < 25; i++) meter.record(usageRecord(T0 + i, { request_id: 'past-the-spill' }))
    }
    const kept = async (): Promise<number> =>
      (await listUsage(database, 1, { request_id: 'past-the-spill' }, undefined, 100)).length
    keep()
    await meter.flush()
    expect([await kept(), meter.figures().queue]).toEqual([25, 0])
    keep()
    await meter.close()
    expect(await kept()).toBe(50)
    await database.close()
  })

  test('gateway#92 a damaged record in the spill file is left out, and stops nothing', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'mem-test-spill-'))
    const [before, damaged, after] = [1, 2, 3].map((i) => toUsageRow(usageRecord(T0 + i)))
    if (!before || !damaged || !after) throw new Error('three were made')
    const lines = [before, { ...damaged, record: damaged.record.slice(0, 40) }, { id: damaged.id }, after]
    const text = lines.map((row) => `${JSON.stringify({ process: 'x', row })}\n`).join('')
    writeFileSync(join(dataDir, 'gateway-spill.jsonl'), text)
    const { meter, database } = processOver(place(), { clock: stillClock(), dataDir })
    await meter.start()
    await meter.flush()
    const found = await Promise.all([before, damaged, after].map(({ id }) => findUsage(database, 1, id)))
    expect(found.map((row) => row?.id)).toEqual([before.id, undefined, after.id])
    expect(meter.figures()).toEqual({ queue: 0, dropped: 0, spillBytes: 0 })
    await meter.close()
    await database.close()
  })

  test.each(['reject', 'drop'] as const)('gateway#92 queue and spill full: %s', async (onFull) => {
    const database = fragile(place().open())
    database.isAway = true
    const dataDir = mkdtempSync(join(tmpdir(), 'mem-test-spill-'))
    const { meter } = processOver(place(), { clock: stillClock(), database, dataDir, onFull, spillBytes: 1000 })
    const record = usageRecord(T0)
    for (let i = 0; i < 50_000; i++) meter.record(record)
    await meter.flush()
    expect(meter.figures()).toEqual({ queue: 50_000, dropped: 0, spillBytes: 0 })
    const admitted = (() => {
      try {
        meter.admit()
        meter.record(record)
        return meter.figures()
      } catch (error) {
        return error
      }
    })()
    expect(admitted).toMatchObject(
      { reject: { code: 'metering_unavailable', status: 503 }, drop: { queue: 50_000, dropped: 1 } }[onFull],
    )
    await database.close()
  })

  test('while neither database nor spill file takes usage the log tells of each once, and of their return', async () => {
    const told: string[] = []
    const tell = (_fields: object, message: string): void => void told.push(message)
    const database = fragile(place().open())
    database.isAway = true
    const dataDir = '/dev/null/data'
    const log = { info: tell, warn: tell, error: tell }
    const { meter } = processOver(place(), { clock: stillClock(), database, dataDir, log })
    meter.record(usageRecord(T0))
    for (let i = 0; i < 3; i++) await meter.flush()
    database.isAway = false
    await meter.flush()
    expect(told).toEqual([
      'usage cannot be written: it goes to gateway-spill.jsonl for now',
      'the spill file cannot be written',
      'usage is written again',
    ])
    expect(meter.figures()).toEqual({ queue: 0, dropped: 0, spillBytes: 0 })
    await database.close()
  })

  test('a clean stop writes what waits', async () => {
    const metering = processOver(place(), { clock: stillClock() })
    await metering.start()
    for (let i = 0; i < 1234; i++) metering.meter.record(usageRecord(T0 + i, { request_id: 'stopping' }))
    await metering.close()
    expect(await listUsage(metering.database, 1, { request_id: 'stopping' }, undefined, 2000)).toHaveLength(1234)
    expect(
      await metering.database.all('SELECT * FROM gateway_processes WHERE id = $1', [metering.processes.id]),
    ).toEqual([])
    await metering.database.close()
  })

  test('money beyond what numbers are exact for is kept to the last nano-dollar', async () => {
    const metering = processOver(place(), { clock: stillClock() })
    for (let i = 0; i < 3; i++)
      metering.meter.record(usageRecord(T0, { organization_id: 77, cost_usd: '90000000.000000001' }))
    await metering.meter.flush()
    expect(await sumSpent(metering.database, 77, { type: 'organization', id: 77 }, 0)).toBe(
      3n * usd('90000000.000000001'),
    )
    await metering.database.close()
  })
})
