import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { windowAt } from '../../../src/gateway/metering/windows.ts'
import { expectOk } from '../../platform/support.ts'
import { anthropic, clock, describeGateway, openAi } from './support.ts'

const messages = [{ role: 'user' as const, content: 'Hello there' }]
const FARTHEST_S = 2_147_483

describeGateway('refusals', (gateway) => {
  const withBudget = async (window: 'day' | 'month' | 'total') => {
    const key = await gateway().createKey({ name: `poor ${window}`, budget: { limit_usd: '0.000000001', window } })
    return { ...gateway(), key }
  }
  /** How often a key asked. */
  const askedBy = async (key: string): Promise<number> => {
    const { keys } = expectOk(await gateway().manage('GET', 'keys'))
    const { id } = keys.find(({ last4 }: { last4: string }) => key.endsWith(last4))
    return expectOk(await gateway().manage('GET', `usage?key_id=${id}`)).usage.length
  }

  test.each(['day', 'month', 'total'] as const)(
    'gateway#87 a budget of a %s used up tells when it begins anew, and no client repeats the call',
    async (window) => {
      const poor = await withBudget(window)
      const ask = { model: 'via-openai', messages, max_tokens: 100 }
      const calls = [
        [() => openAi(poor, { maxRetries: 2 }).chat.completions.create(ask), OpenAI.RateLimitError],
        [
          () => openAi(poor, { maxRetries: 2 }).chat.completions.create({ ...ask, stream: true }),
          OpenAI.RateLimitError,
        ],
        [() => anthropic(poor, { maxRetries: 2 }).messages.create(ask), Anthropic.RateLimitError],
      ] as const
      for (const [call, expected] of calls) {
        const leftS = Math.min(FARTHEST_S, (windowAt(window, clock.now()).endsAt - clock.now()) / 1000)
        const error: unknown = await call().catch((thrown: unknown) => thrown)
        if (!(error instanceof expected)) throw error
        const { headers } = error
        expect(headers.get('x-should-retry')).toBe('false')
        // The clock of the gateway runs on.
        expect(Math.abs(Number(headers.get('retry-after')) - leftS)).toBeLessThan(60)
        expect(Math.ceil(Number(headers.get('retry-after-ms')) / 1000)).toBe(Number(headers.get('retry-after')))
        expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(FARTHEST_S)
      }
      expect(gateway().received('openai')).toEqual([])
      await expect.poll(() => askedBy(poor.key)).toBe(3)
    },
  )
})
