import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { md5 } from '../../../src/base/hash.ts'
import { planCells, type CellPlan } from '../../../src/memory/chunker/cell-plan.ts'

const plan = (old: string[], texts: string[]): CellPlan =>
  planCells(
    old.map((text, seq) => ({ cellId: `cell_${seq}`, textMd5: md5(text), seq })),
    texts,
  )

describe('planCells', () => {
  test('keeps, adds and removes by text', () => {
    expect(plan(['a', 'b', 'c'], ['c', 'x', 'a'])).toEqual({
      kept: [
        { cellId: 'cell_2', from: 2, to: 0 },
        { cellId: 'cell_0', from: 0, to: 2 },
      ],
      added: [{ text: 'x', md5: md5('x'), seq: 1 }],
      removed: ['cell_1'],
    })
  })

  test('nearest seq first: an equal text put in front does not take the place of the old one', () => {
    expect(plan(['x', 'y', 'a'], ['a', 'x', 'y', 'a']).kept).toContainEqual({ cellId: 'cell_2', from: 2, to: 3 })
    expect(plan(['a', 'a', 'b'], ['a', 'b', 'a', 'a']).kept.filter(({ from }) => from < 2)).toEqual([
      { cellId: 'cell_0', from: 0, to: 0 },
      { cellId: 'cell_1', from: 1, to: 2 },
    ])
  })

  test('equal Cells are matched as by always taking the closest pair', () => {
    const places = fc.uniqueArray(fc.nat(40), { maxLength: 12 }).map((list) => list.toSorted((a, b) => a - b))
    fc.assert(
      fc.property(places, places, (left, right) => {
        const texts = Array.from({ length: 41 }, (_, seq) => (right.includes(seq) ? 'same' : `new ${seq}`))
        const { kept, removed } = planCells(
          left.map((seq) => ({ cellId: `cell_${seq}`, textMd5: md5('same'), seq })),
          texts,
        )
        expect(removed).toHaveLength(Math.max(0, left.length - right.length))
        expect(kept.map(({ from, to }) => Math.abs(from - to)).toSorted((a, b) => a - b)).toEqual(greedy(left, right))
      }),
      { seed: 5, numRuns: 1000 },
    )
  })

  test('100 000 equal Cells', () => {
    const { kept, added, removed } = plan(Array<string>(100_000).fill('same'), Array<string>(90_000).fill('same'))
    expect([kept.length, added.length, removed.length]).toEqual([90_000, 0, 10_000])
    expect(kept.every(({ from, to }) => from === to)).toBe(true)
  })
})

/** The distances that taking the closest pair again and again gives, ties from the left. */
function greedy(left: readonly number[], right: readonly number[]): number[] {
  const free = { left: [...left], right: [...right] }
  const distances: number[] = []
  while (free.left.length > 0 && free.right.length > 0) {
    const pairs = free.left.flatMap((a) => free.right.map((b) => ({ a, b, distance: Math.abs(a - b) })))
    const best = pairs.toSorted((x, y) => x.distance - y.distance || Math.min(x.a, x.b) - Math.min(y.a, y.b))[0]
    if (!best) break
    distances.push(best.distance)
    free.left = free.left.filter((a) => a !== best.a)
    free.right = free.right.filter((b) => b !== best.b)
  }
  return distances.toSorted((a, b) => a - b)
}
