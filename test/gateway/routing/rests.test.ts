import { expect, test } from 'vitest'
import type { GatewayError } from '../../../src/gateway/errors.ts'
import type { AttemptOutcome, Selection } from '../../../src/gateway/routing/candidate.ts'
import { Breaker } from '../../../src/gateway/routing/breaker.ts'
import { alias, call, credential, idOf, next, pick, routing, tries } from './support.ts'

const ok: AttemptOutcome = { class: 'ok' }
const lost: AttemptOutcome = { class: 'connect' }
const two = [credential(1), credential(2, { priority: 1 })]

/** What asking for the next one is refused with. */
function refusal(selection: Selection): Pick<GatewayError, 'code' | 'status' | 'retryAfterMs'> {
  try {
    next(selection)
  } catch (error) {
    const { code, status, retryAfterMs } = error as GatewayError
    return { code, status, retryAfterMs }
  }
  throw new Error('nothing was thrown')
}

test('gateway#39 the breaker opens at five calls and half of them failed, probes once, closes', () => {
  let now = 1_000_000
  const breaker = new Breaker()
  for (let i = 0; i < 2; i++) breaker.succeed(false, now)
  for (let i = 0; i < 2; i++) breaker.fail(false, now)
  expect(breaker.restsUntil(now)).toBe(0)
  breaker.fail(false, now)
  expect(breaker.restsUntil(now)).toBe(now + 5000)
  now += 5000
  expect(breaker.restsUntil(now)).toBe(0)
  expect(breaker.begin()).toBe(true)
  expect(breaker.restsUntil(now)).toBeGreaterThan(now) // one probe at a time
  breaker.fail(true, now)
  expect(breaker.restsUntil(now)).toBe(now + 10_000)
  now += 10_000
  breaker.begin()
  breaker.succeed(true, now)
  expect(breaker.restsUntil(now)).toBe(0)
  for (let i = 0; i < 4; i++) breaker.fail(false, now)
  expect(breaker.restsUntil(now)).toBe(now + 5000)
})

test('gateway#39 what failed more than 30 s ago does not count, nor does what was under way when it opened', () => {
  let now = 1_000_000
  const breaker = new Breaker()
  for (let i = 0; i < 4; i++) breaker.fail(false, now)
  now += 31_000
  breaker.fail(false, now)
  expect(breaker.restsUntil(now)).toBe(0)
  for (let i = 0; i < 60; i++) breaker.fail(false, now)
  expect(breaker.restsUntil(now)).toBe(now + 5000)
  breaker.succeed(false, now)
  expect(breaker.restsUntil(now)).toBe(now + 5000)
  now += 5000
  breaker.begin()
  breaker.forget(false)
  expect(breaker.restsUntil(now)).toBeGreaterThan(now) // the probe is still out
  breaker.forget(true)
  expect(breaker.restsUntil(now)).toBe(0)
})

test('gateway#33 a call that began before the credential was mended does not reject it again', () => {
  const { select, router, rejected, update } = routing({ credentials: two })
  const running = select('gpt-4o')
  const called = next(running)
  expect(idOf(called)).toBe(1)
  update({ credentials: [credential(1, { version: 2 }), credential(2, { priority: 1 })] })
  if (called) running.settle(called, { class: 'auth' }, 0)
  expect([rejected, router.healthOf(1).state]).toEqual([[], 'unknown'])
  expect(call(select('gpt-4o'))).toBe(1)
})

test('gateway#39 an open model of a credential is skipped, its others are not; a lone probe closes it', () => {
  const { select, clock, router } = routing({ credentials: two }, { retryBudget: 1 })
  for (let i = 0; i < 5; i++) expect(call(select('gpt-4o'), lost)).toBe(1)
  expect(call(select('gpt-4o'))).toBe(2)
  expect(call(select('gpt-4o-mini'))).toBe(1)
  expect(router.healthOf(1)).toMatchObject({ state: 'open', models: [{ model: 'gpt-4o', state: 'open' }] })
  clock.advance(5000)
  const probe = select('gpt-4o')
  const probed = next(probe)
  expect(idOf(probed)).toBe(1)
  expect(call(select('gpt-4o'))).toBe(2)
  if (probed) probe.settle(probed, ok, 0)
  expect(call(select('gpt-4o'))).toBe(1)
})

test('gateway#32 a rate answer rests its model of its credential that long; all resting: 429 with the shortest wait', () => {
  const { select, clock, router } = routing({ credentials: two })
  const first = select('gpt-4o')
  expect(tries(first, { class: 'rate', retryAfterMs: 20_000 })).toEqual(['1/gpt-4o', '2/gpt-4o'])
  expect(router.healthOf(1).state).toBe('cooling')
  clock.advance(12_000)
  expect(refusal(select('gpt-4o'))).toEqual({ code: 'upstream_rate_limited', status: 429, retryAfterMs: 8000 })
  expect(call(select('gpt-4.1'))).toBe(1)
  clock.advance(8000)
  expect(tries(select('gpt-4o'), { class: 'rate' })).toEqual(['1/gpt-4o', '2/gpt-4o'])
  expect(refusal(select('gpt-4o')).retryAfterMs).toBe(5000)
  clock.advance(5000)
  tries(select('gpt-4o'), { class: 'rate', retryAfterMs: 3_600_000 })
  expect(refusal(select('gpt-4o')).retryAfterMs).toBe(300_000)
})

test('gateway#33 a refused key rests 60 s, doubling to 15 min, and is told; a change or a good test ends it', () => {
  const { select, clock, router, rejected, update } = routing({ credentials: two })
  const refused: AttemptOutcome = { class: 'auth', status: 401, message: 'bad key' }
  const spans: number[] = []
  for (let i = 0; i < 6; i++) {
    const selection = select('gpt-4o', { pin: '1' })
    const picked = next(selection)
    if (picked) selection.settle(picked, refused, 0)
    const until = rejected.at(-1)?.until ?? 0
    spans.push((until - clock.now()) / 1000)
    expect(refusal(select('gpt-4.1', { pin: '1' }))).toMatchObject({ code: 'no_available_credential', status: 503 })
    expect(call(select('gpt-4o'))).toBe(2)
    clock.advance(until - clock.now())
    expect(router.healthOf(1).state).toBe('degraded')
  }
  expect(spans).toEqual([60, 120, 240, 480, 900, 900])
  expect(rejected[0]).toMatchObject({ id: 1, status: 401, message: 'bad key' })
  call(select('gpt-4o', { pin: '1' }), refused)
  expect(router.healthOf(1)).toMatchObject({ state: 'rejected' })
  router.recover(1)
  expect(router.healthOf(1).state).toBe('healthy')
  expect(call(select('gpt-4o'), refused)).toBe(1)
  update({ credentials: [credential(1, { version: 2 }), credential(2, { priority: 1 })] })
  expect(call(select('gpt-4o'))).toBe(1)
})

test('gateway#33 many calls refused at once are one rejection', () => {
  const { select, rejected } = routing({ credentials: two })
  const running = Array.from({ length: 20 }, () => select('gpt-4o')).map((selection) => ({
    selection,
    picked: next(selection),
  }))
  for (const { selection, picked } of running) if (picked) selection.settle(picked, { class: 'auth' }, 0)
  expect(rejected).toHaveLength(1)
})

test('gateway#33 what another process found rejected rests here too, until it says otherwise', () => {
  const { select, clock, update } = routing({ credentials: two })
  update({ credentials: [credential(1, { rejectedUntil: clock.now() + 60_000 }), ...two.slice(1)] })
  expect(call(select('gpt-4o'))).toBe(2)
  update({ credentials: two })
  expect(call(select('gpt-4o'))).toBe(1)
  call(select('gpt-4o'), { class: 'auth' })
  update({ credentials: two }) // a change of something else, before the others were told
  expect(call(select('gpt-4o'))).toBe(2)
})

test('gateway#22 a credential whose secret does not open rests, and the others do not mind', () => {
  const { select, router, update } = routing({ credentials: [credential(1, { isBroken: true }), ...two.slice(1)] })
  expect(call(select('gpt-4o'))).toBe(2)
  expect(router.healthOf(1).state).toBe('rejected')
  expect(refusal(select('gpt-4o', { pin: '1' }))).toMatchObject({ status: 503, retryAfterMs: 60_000 })
  update({ credentials: two })
  expect(call(select('gpt-4o'))).toBe(1)
})

test('all resting, and not by rate alone: 503 with the shortest wait', () => {
  const { select } = routing({ credentials: two })
  for (let i = 0; i < 5; i++) call(select('gpt-4o', { pin: '1' }), lost)
  call(select('gpt-4o', { pin: '2' }), { class: 'rate', retryAfterMs: 3000 })
  expect(refusal(select('gpt-4o'))).toEqual({ code: 'no_available_credential', status: 503, retryAfterMs: 3000 })
})

test('other classes rest nothing', () => {
  const { select, router } = routing({ credentials: two })
  for (const each of ['missing', 'context', 'filtered', 'client', 'deadline', 'closed'] as const) {
    for (let i = 0; i < 6; i++) expect(call(select('gpt-4o'), { class: each })).toBe(1)
  }
  expect(router.healthOf(1).models).toEqual([])
})

test('gateway#38 each candidate once a round, over fallback names; a further round for those that may be well again', () => {
  const { select, clock } = routing({
    credentials: two,
    aliases: [alias(1, 'a', { members: [{ credential_id: 1, model: 'm' }], fallback_models: ['gpt-4o'] })],
  })
  const selection = select('a')
  const ends: AttemptOutcome[] = [lost, { class: 'missing' }, { class: 'rate', retryAfterMs: 700 }]
  for (const end of ends) {
    const picked = next(selection)
    if (picked) selection.settle(picked, end, 0)
  }
  expect(next(selection)).toBeUndefined()
  expect(selection.waitMs()).toBeUndefined()
  expect(selection.again()).toBe(true)
  expect(selection.waitMs()).toBe(0)
  const again = next(selection)
  expect(again?.model).toBe('m')
  if (again) selection.settle(again, { class: 'missing' }, 0)
  expect(next(selection)).toBeUndefined()
  expect(selection.waitMs()).toBe(700)
  clock.advance(700)
  expect(idOf(next(selection))).toBe(2)
})

test('gateway#38 a failing upstream gets at most 1.2 times the requests, or ten more, over ten seconds', () => {
  const { select, clock } = routing({ credentials: [1, 2, 3].map((id) => credential(id)) })
  const attempts = (requests: number): number => {
    let made = 0
    for (let i = 0; i < requests; i++) made += tries(select('gpt-4o')).length
    return made
  }
  expect(attempts(5)).toBe(15)
  expect(attempts(5)).toBe(5)
  expect(attempts(1000)).toBeLessThanOrEqual(1200)
  clock.advance(10_000)
  expect(attempts(4)).toBe(12)
  clock.advance(10_000)
  let made = 0
  for (let second = 0; second < 60; second++, clock.advance(1000)) made += attempts(100)
  expect(made).toBeLessThanOrEqual(6000 * 1.2)
  expect(made).toBeGreaterThan(6000 * 1.15)
})

test('gateway#42 what is picked and not called gives back its slot and its share of rates, and is no attempt', () => {
  const limits = { requests_per_minute: 1, tokens_per_minute: 10, max_concurrency: 1 }
  const { select } = routing({ credentials: [credential(1, { limits }), credential(2, { priority: 1 })] })
  for (let i = 0; i < 15; i++) {
    const selection = select('gpt-4o')
    const picked = pick(selection)
    expect(idOf(picked)).toBe(1)
    if (picked) selection.skip(picked)
    expect(tries(selection)).toEqual(['2/gpt-4o'])
  }
  expect(call(select('gpt-4o'))).toBe(1)
})

test('gateway#32 where one cannot be called and the other rests, the client is told how long', () => {
  const { select } = routing({ credentials: two })
  tries(select('gpt-4o', { pin: '2' }), { class: 'rate', retryAfterMs: 20_000 })
  const selection = select('gpt-4o')
  const picked = pick(selection)
  if (picked) selection.skip(picked)
  expect(refusal(selection)).toEqual({ code: 'upstream_rate_limited', status: 429, retryAfterMs: 20_000 })
})
