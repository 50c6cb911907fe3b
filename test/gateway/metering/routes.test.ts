import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatUsd, parseUsd } from '../../../src/gateway/cost/money.ts'
import { SURFACES, type UsageRecord } from '../../../src/gateway/model.ts'
import { addTime, encodeTimes, addEncoded, noTimes, percentile } from '../../../src/gateway/metering/histogram.ts'
import { Spending } from '../../../src/gateway/metering/spending.ts'
import { piecesOf } from '../../../src/gateway/metering/ranges.ts'
import { DAY, HOUR, MINUTE } from '../../../src/gateway/store/aggregates.ts'
import { expectError, expectOk } from '../../platform/support.ts'
import { heldMemory } from '../../support/held-memory.ts'
import { describeMeteringApi, usageRecord, usd, type MeteringApi } from './support.ts'

const iso = (ms: number): string => new Date(ms).toISOString()

/** Puts records where the routes find them. */
async function keep({ metering }: MeteringApi, records: readonly UsageRecord[]): Promise<void> {
  for (const record of records) metering.meter.record(record)
  await metering.meter.flush()
}

/** Seeded numbers in [0, 1). */
function randomSource(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1103515245 + 12345) % 2 ** 31
    return state / 2 ** 31
  }
}

const fail = (): never => {
  throw new Error('there is nothing to pick from')
}

/** By rank: what so large a share of all does not exceed. */
const percentileOf = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.ceil(share * values.length) - 1] ?? 0

test('gateway#93 percentiles of a histogram are within 5 %, before and after it was stored', () => {
  const time = fc.oneof(fc.double({ min: 0.002, max: 3_600_000, noNaN: true }), fc.integer({ min: 1, max: 2000 }))
  fc.assert(
    fc.property(fc.array(time, { minLength: 1, maxLength: 300 }), (values) => {
      const times = noTimes()
      for (const value of values) addTime(times.upstream_ms, value)
      const stored = noTimes()
      addEncoded(stored, encodeTimes(times))
      expect(stored).toEqual(times)
      for (const share of [0.5, 0.95, 0.99]) {
        const [found, exact] = [percentile(stored.upstream_ms, share) ?? 0, percentileOf(values, share)]
        expect(Math.abs(found - exact) / exact).toBeLessThan(0.05)
      }
    }),
    { seed: 93 },
  )
  expect(percentile(new Map(), 0.5)).toBeNull()
})

test('pieces cover a range without gap or overlap, none coarser than asked', () => {
  const time = fc.tuple(fc.nat({ max: 40_000 }), fc.constantFrom(0, 0, 1, 59_999)).map(([a, b]) => a * MINUTE + b)
  const range = fc.tuple(time, time).filter(([a, b]) => a !== b)
  fc.assert(
    fc.property(range, fc.constantFrom(MINUTE, HOUR, DAY), ([a, b], span) => {
      const [from, to] = [Math.min(a, b), Math.max(a, b)]
      let at = from
      for (const piece of piecesOf(from, to, span)) {
        expect(piece.from).toBe(at)
        expect(piece.span).toBeLessThanOrEqual(span)
        expect([piece.from % piece.span, piece.to % piece.span]).toEqual([0, 0])
        at = piece.to
      }
      expect(at).toBe(to)
      expect(piecesOf(from, to, span).length).toBeLessThanOrEqual(7)
    }),
    { seed: 93 },
  )
})

describeMeteringApi('usage', (api) => {
  const call: MeteringApi['call'] = (...args) => api().call(...args)
  const now = (): number => api().clock.now()

  test('gateway#9 members see their own usage, admins all; gateway#7 nobody another organization', async () => {
    const { id, token } = await api().user('own@example.org')
    const [mine, others] = [usageRecord(now(), { user_id: id }), usageRecord(now(), { user_id: 1, key_id: 9 })]
    await keep(api(), [mine, others])
    const seen = async (options = {}): Promise<string[]> =>
      expectOk(await call('GET', '/usage', undefined, options)).usage.map((record: UsageRecord) => record.id)
    expect(await seen()).toEqual(expect.arrayContaining([mine.id, others.id]))
    expect(await seen({ token })).toEqual([mine.id])
    expect(expectOk(await call('GET', `/usage/${mine.id}`, undefined, { token }))).toEqual(mine)
    expectError(await call('GET', `/usage/${others.id}`, undefined, { token }), 404, 'not_found', { resource: 'usage' })
    expect(expectOk(await call('GET', '/usage?user_id=1', undefined, { token })).usage).toEqual([])
    expect((await call('GET', '/usage/export', undefined, { token })).body).toBe(`${JSON.stringify(mine)}\n`)
    const { totals } = expectOk(await call('GET', '/analytics', undefined, { token }))
    expect(totals).toMatchObject({ requests: 1, cost_usd: '0.001' })
    expect(expectOk(await call('GET', '/cost', undefined, { token }))).toMatchObject({ total_usd: '0.001' })
    expectError(await call('GET', `/usage/${mine.id}/content`, undefined, { token }), 403, 'forbidden')
    expectError(await call('GET', '/usage', undefined, { token: null }), 401, 'unauthorized')
    const foreign = { token: await api().login('bo@example.net') }
    expect(await seen(foreign)).toEqual([])
    expect(expectOk(await call('GET', '/cost', undefined, foreign))).toMatchObject({ total_usd: '0', breakdown: [] })
    for (const path of [`/usage/${mine.id}`, `/usage/${mine.id}/content`]) {
      expectError(await call('GET', path, undefined, foreign), 404, 'not_found')
    }
  })

  test('the list is newest first, paged, filtered; bad filters are 400', async () => {
    const at = now() - 40 * DAY
    const records = Array.from({ length: 7 }, (_, i) =>
      usageRecord(at + Math.floor(i / 2), { request_id: `paged-${i}`, provider: 'groq', key_id: i % 2 ? 5 : 6 }),
    )
    await keep(api(), records)
    const range = `from=${iso(at)}&to=${iso(at + DAY)}`
    const pages: UsageRecord[][] = []
    for (let after = ''; ;) {
      const { usage, next_after_id } = expectOk(await call('GET', `/usage?${range}&limit=3&after_id=${after}`))
      pages.push(usage)
      if (next_after_id === '') break
      after = next_after_id
    }
    expect(pages.map(({ length }) => length)).toEqual([3, 3, 1])
    const order = [...records].sort((a, b) => (a.started_at + a.id < b.started_at + b.id ? 1 : -1))
    expect(pages.flat()).toEqual(order)
    const found = async (query: string): Promise<number> =>
      expectOk(await call('GET', `/usage?${range}&${query}`)).usage.length
    expect(await found('key_id=5')).toBe(3)
    expect(await found('request_id=paged-3')).toBe(1)
    expect(await found('provider=groq&surface=chat&outcome=ok&model=gpt-5&credential_id=3&user_id=1')).toBe(7)
    expect(await found('outcome=error')).toBe(0)
    for (const [query, field] of [
      ['from=yesterday', 'from'],
      ['user_id=x', 'user_id'],
      ['provider=nobody', 'provider'],
      ['outcome=fine', 'outcome'],
      ['limit=0', 'limit'],
      ['after_id=nothing', 'after_id'],
    ]) {
      expectError(await call('GET', `/usage?${query}`), 400, 'invalid_request', { field })
    }
    expectError(await call('GET', '/usage/export?format=xml'), 400, 'invalid_request', { field: 'format' })
    expect(await found('key_id=99999999999999999999')).toBe(0)
    const many = await call('GET', '/usage?limit=99999999999999999999')
    expect(many.body.error.message).toBe('limit must be 1 to 200')
  })

  test('a page goes on behind a record that is gone since', async () => {
    const at = now() - 50 * DAY
    await keep(
      api(),
      [0, 1, 2, 3].map((i) => usageRecord(at + i)),
    )
    const list = async (query: string) =>
      expectOk(await call('GET', `/usage?from=${iso(at)}&to=${iso(at + DAY)}&${query}`))
    const { usage, next_after_id: after } = await list('limit=2')
    await api().database.run('DELETE FROM gateway_usage WHERE id = $1', [after])
    const rest = await list(`limit=2&after_id=${after}`)
    expect(rest.usage.map(({ started_at }: UsageRecord) => started_at)).toEqual([iso(at + 1), iso(at)])
    expect([usage.length, rest.next_after_id]).toEqual([2, ''])
  })

  test(
    'gateway#94 an export of 100,000 rows streams within bounds; formula cells are neutralised',
    { timeout: 120_000 },
    async () => {
      const at = now() - 60 * DAY
      const ROWS = 100_000
      for (let first = 0; first < ROWS; first += 5000) {
        const rows = Array.from({ length: 5000 }, (_, i) => usageRecord(at + first + i, { user_id: 77 }))
        await keep(api(), rows)
      }
      const before = heldMemory()
      const address = `${api().url}/rest/v1/llm-gateway/usage/export?format=csv&user_id=77`
      const response = await fetch(address, { headers: { Authorization: `Bearer ${api().admin}` } })
      expect(response.headers.get('content-type')).toBe('text/csv; charset=utf-8')
      expect(response.headers.get('content-disposition')).toBe('attachment; filename="usage.csv"')
      let lines = 0
      let inTheMiddle = 0
      for await (const chunk of response.body ?? []) {
        for (const byte of chunk) if (byte === 10) lines++
        if (lines > ROWS / 2) inTheMiddle ||= heldMemory()
      }
      expect(lines).toBe(ROWS + 1)
      // All rows at once are above 100 MiB.
      expect(inTheMiddle - before).toBeLessThan(40 * 1024 * 1024)

      const evil = usageRecord(now(), {
        user_id: 78,
        model_requested: '=cmd|"x"!A1',
        client: '@SUM(1,2)',
        request_id: '-1',
      })
      await keep(api(), [evil])
      const { body } = await call('GET', '/usage/export?format=csv&user_id=78')
      expect(body).toContain(`'=cmd|""x""!A1`)
      expect(body).toContain(`"'@SUM(1,2)"`)
      expect(body).toContain(`,'-1,`)
    },
  )

  test('gateway#99 content: sealed, read by admins under audit; off: gone', async () => {
    const marker = 'MARKER-4711'
    const { metering, database, management } = api()
    const settings = expectOk(await call('GET', '/settings'))
    expectOk(await call('PUT', '/settings', { ...settings, content_logging: true }))
    const [kept, plain] = [usageRecord(now()), usageRecord(now())]
    metering.meter.record(kept, {
      request: Buffer.from(`{"q":"${marker}"}`),
      response: Buffer.from('x'.repeat(300_000)),
    })
    metering.meter.record(plain)
    await metering.meter.flush()
    for (const table of ['gateway_usage', 'gateway_contents', 'gateway_usage_aggregates']) {
      expect(JSON.stringify(await database.all(`SELECT * FROM ${table}`))).not.toContain(marker)
    }
    expectError(await call('GET', `/usage/${plain.id}/content`), 404, 'not_found')
    const content = expectOk(await call('GET', `/usage/${kept.id}/content`))
    expect(content).toEqual({ request: `{"q":"${marker}"}`, response: 'x'.repeat(256 * 1024), truncated: true })
    const { audit } = expectOk(await call('GET', '/audit?action=content.read'))
    expect(audit).toMatchObject([{ target: { type: 'usage', id: kept.id }, actor: { type: 'user', id: 1 } }])
    expect(JSON.stringify(audit)).not.toContain(marker)

    await metering.retention.run()
    expectOk(await call('GET', `/usage/${kept.id}/content`))
    expectOk(await call('PUT', '/settings', settings))
    await management.states.poll()
    await metering.retention.run()
    expectError(await call('GET', `/usage/${kept.id}/content`), 404, 'not_found')
    expectOk(await call('GET', `/usage/${kept.id}`))
  })
})

describeMeteringApi('analytics and cost', (api) => {
  const call: MeteringApi['call'] = (...args) => api().call(...args)
  const now = (): number => api().clock.now()

  test('gateway#83 gateway#93 records, analytics and cost agree over any range, interval and group', async () => {
    const random = randomSource(83)
    const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] ?? fail()
    const end = Math.floor(now() / MINUTE) * MINUTE
    const records = Array.from({ length: 600 }, () => {
      const at = end - Math.floor(random() * 20 * DAY)
      const cost = BigInt(Math.floor(random() * 1e9))
      return usageRecord(at, {
        surface: pick(SURFACES),
        model_used: pick(['a', 'b']),
        user_id: pick([1, 2]),
        outcome: pick(['ok', 'ok', 'error', 'rejected', 'cached']),
        status: pick([200, 429]),
        duration_ms: 1 + random() * 5000,
        overhead_ms: random() * 3,
        upstream_ms: random() * 4000,
        first_token_ms: random() * 800,
        ...(random() < 0.2 ? { cost_usd: null, cost_state: 'unknown_price' as const } : { cost_usd: formatUsd(cost) }),
      })
    })
    await keep(api(), records)
    const cost = (some: readonly UsageRecord[]): bigint =>
      some.reduce((sum, { cost_usd }) => sum + (parseUsd(cost_usd ?? '0') ?? 0n), 0n)
    for (let round = 0; round < 12; round++) {
      const interval = pick(['hour', 'day'])
      const from = end - (8 + Math.floor(random() * 12)) * DAY - Math.floor(random() * 20) * HOUR
      const to = from + Math.floor(1 + random() * 200) * HOUR
      // Further back than a week hours are the finest that is kept.
      const first = Math.floor(from / HOUR) * HOUR
      const last = to >= end - 7 * DAY ? to : Math.ceil(to / HOUR) * HOUR
      // Aggregates are not told apart by outcome: then records are asked.
      const wanted = pick(['', '', 'ok', 'error'])
      const inside = records.filter(
        ({ started_at, outcome }) =>
          Date.parse(started_at) >= first && Date.parse(started_at) < last && outcome === (wanted || outcome),
      )
      const range = `from=${iso(from)}&to=${iso(to)}&outcome=${wanted}`
      const answer = expectOk(await call('GET', `/analytics?${range}&interval=${interval}&group_by=model,surface`))
      expect([answer.from, answer.to, answer.interval, answer.active_requests]).toEqual([
        iso(first),
        iso(last),
        interval,
        4,
      ])
      const { totals } = answer
      const known = cost(inside)
      expect(totals.requests).toBe(inside.length)
      expect(totals.errors).toBe(inside.filter(({ outcome }) => outcome === 'error').length)
      expect(totals.rate_limited).toBe(inside.filter(({ status }) => status === 429).length)
      expect(totals.cost_unknown_requests).toBe(inside.filter(({ cost_usd }) => cost_usd === null).length)
      expect(totals.cost_usd ?? '0').toBe(formatUsd(known))
      for (const name of ['duration_ms', 'upstream_ms', 'overhead_ms', 'first_token_ms'] as const) {
        if (inside.length === 0) continue
        const values = inside.map((record) => record[name] ?? 0)
        for (const [key, share] of [
          ['p50', 0.5],
          ['p95', 0.95],
          ['p99', 0.99],
        ] as const) {
          const exact = percentileOf(values, share)
          expect(Math.abs(totals[name][key] - exact)).toBeLessThanOrEqual(exact * 0.05)
        }
      }
      const span = interval === 'hour' ? HOUR : DAY
      const buckets: number[] = answer.series.map(({ bucket }: { bucket: string }) => Date.parse(bucket))
      expect(buckets).toEqual(buckets.toSorted((a, b) => a - b))
      for (const { bucket, group, requests } of answer.series) {
        const start = Date.parse(bucket)
        const its = inside.filter(({ started_at, model_used, surface }) => {
          const at = Date.parse(started_at)
          return at >= start && at < start + span && model_used === group.model && surface === group.surface
        })
        expect(requests).toBe(its.length)
      }
      const spent = expectOk(await call('GET', `/cost?${range}&group_by=user`))
      expect(spent.unknown_price_requests).toBe(totals.cost_unknown_requests)
      expect(spent.total_usd).toBe(totals.cost_usd)
      for (const { group, requests, cost_usd } of spent.breakdown) {
        const its = inside.filter(({ user_id }) => user_id === group.user)
        expect([requests, cost_usd ?? '0']).toEqual([its.length, formatUsd(cost(its))])
      }
    }
    expect(expectOk(await call('GET', '/cost?request_id=req-1')).total_usd).toBe(formatUsd(cost(records)))
    expect(expectOk(await call('GET', '/cost?request_id=req-2')).breakdown).toEqual([])
    const all = expectOk(await call('GET', '/cost'))
    expect(all).toMatchObject({ enabled: true, currency: 'USD', total_usd: formatUsd(cost(records)) })
    const recent = expectOk(
      await call('GET', `/analytics?interval=minute&from=${iso(end - DAY)}&to=${iso(end)}&model=a`),
    )
    const minutes = records.filter(
      ({ started_at, model_used }) => Date.parse(started_at) >= end - DAY && model_used === 'a',
    )
    expect(recent.totals.requests).toBe(minutes.filter(({ started_at }) => Date.parse(started_at) < end).length)
  })

  test('gateway#83 within the last day records, analytics and cost agree over a range that cuts minutes', async () => {
    const minute = Math.floor((now() - 5 * HOUR) / MINUTE) * MINUTE
    const places = [0, 20_000, 59_999, MINUTE, 2 * MINUTE, 2 * MINUTE + 30_000, 2 * MINUTE + 30_001]
    const records = places.map((place) =>
      usageRecord(minute + place, { provider: 'bedrock', key_id: 77, cost_usd: '0.5' }),
    )
    await keep(api(), records)
    for (const [first, last] of [
      [1, 5],
      [1, 2],
      [2, 3],
      [3, 6],
      [0, 6],
    ] as const) {
      const range = `key_id=77&from=${iso(minute + (places[first] ?? 0))}&to=${iso(minute + (places[last] ?? 0))}`
      expect(expectOk(await call('GET', `/usage?${range}`)).usage).toHaveLength(last - first)
      for (const interval of ['minute', 'hour', 'day']) {
        const { totals, series } = expectOk(await call('GET', `/analytics?${range}&interval=${interval}`))
        expect(totals).toMatchObject({ requests: last - first, cost_usd: formatUsd(usd('0.5') * BigInt(last - first)) })
        const buckets = series.map(({ bucket }: { bucket: string }) => bucket)
        expect(new Set(buckets).size).toBe(buckets.length)
      }
      for (const more of ['', '&outcome=ok']) {
        const { breakdown } = expectOk(await call('GET', `/cost?${range}${more}`))
        expect(breakdown).toMatchObject([{ requests: last - first }])
      }
    }
  })

  test('gateway#93 bad ranges, intervals and groups are 400', async () => {
    for (const [query, field] of [
      [`from=${iso(now())}&to=${iso(now() - HOUR)}`, 'from'],
      [`from=${iso(now() - 2001 * MINUTE)}&interval=minute`, 'from'],
      [`from=${iso(now() - 8 * DAY)}&to=${iso(now() - 8 * DAY + HOUR)}&interval=minute`, 'from'],
      [`from=${iso(now() - 2001 * DAY)}&interval=day`, 'from'],
      ['interval=week', 'interval'],
      ['group_by=model,user,key', 'group_by'],
      ['group_by=outcome', 'group_by'],
      ['outcome=fine', 'outcome'],
      ['to=tomorrow', 'to'],
    ]) {
      expectError(await call('GET', `/analytics?${query}`), 400, 'invalid_request', { field })
    }
    expectOk(await call('GET', `/analytics?from=${iso(now() - 1990 * DAY)}&interval=day`))
    expectError(await call('GET', '/cost?from=2026-02-30'), 400, 'invalid_request', { field: 'from' })
  })

  test('gateway#84 an unknown price is null everywhere, a price of 0 is 0', async () => {
    const unknown = usageRecord(now(), { provider: 'ollama', cost_usd: null, cost_state: 'unknown_price' })
    const free = usageRecord(now(), { provider: 'mistral', cost_usd: '0' })
    await keep(api(), [unknown, free])
    expect(expectOk(await call('GET', `/usage/${unknown.id}`))).toMatchObject({
      cost_usd: null,
      cost_state: 'unknown_price',
    })
    const of = async (provider: string) => {
      const { series, totals } = expectOk(await call('GET', `/analytics?provider=${provider}&to=${iso(now() + HOUR)}`))
      const spent = expectOk(await call('GET', `/cost?provider=${provider}`))
      return {
        series: series[0].cost_usd,
        totals: totals.cost_usd,
        cost: spent.total_usd,
        part: spent.breakdown[0].cost_usd,
      }
    }
    expect(await of('ollama')).toEqual({ series: null, totals: null, cost: null, part: null })
    expect(await of('mistral')).toEqual({ series: '0', totals: '0', cost: '0', part: '0' })
    const csv = (await call('GET', '/usage/export?format=csv&provider=ollama')).body
    expect(csv).toContain(',,unknown_price,')
  })

  test('gateway#86 costs off: null; with budgets 409', async () => {
    const settings = expectOk(await call('GET', '/settings'))
    expectOk(await call('PUT', '/settings', { ...settings, budget: { limit_usd: '5', window: 'month' } }))
    expectError(await call('POST', '/cost/disable'), 409, 'conflict', { reason: 'budgets_exist' })
    expectOk(await call('PUT', '/settings', settings))
    expect(expectOk(await call('POST', '/cost/disable'))).toEqual({ enabled: false })
    await keep(api(), [usageRecord(now(), { cost_usd: null, cost_state: 'disabled', provider: 'groq' })])
    const off = expectOk(await call('GET', '/cost'))
    expect(off).toMatchObject({ enabled: false, total_usd: null, estimated_usd: null, budgets: [] })
    expect(off.breakdown.every(({ cost_usd }: { cost_usd: unknown }) => cost_usd === null)).toBe(true)
    const { token } = await api().user('cost@example.org')
    expectError(await call('POST', '/cost/enable', undefined, { token }), 403, 'forbidden')
    expect(expectOk(await call('POST', '/cost/enable'))).toEqual({ enabled: true })
    const analytics = expectOk(await call('GET', `/analytics?provider=groq&to=${iso(now() + HOUR)}`))
    expect(analytics.totals).toMatchObject({ cost_usd: null, cost_unknown_requests: 0 })
  })

  test('cost shows budgets and what is left of them, prices those of the table', async () => {
    const { id, token } = await api().user('spender@example.org')
    const settings = expectOk(await call('GET', '/settings'))
    const budget = { limit_usd: '5', window: 'total', unknown_price: 'deny' }
    const user_budget = { ...budget, window: 'day' }
    expectOk(await call('PUT', '/settings', { ...settings, budget, user_budget }))
    const key = expectOk(
      await call('POST', '/keys', { name: 'spending', budget: { limit_usd: '2', window: 'week' } }),
      201,
    )
    await keep(api(), [
      usageRecord(now(), { user_id: id, cost_usd: '1.5' }),
      usageRecord(now(), { key_id: key.id, cost_usd: '0.25' }),
    ])
    const { budgets, model_table_version } = expectOk(await call('GET', '/cost'))
    expect(model_table_version).toBe('2026-11-01')
    expect(budgets).toContainEqual({
      scope: 'user',
      id,
      limit_usd: '5',
      spent_usd: '1.5',
      reserved_usd: '0',
      window: 'day',
      resets_at: iso(Math.ceil(now() / DAY) * DAY),
    })
    expect(budgets).toContainEqual(
      expect.objectContaining({ scope: 'key', id: key.id, limit_usd: '2', spent_usd: '0.25', window: 'week' }),
    )
    const whole = budgets.find(({ scope }: { scope: string }) => scope === 'organization')
    expect(whole).toEqual({
      scope: 'organization',
      limit_usd: '5',
      spent_usd: expect.any(String),
      reserved_usd: '0',
      window: 'total',
    })
    const { database, clock, management } = api()
    const spending = new Spending(database, clock, (organization) => management.states.get(organization))
    const unlimited = expectOk(await call('POST', '/keys', { name: 'unlimited' }), 201)
    await keep(api(), [usageRecord(now() - 300 * DAY, { key_id: unlimited.id, cost_usd: '7' })])
    const spent = await spending.spentOf(1, [key.id, unlimited.id])
    expect(spent.get(key.id)).toEqual({ spent_usd: '0.25', reserved_usd: '0', window_resets_at: expect.any(String) })
    expect(spent.get(unlimited.id)).toEqual({ spent_usd: '7', reserved_usd: '0' })
    const left = await spending.left(management.states.all())
    expect(left.map(({ organizationId, scope }) => [organizationId, scope])).toEqual([
      [1, 'organization'],
      [1, 'user'],
      [1, 'key'],
    ])
    expect(left).toContainEqual({ organizationId: 1, scope: 'key', ratio: 0.875 })
    const own = expectOk(await call('GET', '/cost', undefined, { token })).budgets
    expect(own).toMatchObject([{ scope: 'user', id, spent_usd: '1.5' }])
    expect(expectOk(await call('GET', '/cost/prices', undefined, { token }))).toEqual({
      version: '2026-11-01',
      prices: [{ provider: 'openai', model: 'gpt-5', usd_per_million: { input: '1.25', output: '10' } }],
    })
    expectOk(await call('PUT', '/settings', settings))
    expectOk(await call('DELETE', `/keys/${key.id}`), 204)
  })

  test('what was kept long enough goes, in whole days; sums stay', async () => {
    const { metering, database, management } = api()
    const start = Math.floor(now() / DAY) * DAY
    const at = (days: number): UsageRecord => usageRecord(start - days * DAY, { user_id: 501 })
    const [young, old, older] = [at(90), usageRecord(start - 90 * DAY - 1, { user_id: 501 }), at(500)]
    const many = Array.from({ length: 450 }, (_, i) => usageRecord(start - 200 * DAY + i, { user_id: 501 }))
    await keep(api(), [young, old, older, ...many])
    await management.states.poll()
    await metering.retention.run()
    const { usage } = expectOk(await call('GET', '/usage?user_id=501'))
    expect(usage).toEqual([young])
    const spans = await database.all<{ span: number; n: string }>(
      'SELECT span, sum(requests) AS n FROM gateway_usage_aggregates WHERE user_id = 501 GROUP BY span ORDER BY span',
    )
    expect(spans.map(({ span, n }) => [span, Number(n)])).toEqual([
      [HOUR, 452],
      [DAY, 453],
    ])
    const { totals } = expectOk(await call('GET', `/analytics?interval=day&user_id=501&from=${iso(start - 600 * DAY)}`))
    expect(totals.requests).toBe(453)
  })
})
