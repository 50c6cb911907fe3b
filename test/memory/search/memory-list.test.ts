import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CellTable } from '../../../src/memory/search/cell-table.ts'
import { listed, listRanked, rankMemories } from '../../../src/memory/search/memory-list.ts'
import { memoryOf } from './cells.ts'

/** Ids of ours begin with a time, those of others do not; both kinds stand beside each other. */
const idOf = (i: number): string =>
  i % 3 === 0 ? `mem_x${(i * 37) % 100}` : `mem_01M8179Q${'KW'[i % 2]}${i % 7}${i}ABCDEF`

test('a list is the beginning of all Memories in order, also of equal scores', () => {
  const table = new CellTable()
  const cells = Array.from({ length: 60 }, (_, i) =>
    memoryOf(i, ['a text', 'another'], { memoryId: idOf(i) }).cells.map((cell) => table.add(cell)),
  ).flat()
  const given = fc.array(fc.nat(5), { minLength: cells.length, maxLength: cells.length })
  fc.assert(
    fc.property(given, fc.integer({ min: 1, max: 70 }), fc.boolean(), (points, depth, masked) => {
      const mask = masked ? Uint8Array.from(cells, (_, i) => (i % 5 === 0 ? 0 : 1)) : undefined
      const slots = Uint32Array.from(cells.flatMap(({ slot }) => ((points[slot] ?? 0) > 0 ? slot : [])))
      const ranked = rankMemories(table, { scores: Float32Array.from(points), slots, mask, depth, floor: 0 }).ranked()
      const best = new Map<
        string,
        { memory: (typeof cells)[number]['memory']; cell: (typeof cells)[number]; score: number }
      >()
      for (const cell of cells) {
        const score = points[cell.slot] ?? 0
        if (score === 0 || mask?.[cell.slot] === 0 || score <= (best.get(cell.memory.id)?.score ?? 0)) continue
        best.set(cell.memory.id, { memory: cell.memory, cell, score })
      }
      const expected = [...best.values()]
        .toSorted((a, b) => b.score - a.score || (a.memory.id < b.memory.id ? -1 : 1))
        .slice(0, depth)
      const list = {
        numbers: Uint32Array.from(expected, ({ memory }) => memory.number),
        slots: Uint32Array.from(expected, ({ cell }) => cell.slot),
        scores: Float32Array.from(expected, ({ score }) => score),
      }
      expect(listRanked(table, ranked)).toEqual(list)
      const passing = slots.filter((slot) => mask?.[slot] !== 0)
      const all = listed(
        table,
        passing,
        Float32Array.from(passing, (slot) => points[slot] ?? 0),
      )
      expect(all.numbers.slice(0, depth)).toEqual(list.numbers)
      expect(all.slots.slice(0, depth)).toEqual(list.slots)
      expect(all.scores.slice(0, depth)).toEqual(list.scores)
    }),
    { seed: 11 },
  )
})
