import fc from 'fast-check'
import { expect, test } from 'vitest'
import { documentTerms } from '../../../src/memory/search/analysis.ts'
import { LexicalIndex } from '../../../src/memory/search/lexical.ts'

const K1 = 1.8
const LENGTH_OFFSET = 30

/** BM25 as in the books, over all texts anew. */
function bm25(texts: ReadonlyMap<number, string>, terms: readonly string[]): Map<number, number> {
  const documents = new Map([...texts].map(([slot, text]) => [slot, documentTerms(text)]))
  const average = [...documents.values()].reduce((sum, { length }) => sum + length, 0) / Math.max(1, documents.size)
  const b = average / (average + LENGTH_OFFSET)
  const scores = new Map<number, number>()
  for (const [slot, document] of documents) {
    let score = 0
    for (const term of terms) {
      const n = [...documents.values()].filter((each) => each.includes(term)).length
      const count = document.filter((each) => each === term).length
      const idf = Math.log(1 + (documents.size - n + 0.5) / (n + 0.5))
      const norm = K1 * (1 - b + (b * document.length) / average)
      if (count > 0) score += (idf * count * (K1 + 1)) / (count + norm)
    }
    if (score > 0) scores.set(slot, score)
  }
  return scores
}

const word = fc.constantFrom('ant', 'bat', 'cow', 'dog', 'elk', 'fox')
const text = fc.array(word, { maxLength: 12 }).map((all) => all.join(' '))

test('scores are BM25 after any additions and removals, slots used again', () => {
  const step = fc.record({ slot: fc.nat(9), text })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.uniqueArray(word, { minLength: 1 }), (steps, terms) => {
      const index = new LexicalIndex()
      const texts = new Map<number, string>()
      for (const { slot, text: added } of steps) {
        if (texts.delete(slot)) index.remove(slot)
        else {
          texts.set(slot, added)
          index.add(slot, added)
        }
      }
      const query = index.query(terms)
      const arrays = index.takeScores()
      index.addScores(query, arrays, 0)
      const expected = bm25(texts, terms)
      expect(index.size).toBe(texts.size)
      arrays.scores.forEach((score, slot) => expect(score).toBeCloseTo(expected.get(slot) ?? 0, 4))
      const slots = Uint32Array.from(texts.keys())
      const shares = index.shares(query, slots)
      slots.forEach((slot, row) => {
        const sum = shares.subarray(row * query.length, (row + 1) * query.length).reduce((a, b) => a + b, 0)
        expect(sum).toBeCloseTo(expected.get(slot) ?? 0, 4)
      })
    }),
  )
})

test('a word said more than 255 times counts as 255 times', () => {
  const index = new LexicalIndex()
  index.add(0, 'bat '.repeat(1_000))
  index.add(1, 'cow')
  const arrays = index.takeScores()
  index.addScores(index.query(['bat']), arrays, 0)
  const [score = 0] = arrays.scores
  expect(score).toBeGreaterThan(0)
  index.remove(0)
  expect(index.query(['bat'])).toEqual([])
})

test('the most telling terms of a query come first, repetitions count', () => {
  const index = new LexicalIndex()
  ;['ant bat', 'ant cow', 'ant'].forEach((added, slot) => index.add(slot, added))
  const [first, second] = index.query(['ant', 'bat', 'elk'])
  expect(first?.most).toBeGreaterThan(second?.most ?? Infinity)
  expect(index.query(['bat', 'bat'])[0]?.most).toBeCloseTo(2 * (index.query(['bat'])[0]?.most ?? 0))
})

test('Cells are alike by the rare words that they share', () => {
  const index = new LexicalIndex()
  ;['ant bat', 'ant bat', 'ant cow', 'ant dog', 'elk'].forEach((added, slot) => index.add(slot, added))
  const [same = 0, common = 0, other = 1] = index.similarities(0, [1, 2, 4])
  expect(same).toBeCloseTo(1)
  expect(common).toBeGreaterThan(0)
  expect(common).toBeLessThan(0.1)
  expect(other).toBe(0)
})
