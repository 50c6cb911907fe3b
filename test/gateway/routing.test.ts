import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Breaker } from '../../src/gateway/routing/breaker.ts'
import { WeightedPick } from '../../src/gateway/routing/pick.ts'

const choices = (weights: readonly number[]) => weights.map((weight, i) => ({ id: `${i}`, weight }))

function counts(pick: WeightedPick<{ id: string; weight: number }>, times: number, resting = ''): number[] {
  const found: number[] = []
  for (let i = 0; i < times; i++) {
    const id = Number(pick.next((choice) => choice.id !== resting)?.id)
    found[id] = (found[id] ?? 0) + 1
  }
  return [...found].map((count) => count ?? 0)
}

test('gateway#24 counts of any run stay within two of their shares', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 5 }),
      fc.nat(500),
      (weights, runs) => {
        const total = weights.reduce((sum, weight) => sum + weight, 0)
        const found = counts(new WeightedPick(choices(weights)), runs)
        for (const [i, weight] of weights.entries()) {
          expect(Math.abs((found[i] ?? 0) - (runs * weight) / total)).toBeLessThanOrEqual(2)
        }
      },
    ),
  )
})

test('gateway#24 the same turn gives the same sequence; what rests leaves its share in proportion', () => {
  const sequence = (turn: number) => {
    const pick = new WeightedPick(choices([500, 300, 200]), turn)
    return Array.from({ length: 20 }, () => pick.next(() => true)?.id).join('')
  }
  expect(sequence(7)).toBe(sequence(7))
  expect(sequence(7)).not.toBe(sequence(8))
  expect(counts(new WeightedPick(choices([500, 300, 200])), 1000, '0')).toEqual([0, 600, 400])
})

test('gateway#25 weight 0 comes last', () => {
  const pick = new WeightedPick(choices([0, 1, 0]))
  expect(pick.next(() => true)?.id).toBe('1')
  expect(pick.next(({ id }) => id !== '1')?.id).toBe('0')
  expect(pick.next(() => false)).toBeUndefined()
})

test('gateway#39 the breaker opens at five calls and half of them failed, probes once, closes', () => {
  let now = 1_000_000
  const breaker = new Breaker({ now: () => now })
  for (let i = 0; i < 2; i++) breaker.succeed()
  for (let i = 0; i < 2; i++) breaker.fail()
  expect(breaker.openUntil).toBeUndefined()
  breaker.fail()
  expect(breaker.openUntil).toBe(now + 5000)
  now += 5000
  expect(breaker.openUntil).toBeUndefined()
  breaker.begin()
  expect(breaker.openUntil).toBeDefined() // one probe at a time
  breaker.fail()
  expect(breaker.openUntil).toBe(now + 10_000)
  now += 10_000
  breaker.begin()
  breaker.succeed()
  expect(breaker.openUntil).toBeUndefined()
  for (let i = 0; i < 4; i++) breaker.fail()
  expect(breaker.openUntil).toBe(now + 5000)
})

test('gateway#39 what failed more than 30 s ago does not count', () => {
  let now = 1_000_000
  const breaker = new Breaker({ now: () => now })
  for (let i = 0; i < 4; i++) breaker.fail()
  now += 31_000
  breaker.fail()
  expect(breaker.openUntil).toBeUndefined()
})
