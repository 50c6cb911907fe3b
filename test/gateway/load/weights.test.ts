import { expect, test } from 'vitest'
import { numbersFrom } from '../../support/gateway-load/calls.ts'
import { makeCalls } from '../../support/gateway-load/client.ts'
import { describeInPlaces } from '../../platform/support.ts'
import { startLoaded } from './support.ts'

/** Longer than a breaker stays open at first. */
const REST_MS = 6000

describeInPlaces('shares of a load', (place) => {
  test('gateway#24 shares hold to one in a hundred; one goes down and returns', { timeout: 180_000 }, async () => {
    const { api, provider, target } = await startLoaded(place())
    let first = 0
    /** Of a hundred answered calls, how many each credential has answered. */
    const shares = async (count: number): Promise<Record<string, number>> => {
      const before = new Map(provider.answered)
      const seen = await makeCalls(target, numbersFrom(first, count, 'json'), 32)
      first = Math.max(...seen.map(({ number }) => number)) + 1
      // A share as large as b's may be more than what may be tried again, until its breaker opens.
      const refused = seen.filter(({ status }) => status !== 200)
      expect(refused.filter(() => provider.down === undefined)).toEqual([])
      const names = ['a', 'b', 'c'].map((name): [string, number] => {
        const answered = (provider.answered.get(name) ?? 0) - (before.get(name) ?? 0)
        return [name, (100 * answered) / (count - refused.length)]
      })
      return Object.fromEntries(names)
    }
    const near = (share: number) => expect.toSatisfy((each: number) => Math.abs(each - share) <= 1)

    expect(await shares(1000)).toEqual({ a: near(50), b: near(30), c: near(20) })
    provider.down = 'b'
    expect(await shares(1000)).toEqual({ a: near((100 * 5) / 7), b: 0, c: near((100 * 2) / 7) })
    provider.down = undefined
    api.advance(REST_MS)
    await shares(10)
    expect(await shares(1000)).toEqual({ a: near(50), b: near(30), c: near(20) })
  })
})
