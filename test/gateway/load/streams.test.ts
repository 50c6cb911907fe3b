import { expect, test } from 'vitest'
import { numbersFrom } from '../../support/gateway-load/calls.ts'
import { makeCalls } from '../../support/gateway-load/client.ts'
import { heldMemory } from '../../support/held-memory.ts'
import { describeInPlaces } from '../../platform/support.ts'
import { startLoaded } from './support.ts'

const STREAMS = 500
const MOST_GROWTH = 4 * 1024 * 1024

describeInPlaces('many streams at once', (place) => {
  test('gateway#80 500 streams at once, wave after wave: memory stays flat', { timeout: 180_000 }, async () => {
    const { provider, target } = await startLoaded(place(), { connections: STREAMS })
    provider.pace = { words: 10, ms: 20 }
    const wave = async (number: number): Promise<number> => {
      const numbers = numbersFrom(number * 10_000, STREAMS, 'stream', 'counted stream', 'message stream')
      const seen = await makeCalls(target, numbers, STREAMS)
      expect(seen.filter(({ end, status, words }) => end !== 'whole' || status !== 200 || words !== 10)).toEqual([])
      return heldMemory()
    }
    // The first waves open connections and compile what runs.
    const before = [await wave(0), await wave(1)]
    const after = [await wave(2), await wave(3), await wave(4)]
    expect(Math.min(...after) - Math.max(...before)).toBeLessThan(MOST_GROWTH)
  })
})
