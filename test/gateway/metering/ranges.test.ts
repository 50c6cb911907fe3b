import fc from 'fast-check'
import { expect, test } from 'vitest'
import { piecesOf } from '../../../src/gateway/metering/ranges.ts'
import { DAY, HOUR, MINUTE } from '../../../src/gateway/store/aggregates.ts'

test('pieces cover a range without gap or overlap, none coarser than asked', () => {
  const time = fc.tuple(fc.nat({ max: 40_000 }), fc.constantFrom(0, 0, 1, 59_999)).map(([a, b]) => a * MINUTE + b)
  const range = fc.tuple(time, time).filter(([a, b]) => a !== b)
  fc.assert(
    fc.property(range, fc.constantFrom(MINUTE, HOUR, DAY), ([a, b], span) => {
      const [from, to] = [Math.min(a, b), Math.max(a, b)]
      let at = from
      for (const piece of piecesOf(from, to, span)) {
        expect(piece.from).toBe(at)
        expect(piece.span).toBeLessThanOrEqual(span)
        expect([piece.from % piece.span, piece.to % piece.span]).toEqual([0, 0])
        at = piece.to
      }
      expect(at).toBe(to)
      expect(piecesOf(from, to, span).length).toBeLessThanOrEqual(7)
    }),
    { seed: 93 },
  )
})
