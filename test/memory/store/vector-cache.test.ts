import fc from 'fast-check'
import { expect, test } from 'vitest'
import { VectorCache } from '../../../src/memory/store/vector/vector-cache.ts'

const MAX_BYTES = 100_000

test('a cache gives back what was put, and forgets the oldest when it is full', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 6_000 }), { minLength: 1, maxLength: 200 })
  fc.assert(
    fc.property(sizes, (lengths) => {
      const cache = new VectorCache(MAX_BYTES)
      lengths.forEach((length, cellNo) => cache.put(cellNo, new Uint8Array(length).fill(cellNo)))
      const found = lengths.map((_, cellNo) => cache.get(cellNo))
      const oldest = found.findIndex((bytes) => bytes !== undefined)
      const kept = found.slice(oldest).map((bytes) => bytes && Buffer.from(bytes))
      expect(kept).toEqual(lengths.slice(oldest).map((length, i) => Buffer.alloc(length, oldest + i)))
      expect(found.every((bytes) => (bytes?.byteOffset ?? 0) % 4 === 0)).toBe(true)
      // It is full before it forgets, but for what does not fit at the end.
      const next = lengths[oldest - 1] ?? Infinity
      const size = kept.reduce((sum, bytes) => sum + (bytes?.length ?? 0) + 8, 0)
      expect(size + next).toBeGreaterThan(oldest === 0 ? 0 : MAX_BYTES - 2 * 6_004)
    }),
    { seed: 5 },
  )
})

test('a vector larger than the cache is not kept, and one that is there stays', () => {
  const cache = new VectorCache(1_000)
  cache.put(1, new Uint8Array(1_000))
  expect(cache.get(1)).toBeUndefined()
  cache.put(2, Uint8Array.of(7))
  cache.put(2, Uint8Array.of(8))
  expect(cache.get(2)).toEqual(Uint8Array.of(7))
})
