import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SignInBrake } from '../../src/console/sign-in-brake.ts'
import { adjustableClock, startMemoryApi, type MemoryApi } from '../support/memory-api.ts'
import { createClient } from './console-client.ts'

const clockAt = (now: number) => ({ at: now, now: () => now })

/** A brake with a clock that the test moves, after so many failures of an address. */
function braked(address: string, failures: number) {
  const clock = clockAt(1_000_000)
  clock.now = () => clock.at
  const brake = new SignInBrake(clock)
  for (let i = 0; i < failures; i++) brake.failed(address)
  return { brake, clock }
}

describe('who sends wrong keys has to wait,', () => {
  test('not for the first four, then twice as long each time, 15 minutes at most', () => {
    const waits = [4, 5, 6, 7, 14, 15, 40].map((failures) => braked('192.0.2.1', failures).brake.waitMs('192.0.2.1'))
    expect(waits).toEqual([0, 1000, 2000, 4000, 512_000, 900_000, 900_000])
  })

  test('until time has passed, or the right key came; others do not wait', () => {
    const { brake, clock } = braked('192.0.2.1', 6)
    expect(brake.waitMs('192.0.2.2')).toBe(0)
    clock.at += 1999
    expect(brake.waitMs('192.0.2.1')).toBe(1)
    clock.at += 1
    expect(brake.waitMs('192.0.2.1')).toBe(0)
    brake.failed('192.0.2.1')
    expect(brake.waitMs('192.0.2.1')).toBe(4000)
    brake.succeeded('192.0.2.1')
    expect(brake.waitMs('192.0.2.1')).toBe(0)
  })

  test('an hour of quiet forgets', () => {
    const { brake, clock } = braked('192.0.2.1', 8)
    clock.at += 3_600_000
    brake.failed('192.0.2.1')
    expect(brake.waitMs('192.0.2.1')).toBe(0)
  })

  test('as a network of IPv6, however it is written', () => {
    const { brake } = braked('2001:db8:0:1::1', 5)
    expect(['2001:db8:0:1:a:b:c:d', '2001:db8:0:1::'].map((ip) => brake.waitMs(ip))).toEqual([1000, 1000])
    expect(['2001:db8:0:2::1', '::1', '2001:db8::1'].map((ip) => brake.waitMs(ip))).toEqual([0, 0, 0])
  })

  test('all together: a hundred wrong keys a minute hold up everyone until the minute is over', () => {
    const { brake, clock } = braked('192.0.2.1', 1)
    for (let i = 0; i < 99; i++) brake.failed(`198.51.100.${i}`)
    clock.at += 1000
    expect(brake.waitMs('203.0.113.9')).toBe(59_000)
    clock.at += 59_000
    expect(brake.waitMs('203.0.113.9')).toBe(0)
  })

  test('memory is bounded: of many addresses the one that failed longest ago is let go', () => {
    const { brake, clock } = braked('192.0.2.1', 6)
    for (let i = 0; i < 10_000; i++) {
      clock.at += 1
      brake.failed(`10.0.${i >> 8}.${i & 255}`)
    }
    clock.at += 60_000
    brake.failed('192.0.2.1')
    expect(brake.waitMs('192.0.2.1')).toBe(0)
  })
})

describe('the sign-in page', () => {
  const clock = adjustableClock()
  let api: MemoryApi
  beforeAll(async () => {
    api = await startMemoryApi({ dialect: 'sqlite', env: { MEM_API_KEY: 'k' }, clock })
  })
  afterAll(() => api.stop())

  test('answers 429 with Retry-After, also to the right key, and lets it in later', async () => {
    const client = createClient(api.url)
    const statuses: number[] = []
    for (let i = 0; i < 5; i++) statuses.push((await client.post('/ui/login', { api_key: 'wrong' })).status)
    expect(statuses).toEqual([401, 401, 401, 401, 401])
    const { status, headers, text } = await client.post('/ui/login', { api_key: 'k' })
    expect([status, headers.get('retry-after')]).toEqual([429, '1'])
    expect(text).toContain('Too many wrong keys. Try again in 1 s.')
    clock.advance(1000)
    expect((await client.post('/ui/login', { api_key: 'k' })).status).toBe(303)
  })
})
