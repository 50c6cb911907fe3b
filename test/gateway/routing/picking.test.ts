import fc from 'fast-check'
import { expect, test } from 'vitest'
import { WeightedPick } from '../../../src/gateway/routing/pick.ts'
import { call, credential, idOf, next, routing, tries } from './support.ts'

interface Choice {
  id: number
  weight: number
}

const choices = (weights: readonly number[]): Choice[] => weights.map((weight, id) => ({ id, weight }))
const without = (...resting: number[]) => ({ admits: ({ id }: Choice) => !resting.includes(id) })

function counts(pick: WeightedPick<Choice>, times: number, ...resting: number[]): number[] {
  const found: number[] = pick.choices.map(() => 0)
  for (let i = 0; i < times; i++) {
    const id = pick.next(without(...resting))?.id ?? -1
    found[id] = (found[id] ?? 0) + 1
  }
  return found
}

const weightsOf = fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 5 })

test('gateway#24 counts of any run stay within two of their shares, wherever it begins', () => {
  fc.assert(
    fc.property(weightsOf, fc.nat(100), fc.nat(500), (weights, begin, runs) => {
      const total = weights.reduce((sum, weight) => sum + weight, 0)
      const pick = new WeightedPick(choices(weights))
      pick.skip(begin)
      const found = counts(pick, runs)
      for (const [i, weight] of weights.entries()) {
        expect(Math.abs((found[i] ?? 0) - (runs * weight) / total)).toBeLessThanOrEqual(2)
      }
    }),
    { numRuns: 300 },
  )
})

test('gateway#24 what rests leaves its share to the others in proportion', () => {
  expect(counts(new WeightedPick(choices([500, 300, 200])), 1000, 0)).toEqual([0, 600, 400])
  fc.assert(
    fc.property(weightsOf, fc.nat(4), (weights, resting) => {
      const total = weights.reduce((sum, weight, i) => sum + (i === resting ? 0 : weight), 0)
      fc.pre(total > 0)
      const found = counts(new WeightedPick(choices(weights)), 300, resting)
      for (const [i, weight] of weights.entries()) {
        const share = i === resting ? 0 : (300 * weight) / total
        expect(Math.abs((found[i] ?? 0) - share)).toBeLessThanOrEqual(2)
      }
    }),
  )
})

test('gateway#25 weight 0 comes last', () => {
  const pick = new WeightedPick(choices([0, 1, 0]))
  expect(pick.next(without())?.id).toBe(1)
  expect(pick.next(without(1))?.id).toBe(0)
  expect(pick.next(without(0, 1, 2))).toBeUndefined()
})

const three = [credential(1, { weight: 500 }), credential(2, { weight: 300 }), credential(3, { weight: 200 })]

test('gateway#24 weights hold over all requests; the same seed gives the same sequence, another one another', () => {
  const sequence = (seed: number): string => {
    const { select } = routing({ credentials: three }, { seed })
    return Array.from({ length: 100 }, () => call(select('gpt-4o'))).join('')
  }
  const first = sequence(7)
  expect(sequence(7)).toBe(first)
  const others = new Set([8, 9, 10, 11, 12].map(sequence))
  expect(others.size).toBeGreaterThan(1)
  expect([1, 2, 3].map((id) => first.split(`${id}`).length - 1)).toEqual([50, 30, 20])
})

test('gateway#24 callers of every sort share one sequence, and changes of the rest do not break it', () => {
  const { select, update } = routing({ credentials: three })
  const found: (number | undefined)[] = []
  for (let i = 0; i < 30; i++) {
    if (i === 15) update({ credentials: [...three, credential(4, { kind: 'groq' })] })
    found.push(call(select('gpt-4o', { userId: i })))
  }
  expect([1, 2, 3].map((id) => found.filter((each) => each === id).length)).toEqual([15, 9, 6])
})

test('gateway#24 a resting credential leaves its share in proportion', () => {
  const { select } = routing({ credentials: three })
  for (let i = 0; i < 5; i++) call(select('gpt-4o', { pin: '1' }), { class: 'transient' })
  const found = Array.from({ length: 50 }, () => call(select('gpt-4o')))
  expect([1, 2, 3].map((id) => found.filter((each) => each === id).length)).toEqual([0, 30, 20])
})

test('gateway#25 lower priorities go first, weight 0 follows the rest of its tier', () => {
  const { select } = routing({
    credentials: [
      credential(1, { priority: 2 }),
      credential(2, { weight: 0 }),
      credential(3, { priority: 1 }),
      credential(4),
    ],
  })
  for (let i = 0; i < 3; i++) expect(tries(select('gpt-4o'))).toEqual(['4/gpt-4o', '2/gpt-4o', '3/gpt-4o', '1/gpt-4o'])
})

test('gateway#25 a pick that has a fallback group is replaced by members of it alone', () => {
  const { select } = routing({
    credentials: [
      credential(1, { fallbackGroup: 'eu' }),
      credential(2, { priority: 1 }),
      credential(3, { priority: 2, fallbackGroup: 'eu' }),
      credential(4, { kind: 'groq', defaultModel: 'free' }),
      credential(5, { kind: 'groq', defaultModel: 'free', priority: 1, fallbackGroup: 'us' }),
      credential(6, { kind: 'groq', defaultModel: 'free', priority: 2 }),
    ],
  })
  expect(tries(select('gpt-4o'))).toEqual(['1/gpt-4o', '3/gpt-4o'])
  expect(tries(select('free'))).toEqual(['4/free', '5/free'])
})

test('gateway#28 without fallback the first pick answers or nobody, again and again if it must', () => {
  const { select } = routing({ credentials: three })
  const selection = select('gpt-4o', { fallback: false })
  const picked = next(selection)
  if (!picked) throw new Error('nobody')
  selection.settle(picked, { class: 'connect' }, 0)
  expect(next(selection)).toBeUndefined()
  expect(selection.again()).toBe(true)
  expect(idOf(next(selection))).toBe(idOf(picked))
})
