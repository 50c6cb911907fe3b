import fc from 'fast-check'
import { expect, test } from 'vitest'
import { WordTable } from '../../../src/memory/search/word-table.ts'

/** Numbers words in the order it meets them, and says which it was asked for. */
function numbering() {
  const numbers = new Map<string, number>()
  const asked: string[] = []
  const numberOf = (word: string): number => {
    asked.push(word)
    const number = numbers.get(word) ?? numbers.size
    numbers.set(word, number)
    return number
  }
  return { numbers, asked, numberOf }
}

function read(table: WordTable, text: string, numberOf: (word: string) => number): number[] {
  const taken: number[] = []
  table.read(text, numberOf, (number) => taken.push(number))
  return taken
}

const ascii = fc.string({ unit: fc.constantFrom(...Array.from('abcABCxyz019 .,-_@[`{\n')), maxLength: 60 })

test('gives the words of texts, whatever it has read before', () => {
  fc.assert(
    fc.property(fc.array(ascii, { maxLength: 30 }), (texts) => {
      const table = new WordTable()
      const { numbers, asked, numberOf } = numbering()
      for (const text of texts) {
        const words: string[] = text.toLowerCase().match(/[a-z0-9]+/g) ?? []
        expect(read(table, text, numberOf)).toEqual(words.map((word) => numbers.get(word)))
      }
      expect(asked.length).toBe(numbers.size)
    }),
  )
})

test('forgets all when it is full or told to, and goes on', () => {
  const table = new WordTable()
  const { asked, numberOf } = numbering()
  const many = Array.from({ length: 200_000 }, (_, i) => `w${i}`).join(' ')
  expect(read(table, many, numberOf)).toEqual(Array.from({ length: 200_000 }, (_, i) => i))
  expect(read(table, 'w199999 W5', numberOf)).toEqual([199_999, 5])
  table.clear()
  asked.length = 0
  read(table, `w5 ${'x'.repeat(300)} w5 ${'x'.repeat(300)}`, numberOf)
  expect(asked.map((word) => word.length)).toEqual([2, 300, 300])
})
