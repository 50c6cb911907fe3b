import { expect, test } from 'vitest'
import { formatUsd, parseUsd } from '../../../src/gateway/cost/money.ts'
import { SURFACES, type UsageRecord } from '../../../src/gateway/model.ts'
import { Spending } from '../../../src/gateway/metering/spending.ts'
import { DAY, HOUR, MINUTE } from '../../../src/gateway/store/aggregates.ts'
import { expectError, expectOk } from '../../platform/support.ts'
import { describeMeteringApi, iso, keep, percentileOf, usageRecord, usd, type MeteringApi } from './support.ts'

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
    const nothing = { limit_usd: '0', window: 'week' }
    const idle = expectOk(await call('POST', '/keys', { name: 'nothing', budget: nothing }), 201)
    expect(await spending.left(management.states.all())).toEqual(left)
    expectOk(await call('DELETE', `/keys/${idle.id}`), 204)
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
