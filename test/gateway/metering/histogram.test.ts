import fc from 'fast-check'
import { expect, test } from 'vitest'
import { addTime, encodeTimes, addEncoded, noTimes, percentile } from '../../../src/gateway/metering/histogram.ts'
import { percentileOf } from './support.ts'

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
