import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CellTable } from '../../../src/memory/search/cell-table.ts'
import { byScore, firstByScore } from '../../../src/memory/search/memory-list.ts'
import { memoryOf } from './cells.ts'

describe('firstByScore', () => {
  const table = new CellTable()
  const memories = Array.from({ length: 60 }, (_, i) => {
    const [cell] = memoryOf(i, ['a text']).cells
    if (!cell) throw new Error('a Memory has a Cell')
    return table.add(cell).memory
  })

  test('is the beginning of all in order, also of equal scores', () => {
    const scores = fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 0, maxLength: memories.length })
    fc.assert(
      fc.property(scores, fc.integer({ min: 1, max: 70 }), (given, count) => {
        const items = given.flatMap((score, i) => {
          const memory = memories[(i * 37) % memories.length]
          return memory ? [{ memory, score }] : []
        })
        expect(firstByScore(items, count)).toEqual(items.toSorted(byScore).slice(0, count))
      }),
    )
  })
})
