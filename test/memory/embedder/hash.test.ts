import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { embedDocument, embedQuery, HASH_DIMENSION } from '../../../src/memory/embedder/hash.ts'
import { words } from '../../../src/memory/search/analysis.ts'

const dot = (a: Float32Array, b: Float32Array): number => a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0)
const likeness = (a: string, b: string): number => dot(embedDocument(a), embedDocument(b))

describe('memory#88 hash:default', () => {
  test('gives 1024 values of unit length, or zeros where there are no words', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const vector = embedDocument(text)
        expect(vector).toHaveLength(HASH_DIMENSION)
        const length = Math.sqrt(dot(vector, vector))
        expect(length).toBeCloseTo(words(text).length > 0 ? 1 : 0, 5)
      }),
    )
  })

  test('is frozen: these texts give these values on every platform', () => {
    const texts = ['The lighthouse keeper likes rye bread.', 'getUserById(42) // Café 東京タワー', '?!']
    const digest = createHash('sha256')
    for (const text of texts) digest.update(embedDocument(text).map((value) => Math.round(value * 1e6)))
    expect(digest.digest('hex')).toBe('ede77049138b90432070abcc573577bccf274c9e525af41407c4482ff83feae3')
  })

  test('places inflected, misspelt and joined words near', () => {
    expect(likeness('paint a sunrise', 'she painted sunrises')).toBeGreaterThan(0.6)
    expect(likeness('restaurant', 'restaraunt')).toBeGreaterThan(0.2)
    expect(likeness('getUserById', 'get user by id')).toBeGreaterThan(0.5)
    expect(Math.abs(likeness('paint a sunrise', 'tax returns'))).toBeLessThan(0.15)
  })

  test('the query side follows the weights of words', () => {
    const query = embedQuery('common rare', (stem) => (stem === 'rare' ? 5 : 0.1))
    expect(dot(query, embedDocument('rare'))).toBeGreaterThan(0.8)
    expect(dot(query, embedDocument('common'))).toBeLessThan(0.3)
  })
})
