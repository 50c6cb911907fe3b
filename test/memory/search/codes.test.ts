import { readFile } from 'node:fs/promises'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import wabt from 'wabt'
import { VectorCodes } from '../../../src/memory/search/codes.ts'
import { ColumnCodes } from '../../../src/memory/search/column-codes.ts'
import { KERNEL } from '../../../src/memory/search/kernel.ts'
import { TopK } from '../../../src/memory/search/top-k.ts'
import { dot, normalize, randomSource, vectorSource } from './random-vectors.ts'

test('the kernel is what its source makes', async () => {
  const { parseWat } = await wabt()
  const source = await readFile(new URL('../../../src/memory/search/kernel.wat', import.meta.url))
  const { buffer } = parseWat('kernel.wat', source, { simd: true }).toBinary({})
  expect(KERNEL.equals(buffer), 'run node scripts/build-kernel.mjs').toBe(true)
})

/** Exact cosines of unit vectors, best first. */
function exactTop(query: Float32Array, vectors: ReadonlyMap<number, Float32Array>, k: number): number[] {
  return [...vectors]
    .map(([slot, vector]) => ({ slot, score: dot(query, vector) }))
    .sort((a, b) => b.score - a.score || a.slot - b.slot)
    .slice(0, k)
    .map(({ slot }) => slot)
}

describe.each([
  { layout: 'rows', CodesOf: VectorCodes },
  { layout: 'columns', CodesOf: ColumnCodes },
])('codes in $layout', ({ CodesOf }) => {
  test.each([
    { kind: 'clustered' as const, dimension: 384, count: 5_000 },
    { kind: 'uniform' as const, dimension: 384, count: 5_000 },
    { kind: 'clustered' as const, dimension: 1_024, count: 3_000 },
    { kind: 'uniform' as const, dimension: 1_024, count: 3_000 },
  ])('re-scored candidates find the exact ten: $kind, $dimension values', ({ kind, dimension, count }) => {
    const vectorOf = vectorSource(dimension, kind)
    const vectors = new Map(Array.from({ length: count }, (_, slot) => [slot, vectorOf(slot)]))
    const codes = new CodesOf(dimension)
    for (const [slot, vector] of vectors) codes.put(slot, vector)
    let found = 0
    for (let i = 0; i < 50; i++) {
      const query = vectorOf(count + i)
      const candidates = new Map([...codes.top(query, 40).slots].map((slot) => [slot, vectorOf(slot)]))
      const exact = new Set(exactTop(query, vectors, 10))
      found += exactTop(query, candidates, 10).filter((slot) => exact.has(slot)).length
    }
    expect(found / 500).toBeGreaterThanOrEqual(0.99)
  })

  test.each([1, 2, 12, 13, 16, 100, 1_023, 4_096])('scores are cosines at %i values', (dimension) => {
    const vectorOf = vectorSource(dimension, 'uniform')
    const codes = new CodesOf(dimension)
    for (let slot = 0; slot < 50; slot++)
      codes.put(
        slot,
        vectorOf(slot).map((value) => 7 * value),
      )
    const query = vectorOf(99)
    const { slots, scores } = codes.top(
      query.map((value) => value / 9),
      50,
    )
    expect(slots.length).toBe(50)
    slots.forEach((slot, i) => expect(scores[i]).toBeCloseTo(dot(query, vectorOf(slot)), 1.7))
    expect([...scores]).toEqual([...scores].sort((a, b) => b - a))
  })

  test('the largest codes and queries do not overflow', () => {
    const codes = new CodesOf(4_096)
    codes.put(0, new Float32Array(4_096).fill(1))
    codes.put(1, new Float32Array(4_096).fill(-1))
    const { slots, scores } = codes.top(new Float32Array(4_096).fill(-3), 2)
    expect([...slots]).toEqual([1, 0])
    expect(scores[0]).toBeCloseTo(1, 5)
    expect(scores[1]).toBeCloseTo(-1, 5)
  })

  test('puts, clears and masks in any order leave what a plain map would hold', () => {
    const step = fc.record({
      slot: fc.integer({ min: 0, max: 400 }),
      value: fc.constantFrom('vector', 'zero', 'cleared'),
      seed: fc.nat(),
    })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 70 }),
        fc.array(step, { maxLength: 60 }),
        fc.integer({ min: 1, max: 80 }),
        fc.nat(),
        (dimension, steps, k, seed) => {
          const vectorOf = vectorSource(dimension, 'uniform', seed)
          const codes = new CodesOf(dimension)
          const held = new Map<number, Float32Array>()
          for (const { slot, value, seed: number } of steps) {
            if (value === 'vector') held.set(slot, vectorOf(number))
            else held.delete(slot)
            if (value === 'cleared') codes.clear(slot)
            else codes.put(slot, held.get(slot) ?? new Float32Array(dimension))
          }
          const random = randomSource(seed)
          const mask = new Uint8Array(401).map(() => (random() < 0.5 ? 1 : 0))
          const query = vectorOf(-7)
          const every = Uint32Array.from({ length: 500 }, (_, slot) => slot)
          const scores = codes.scoreAt(every, query)
          for (const slot of every) {
            expect(codes.has(slot)).toBe(held.has(slot))
            expect(scores[slot]).toBeCloseTo(held.has(slot) ? dot(query, held.get(slot) ?? query) : -Infinity, 1)
          }
          for (const allowed of [undefined, mask]) {
            const expected = [...held.keys()]
              .filter((slot) => !allowed || allowed[slot] === 1)
              .sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b)
              .slice(0, k)
            const top = codes.top(query, k, allowed)
            expect([...top.slots]).toEqual(expected)
            expect([...top.scores]).toEqual(expected.map((slot) => scores[slot]))
          }
        },
      ),
    )
  })

  test('equal vectors are ordered by slot', () => {
    const codes = new CodesOf(3)
    for (const slot of [9, 4, 7, 1]) codes.put(slot, Float32Array.of(1, 2, 3))
    expect([...codes.top(Float32Array.of(1, 0, 0), 3).slots]).toEqual([1, 4, 7])
  })

  test('zero vectors and zero queries give no hits', () => {
    const codes = new CodesOf(3)
    expect(codes.top(Float32Array.of(1, 0, 0), 5).slots.length).toBe(0)
    codes.put(0, Float32Array.of(1, 0, 0))
    codes.put(1, Float32Array.of(0, 0, 0))
    codes.put(2, Float32Array.of(Number.NaN, 1, 0))
    codes.put(3, Float32Array.of(-1, 0, 0))
    expect([...codes.top(Float32Array.of(1, 0, 0), 5).slots]).toEqual([0, 3])
    expect(codes.top(new Float32Array(3), 5).slots.length).toBe(0)
    expect([...codes.scoreAt(Uint32Array.of(0), new Float32Array(3))]).toEqual([-Infinity])
  })

  test('other dimensions and more than 4 GiB are refused', () => {
    for (const dimension of [0, 4_097, 1.5]) expect(() => new CodesOf(dimension)).toThrow(RangeError)
    const codes = new CodesOf(1_024)
    expect(() => codes.put(0, new Float32Array(1_023))).toThrow('1023 values among vectors of 1024')
    expect(() => codes.put(4_200_000, normalize(new Float32Array(1_024).fill(1)))).toThrow('4 GiB')
    codes.put(0, new Float32Array(1_024).fill(1))
    expect(() => codes.top(new Float32Array(3), 1)).toThrow(RangeError)
  })
})

test('an empty index holds no memory, a small one one page, and growth keeps what is there', () => {
  const codes = new VectorCodes(1_024)
  const vectorOf = vectorSource(1_024, 'uniform')
  expect(codes.byteLength).toBe(0)
  codes.put(0, vectorOf(0))
  expect(codes.byteLength).toBe(65_536)
  for (let slot = 1; slot < 3_000; slot++) codes.put(slot, vectorOf(slot % 100))
  expect(codes.byteLength).toBeLessThan(1.3 * 3_000 * 1_040)
  expect([...codes.top(vectorOf(42), 30).slots]).toEqual(Array.from({ length: 30 }, (_, i) => 42 + 100 * i))
})

test('codes in columns stay what they are when there are enough for wide blocks', () => {
  const vectorOf = vectorSource(40, 'uniform')
  const scoresOf = (slots: number, cleared: readonly number[]): number[] => {
    const codes = new ColumnCodes(40)
    for (let slot = 0; slot < slots; slot++) codes.put(slot, vectorOf(slot))
    for (const slot of cleared) codes.clear(slot)
    const all = Uint32Array.from({ length: 2_048 }, (_, slot) => slot)
    expect([...codes.top(vectorOf(7), 1).slots]).toEqual([7])
    return [...codes.scoreAt(all, vectorOf(-1))]
  }
  const cleared = [0, 127, 128, 2_047]
  const before = scoresOf(2_048, cleared)
  expect(scoresOf(2_049, cleared)).toEqual(before)
  expect(scoresOf(5_000, cleared)).toEqual(before)
  expect(before.flatMap((score, slot) => (score === -Infinity ? slot : []))).toEqual(cleared)
})

test('TopK keeps what a sort would, first come first among equals', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -5, max: 5 })), fc.integer({ min: 1, max: 20 }), (scores, k) => {
      const best = new TopK(k)
      scores.forEach((score, slot) => score > best.floor && best.push(slot, score))
      const expected = [...scores.keys()].sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0) || a - b).slice(0, k)
      expect([...best.ranked().slots]).toEqual(expected)
    }),
  )
})
