import { EventEmitter, once } from 'node:events'
import { expect, test } from 'vitest'
import { GatewayError } from '../../../src/gateway/errors.ts'
import type { Reservation } from '../../../src/gateway/metering/metering.ts'
import { pair } from './pair.ts'
import { CHAT, json, refusal } from './support.ts'

test('gateway#89 a candidate that no money is left for is passed over', async () => {
  const asked: (bigint | undefined)[] = []
  const released: string[] = []
  const budgets = {
    reserve: (_caller: unknown, amount: bigint | undefined) => {
      asked.push(amount)
      if (asked.length === 2) throw new GatewayError('budget_exceeded', 'the budget is used up')
      return { settle: () => void released.push('settle'), release: () => void released.push('release') }
    },
  }
  const budget = { limit_usd: '1', window: 'day', unknown_price: 'allow' } as const
  const { call, upstreams } = await pair(refusal(404), json(), { parts: { budgets }, key: { budget } })
  expect(await call('chat/completions', CHAT)).toMatchObject({ status: 404, headers: { 'x-mem-attempts': '1' } })
  expect(upstreams[1].seen).toEqual([])
  expect(released).toEqual(['release'])
  const first = await pair(json(), json(), {
    parts: {
      budgets: {
        reserve: () => {
          throw new GatewayError('budget_exceeded', 'the budget is used up')
        },
      },
    },
    key: { budget },
  })
  expect(await first.call('chat/completions', CHAT)).toMatchObject({
    status: 429,
    headers: { 'x-should-retry': 'false' },
    body: { error: { code: 'budget_exceeded', type: 'insufficient_quota' } },
  })
  expect(await first.record()).toMatchObject({ outcome: 'rejected', attempts: [] })
})

test('gateway#88 money is set aside for every answer that is asked for', async () => {
  const asked: (bigint | undefined)[] = []
  const budgets = {
    reserve: (_caller: unknown, amount: bigint | undefined) => {
      asked.push(amount)
      return { settle: () => undefined, release: () => undefined }
    },
  }
  const budget = { limit_usd: '1', window: 'day', unknown_price: 'deny' } as const
  const prices = [{ provider: 'openai-compatible', model: 'm', usd_per_million: { input: '0', output: '1' } }]
  const { call } = await pair(json(), json(), { parts: { budgets }, key: { budget }, prices })
  await call('chat/completions', { ...CHAT, max_tokens: 10 })
  await call('chat/completions', { ...CHAT, max_tokens: 10, n: 4 })
  expect(asked).toEqual([10_000n, 40_000n])
})

test('gateway#41 a client that goes while money is set aside ends that wait, and money that comes later is given back', async () => {
  const ends: string[] = []
  const budget = new EventEmitter()
  let give: (reservation: Reservation) => void = () => undefined
  const reserve = () => {
    setImmediate(() => budget.emit('asked'))
    return new Promise<Reservation>((resolve) => (give = resolve))
  }
  const { open, record, upstreams } = await pair(json(), json(), {
    parts: { budgets: { reserve } },
    key: { budget: { limit_usd: '1', window: 'day', unknown_price: 'allow' } },
  })
  const controller = new AbortController()
  open('chat/completions', CHAT, { signal: controller.signal }).catch(() => undefined)
  await once(budget, 'asked')
  controller.abort()
  expect(await record()).toMatchObject({ outcome: 'client_closed', attempts: [] })
  give({ settle: () => void ends.push('settle'), release: () => void ends.push('release') })
  await expect.poll(() => ends).toEqual(['release'])
  expect(upstreams[0].seen).toEqual([])
})

test('gateway#38 candidates that are passed over for want of money are no attempts: they use up no retries', async () => {
  let asked = 0
  const budgets = {
    reserve: () => {
      if (asked++ % 2 === 0) throw new GatewayError('price_unknown', 'its price is not known')
      return { settle: () => undefined, release: () => undefined }
    },
  }
  const budget = { limit_usd: '1', window: 'day', unknown_price: 'deny' } as const
  const { call, upstreams } = await pair(json(), json(), { parts: { budgets }, key: { budget } })
  for (let i = 0; i < 15; i++) expect(await call('chat/completions', CHAT)).toMatchObject({ status: 200 })
  expect(upstreams.map(({ seen }) => seen.length)).toEqual([0, 15])
})
