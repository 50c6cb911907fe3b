import fc from 'fast-check'
import { expect, test } from 'vitest'
import { diffLines } from '../../src/console/diff.ts'

test('changed lines with three around them, numbered on both sides', () => {
  const before = Array.from({ length: 20 }, (_, i) => `line ${i + 1}`)
  const after = before.with(9, 'changed')
  const { hunks, added, deleted } = diffLines(before.join('\n'), after.join('\n'))
  expect([added, deleted, hunks.length]).toEqual([1, 1, 1])
  expect(hunks[0]?.map(({ kind, text }) => `${kind} ${text}`)).toEqual([
    'same line 7',
    'same line 8',
    'same line 9',
    'delete line 10',
    'add changed',
    'same line 11',
    'same line 12',
    'same line 13',
  ])
  expect(hunks[0]?.[4]).toEqual({ kind: 'add', text: 'changed', after: 10 })
  expect(hunks[0]?.[5]).toMatchObject({ before: 11, after: 11 })
})

test('what cannot be shown is said, in bounded time', () => {
  expect(diffLines('x', 'x').omitted).toBe('Nothing changes.')
  const long = Array.from({ length: 30_000 }, (_, i) => `${i % 7}`).join('\n')
  const other = Array.from({ length: 30_000 }, (_, i) => `${i % 11}`).join('\n')
  expect(diffLines(long, other)).toMatchObject({ hunks: [], omitted: expect.any(String) })
  expect(diffLines('', 'word '.repeat(50_000))).toMatchObject({
    hunks: [],
    omitted: 'The changes are too large to show.',
  })
})

test('shown lines of a side are lines of that text', () => {
  const text = fc.array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 12 }).map((lines) => lines.join('\n'))
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diffLines(before, after).hunks.flat()
      const isAt = (side: string, number: number | undefined, line: string): boolean =>
        number === undefined || side.split('\n')[number - 1] === line
      expect(lines.filter((line) => !isAt(before, line.before, line.text))).toEqual([])
      expect(lines.filter((line) => !isAt(after, line.after, line.text))).toEqual([])
    }),
  )
})
