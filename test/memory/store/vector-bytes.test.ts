import { describe, expect, test } from 'vitest'
import { embedDocument } from '../../../src/memory/embedder/hash.ts'
import { fromBytes, productsWith, toBytes } from '../../../src/memory/store/vector/bytes.ts'
import { dot, randomSource } from '../search/random-vectors.ts'

/** So many values, of which some are zero. */
function vectorOf(length: number, zeros: number): Float32Array {
  const random = randomSource(length)
  return Float32Array.from({ length }, () => (random() < zeros ? 0 : random() - 0.5))
}

describe('bytes of vectors', () => {
  test.each([
    [1024, 0.8],
    [1024, 0.99],
    [1024, 1],
    [1024, 0],
    [384, 0.5],
    [384, 0.02],
    [32, 0.9],
    [31, 0.9],
    [4096, 0.7],
    [0, 1],
  ])('a vector of %d values, a share of %d zeros, comes back as it was', (length, zeros) => {
    const vector = vectorOf(length, zeros)
    expect(fromBytes(toBytes(vector))).toEqual(vector)
    const query = vectorOf(length, 0.5)
    expect(productsWith(query)(toBytes(vector))).toBe(dot(query, vector))
  })

  test('a short text of hash:default takes a third of the bytes, a vector without zeros no more than before', () => {
    expect(toBytes(embedDocument('The keeper bakes rye bread in the morning.')).length).toBeLessThan(4096 / 3)
    expect(toBytes(vectorOf(1024, 0)).length).toBe(4096)
  })

  test('bytes as they were written before packing are read', () => {
    const vector = vectorOf(1024, 0.8)
    expect(fromBytes(new Uint8Array(vector.buffer))).toEqual(vector)
    expect(productsWith(vector)(new Uint8Array(vector.buffer))).toBe(dot(vector, vector))
  })

  test('bytes that begin at any place are read', () => {
    for (const zeros of [0, 0.8]) {
      const vector = vectorOf(64, zeros)
      const bytes = toBytes(vector)
      const shifted = new Uint8Array(bytes.length + 1).subarray(1)
      shifted.set(bytes)
      expect(fromBytes(shifted)).toEqual(vector)
      expect(productsWith(vector)(shifted)).toBe(dot(vector, vector))
    }
  })

  test.each([
    ['three bytes', [1, 2, 3]],
    ['no whole number of values', [0, 0, 128, 63, 1]],
    ['more values than the map says', [0, 0, 128, 63, 0, 0, 0, 0, 32, 0]],
    ['fewer', [0, 0, 128, 63, 3, 0, 0, 0, 32, 0]],
    ['a length without room for its map', [0, 0, 128, 63, 1, 0, 0, 0, 64, 0]],
  ])('%s are of no vector', (_, bytes) => {
    expect(() => fromBytes(Uint8Array.from(bytes))).toThrow(RangeError)
    expect(() => productsWith(new Float32Array(32))(Uint8Array.from(bytes))).toThrow(RangeError)
  })
})
