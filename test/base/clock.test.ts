import { describe, expect, it } from 'vitest'
import { toTimestamp } from '../../src/base/clock.ts'

describe('timestamps', () => {
  it('are those of Date, in any order of times', () => {
    const times = [0, 1, 999, 1000, 1001, 59_999, -1, -1000, -1001, 1_795_345_497_123, 1_795_345_497_009.9, 8.64e15]
    for (const ms of [...times, ...times.toReversed()]) expect(toTimestamp(ms)).toBe(new Date(ms).toISOString())
  })

  it('there are none of what is no time', () => {
    expect(() => toTimestamp(Number.NaN)).toThrow(RangeError)
    expect(() => toTimestamp(8.64e15 + 1000)).toThrow(RangeError)
  })
})
