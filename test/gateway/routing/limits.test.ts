import fc from 'fast-check'
import { expect, test } from 'vitest'
import { GatewayError } from '../../../src/gateway/errors.ts'
import type { Candidate, Selection } from '../../../src/gateway/routing/candidate.ts'
import { CallerLimits } from '../../../src/gateway/routing/limits.ts'
import type { Limits } from '../../../src/gateway/model.ts'
import { call, credential, idOf, key, next, organization, routing } from './support.ts'

const state = organization({})

function limiter(processes = 1) {
  let now = 1_800_000_000_000
  const limits = new CallerLimits({ clock: { now: () => now }, processes: () => processes })
  const caller = (id: number, limit: Limits) => ({ state, userId: undefined, key: key(id, { limits: limit }) })
  return {
    advance: (ms: number) => void (now += ms),
    take: (id: number, limit: Limits, tokens = 1) => limits.take(caller(id, limit), tokens),
    headers: (id: number, limit: Limits) => limits.headers(caller(id, limit)),
  }
}

function refusal(work: () => unknown): [string, number | undefined] {
  try {
    work()
  } catch (error) {
    if (error instanceof GatewayError) return [error.code, error.retryAfterMs]
    throw error
  }
  throw new Error('nothing was thrown')
}

test('gateway#43 a key has its requests a minute, then 429 with the time until the next', () => {
  const { take, advance, headers } = limiter()
  const limits = { requests_per_minute: 6 }
  for (const hold of Array.from({ length: 6 }, () => take(1, limits))) hold?.end(1)
  expect(refusal(() => take(1, limits))).toEqual(['rate_limit_exceeded', 10_000])
  expect(headers(1, limits)).toEqual([
    'x-ratelimit-limit-requests',
    '6',
    'x-ratelimit-remaining-requests',
    '0',
    'x-ratelimit-reset-requests',
    '60s',
  ])
  expect(take(2, limits)).toBeDefined()
  advance(9999)
  expect(refusal(() => take(1, limits))).toEqual(['rate_limit_exceeded', 1])
  advance(1)
  expect(take(1, limits)).toBeDefined()
})

test('gateway#43 a clock that is set back lets a key have its requests again after their time', () => {
  const { take, advance } = limiter()
  const limits = { requests_per_minute: 6 }
  for (const hold of Array.from({ length: 6 }, () => take(1, limits))) hold?.end(1)
  advance(-3_600_000)
  expect(refusal(() => take(1, limits))).toEqual(['rate_limit_exceeded', 10_000])
  advance(10_000)
  expect(take(1, limits)).toBeDefined()
})

test('gateway#43 tokens count by estimate, then by what was used; one call larger than a minute waits for a full one', () => {
  const { take, advance, headers } = limiter()
  const limits = { tokens_per_minute: 1000 }
  const hold = take(1, limits, 600)
  expect(refusal(() => take(1, limits, 500))).toEqual(['rate_limit_exceeded', 6000])
  hold?.end(100)
  const second = take(1, limits, 900)
  expect(headers(1, limits).slice(0, 4)).toEqual([
    'x-ratelimit-limit-tokens',
    '1000',
    'x-ratelimit-remaining-tokens',
    '0',
  ])
  second?.end(1900)
  second?.end(1900)
  expect(refusal(() => take(1, limits, 1))).toEqual(['rate_limit_exceeded', 60_060])
  expect(refusal(() => take(1, limits, 1_000_000))).toEqual(['rate_limit_exceeded', 120_000])
  advance(120_000)
  expect(take(1, limits, 1_000_000)).toBeDefined()
})

test('gateway#42 a key runs so many calls at a time; an end frees one', () => {
  const { take, headers } = limiter()
  const limits = { max_concurrency: 2 }
  const first = take(1, limits)
  take(1, limits)
  expect(refusal(() => take(1, limits))[0]).toBe('concurrency_exceeded')
  first?.end(0)
  first?.end(0)
  expect(take(1, limits)).toBeDefined()
  expect(headers(1, limits)).toEqual([])
  expect(refusal(() => take(1, limits))[0]).toBe('concurrency_exceeded')
})

test('a key without limits, or a session, takes nothing; idle keys are forgotten', () => {
  const { take, advance, headers } = limiter()
  expect(take(1, {})).toBeUndefined()
  expect(headers(1, {})).toEqual([])
  for (let id = 0; id < 5000; id++) {
    take(id, { requests_per_minute: 60 })?.end(0)
    advance(100)
  }
  expect(headers(4999, { requests_per_minute: 60 })[3]).toBe('59')
  expect(headers(0, { requests_per_minute: 60 })[3]).toBe('60')
})

test('gateway#43 processes that share a limit keep the total', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 4, max: 60 }), (processes, limit) => {
      const shares = Array.from({ length: processes }, () => limiter(processes))
      let granted = 0
      for (let ms = 0; ms < 300_000; ms += 500) {
        for (const { take, advance } of shares) {
          try {
            take(1, { requests_per_minute: limit })?.end(0)
            granted++
          } catch {
            // full
          }
          advance(500)
        }
      }
      // A full bucket to begin with, then what five minutes give.
      expect(granted).toBeLessThanOrEqual(limit * 6 + processes)
    }),
    { numRuns: 20 },
  )
})

test('gateway#43 a credential out of requests or tokens is skipped; all out: 429 until the first has some', () => {
  const { select, clock } = routing({
    credentials: [
      credential(1, { limits: { requests_per_minute: 2 } }),
      credential(2, { priority: 1, limits: { tokens_per_minute: 30 } }),
    ],
  })
  expect([1, 2, 3].map(() => call(select('gpt-4o')))).toEqual([1, 1, 2])
  expect(call(select('gpt-4o'))).toBe(2)
  expect(call(select('gpt-4o'))).toBe(2)
  expect(refusal(() => call(select('gpt-4o')))).toEqual(['upstream_rate_limited', 20_000])
  clock.advance(20_000)
  expect(call(select('gpt-4o'))).toBe(2)
})

const open = new AbortController()
const busy = [credential(1, { limits: { max_concurrency: 1 } })]
const end = (selection: Selection, picked: Candidate | undefined, how: 'ok' | 'connect' | 'closed' = 'ok'): void => {
  if (picked) selection.settle(picked, { class: how }, 0)
}

test('gateway#42 a full credential is skipped while another is free', () => {
  const { select } = routing({ credentials: [...busy, credential(2, { priority: 1 })] })
  const selection = select('gpt-4o')
  const first = next(selection)
  expect([idOf(first), call(select('gpt-4o'))]).toEqual([1, 2])
  end(selection, first)
  end(selection, first)
  expect(call(select('gpt-4o'))).toBe(1)
})

test('gateway#42 all full: first come first served, freed by a good end, an error and an abort; the line has an end', async () => {
  const { select } = routing({ credentials: busy })
  const running = select('gpt-4o')
  const first = next(running)
  const [second, third, fourth] = [select('gpt-4o'), select('gpt-4o'), select('gpt-4o')]
  const order: number[] = []
  const waiting = [second, third].map(async (each, i) => {
    const picked = await each.next(10, open)
    order.push(i)
    return picked
  })
  expect(refusal(() => fourth.next(10, open))[0]).toBe('concurrency_exceeded')
  end(running, first, 'connect')
  end(second, await waiting[0], 'closed')
  expect(order).toEqual([0])
  expect(idOf(await waiting[1])).toBe(1)
  expect(order).toEqual([0, 1])
})

test('gateway#42 who leaves the line leaves at once, and nobody waits longer than queue_wait', async () => {
  const { select } = routing({ credentials: busy }, { queueWaitMs: 20 })
  const running = select('gpt-4o')
  const first = next(running)
  const client = new AbortController()
  const left = Promise.resolve(select('gpt-4o').next(10, client))
  client.abort(new Error('the client has gone'))
  await expect(left).rejects.toThrow('the client has gone')
  await expect(select('gpt-4o').next(10, open)).rejects.toMatchObject({ code: 'concurrency_exceeded', status: 429 })
  await expect(Promise.resolve(select('gpt-4o').next(10, { signal: AbortSignal.abort() }))).rejects.toThrow('aborted')
  end(running, first)
  expect(call(select('gpt-4o'))).toBe(1)
})

test('gateway#42 of several processes each has its part of the slots', () => {
  const { select } = routing(
    { credentials: [credential(1, { limits: { max_concurrency: 4 } })] },
    {
      processes: () => 2,
      queueLength: 0,
    },
  )
  expect([next(select('gpt-4o')), next(select('gpt-4o'))].map(idOf)).toEqual([1, 1])
  expect(refusal(() => next(select('gpt-4o')))[0]).toBe('concurrency_exceeded')
})
