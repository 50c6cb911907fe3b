import { expect, test } from 'vitest'
import type { UsageRecord } from '../../../src/gateway/model.ts'
import { DAY } from '../../../src/gateway/store/aggregates.ts'
import { expectError, expectOk } from '../../platform/support.ts'
import { heldMemory } from '../../support/held-memory.ts'
import { describeMeteringApi, iso, keep, usageRecord, type MeteringApi } from './support.ts'

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
