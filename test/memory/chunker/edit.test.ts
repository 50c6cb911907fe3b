import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { md5 } from '../../../src/base/hash.ts'
import { planCells, type CellPlan } from '../../../src/memory/chunker/cell-plan.ts'
import { rechunk } from '../../../src/memory/chunker/edit.ts'
import { type ChunkerName, parseChunkerConfig, split } from '../../../src/memory/chunker/index.ts'
import { markdownParts } from '../../../src/memory/chunker/markdown.ts'
import { codePointBorder, edited, ink } from './support.ts'

const SMALL = parseChunkerConfig('default', { target_tokens: '16' })
const USUAL = parseChunkerConfig('default')

/** The plan of an edit of a freshly chunked content. */
function plan(before: string, after: string, config = USUAL, name: ChunkerName = 'default'): CellPlan {
  const cells = split(name, config, before).map((text) => ({ text }))
  return planOf(cells, rechunk(name, config, cells, before, after))
}

const planOf = (cells: readonly { text: string }[], texts: string[]): CellPlan =>
  planCells(
    cells.map(({ text }, seq) => ({ cellId: `cell_${seq}`, textMd5: md5(text), seq })),
    texts,
  )

const counts = ({ kept, added, removed }: CellPlan): number[] => [kept.length, added.length, removed.length]

const paragraph = (i: number, bytes = 1500): string =>
  `Paragraph ${i}. ${'Some words of it. '.repeat(200)}`.slice(0, bytes)

/** 25 contents of 25 Cells each, by the way they are delimited. */
const CONTENTS: [string, string[], string][] = [
  ['a paragraph a Cell', Array.from({ length: 25 }, (_, i) => paragraph(i)), '\n\n'],
  [
    'two paragraphs a Cell',
    Array.from({ length: 25 }, (_, i) => `${paragraph(i, 900)}\n\n${paragraph(i, 700)}`),
    '\n\n\n',
  ],
  ['CRLF', Array.from({ length: 25 }, (_, i) => paragraph(i)), '\r\n\r\n'],
]
const ONE_PARAGRAPH = Array.from({ length: 25 }, (_, i) => `${'word '.repeat(404)}no ${i + 100}. `).join('')

describe('guarantees', () => {
  test.each(CONTENTS)('memory#83 25 Cells, one patched: 1 embedded, 24 skipped, ids kept (%s)', (_, cells, gap) => {
    for (const at of [0, 12, 24]) {
      const text = cells[at] ?? ''
      for (const now of [text.replace('words', 'terms'), text.slice(0, -40), `${text}!`, `New ${text}`]) {
        const result = plan(cells.join(gap), cells.with(at, now).join(gap))
        expect(counts(result)).toEqual([24, 1, 1])
        expect(result.kept.every(({ cellId, from, to }) => from === to && cellId === `cell_${from}`)).toBe(true)
        expect(result.added).toEqual([{ text: now, md5: md5(now), seq: at }])
      }
    }
  })

  test('memory#83 25 Cells of one paragraph, one edited: 1 embedded', () => {
    expect(split('default', USUAL, ONE_PARAGRAPH)).toHaveLength(25)
    for (const at of [3, 12 * 2028 + 100, 24 * 2028 + 7]) {
      const after = `${ONE_PARAGRAPH.slice(0, at)}x${ONE_PARAGRAPH.slice(at + 2)}`
      expect(counts(plan(ONE_PARAGRAPH, after))).toEqual([24, 1, 1])
    }
  })

  test.each(CONTENTS)('memory#84 paragraph at top: 1 embedded, 25 skipped, seq gap-free (%s)', (_, cells, gap) => {
    for (const top of ['Something new.', 'Paragraph of the same beginning.', paragraph(99)]) {
      const result = plan(cells.join(gap), [top, ...cells].join(gap))
      expect(counts(result)).toEqual([25, 1, 0])
      expect(result.kept.map(({ to }) => to)).toEqual(Array.from(result.kept.keys(), (i) => i + 1))
    }
  })

  test('memory#84 paragraph at top of one that is cut', () => {
    expect(counts(plan(ONE_PARAGRAPH, `word of the same beginning\n\n${ONE_PARAGRAPH}`))).toEqual([25, 1, 0])
  })

  test.each(CONTENTS)('equal content: 0 embedded (%s)', (_, cells, gap) => {
    expect(counts(plan(cells.join(gap), cells.join(gap)))).toEqual([25, 0, 0])
  })

  test.each(CONTENTS)('whole Cells moved: 0 embedded (%s)', (_, cells, gap) => {
    const moved = [...cells.slice(20), ...cells.slice(3, 9).toReversed(), ...cells.slice(9, 20), ...cells.slice(0, 3)]
    expect(counts(plan(cells.join(gap), moved.join(gap)))).toEqual([25, 0, 0])
  })

  test('small Cells that full chunking would pack otherwise can be moved too', () => {
    const texts = ['first', 'second', paragraph(1), 'third', paragraph(2)]
    const cells = texts.map((text) => ({ text }))
    const moved = ['third', 'second', paragraph(2), 'first', paragraph(1)]
    const result = rechunk('default', USUAL, cells, texts.join('\n\n'), moved.join('\n\n'))
    expect(result).toEqual(moved)
  })

  test.each(CONTENTS)('memory#85 shrinking leaves no surplus Cells (%s)', (_, cells, gap) => {
    expect(counts(plan(cells.join(gap), cells.slice(0, 5).join(gap)))).toEqual([5, 0, 20])
    expect(counts(plan(cells.join(gap), cells.slice(20).join(gap)))).toEqual([5, 0, 20])
    expect(counts(plan(cells.join(gap), ''))).toEqual([0, 0, 25])
    expect(counts(plan(cells.join(gap), 'gone'))).toEqual([0, 1, 25])
  })

  test('thousands of Cells that begin alike, reversed', () => {
    const cells = Array.from({ length: 3000 }, (_, i) => `${'word '.repeat(400)}${i}`)
    expect(counts(plan(cells.join('\n\n'), cells.toReversed().join('\n\n')))).toEqual([3000, 0, 0])
  })
})

describe('what is no longer delimited is chunked anew', () => {
  test('a blank line removed joins two paragraphs', () => {
    const [a, b] = ['a'.repeat(40), 'b'.repeat(40)]
    expect(rechunk('default', SMALL, [{ text: a }, { text: b }], `${a}\n\n${b}`, `${a}\n${b}`)).toEqual([
      `${a}\n${'b'.repeat(23)}`,
      'b'.repeat(17),
    ])
  })

  test('a fence opened or closed', () => {
    const before = '# A\none\n\n# B\ntwo\n\n# C\nthree'
    expect(counts(plan(before, before.replace('one', '```'), USUAL, 'markdown'))).toEqual([0, 2, 3])
    expect(counts(plan(before, before.replace('two', '```\n#\n```'), USUAL, 'markdown'))).toEqual([2, 2, 1])
    const fenced = 'x\n```\n# A\n\n# B\n```\ny'
    expect(counts(plan(fenced, fenced.replace('x\n```', 'x\n'), USUAL, 'markdown'))).toEqual([1, 3, 2])
  })

  test('Cells of a chunker that the workspace has left', () => {
    const content = '# A\nx\n\ny\n# B\nz'
    for (const [from, to] of [
      ['markdown', 'no-chunk'],
      ['default', 'markdown'],
      ['no-chunk', 'markdown'],
      ['csv', 'default'],
      ['jsonl', 'default'],
    ] as const) {
      const cells = split(from, { ...USUAL, validate: false }, content).map((text) => ({ text }))
      expect(rechunk(to, USUAL, cells, content, `${content}!`)).toEqual(split(to, USUAL, `${content}!`))
    }
  })
})

describe('append', () => {
  test('refills the last Cell', () => {
    expect(plan('one', 'one two').added).toEqual([expect.objectContaining({ text: 'one two' })])
    expect(plan('one', 'one\n\ntwo').added).toEqual([expect.objectContaining({ text: 'one\n\ntwo' })])
    const full = paragraph(1, 2046)
    expect(counts(plan(`${paragraph(0)}\n\n${full}`, `${paragraph(0)}\n\n${full}\n\nmore`))).toEqual([2, 1, 0])
  })

  test('many small ones give full Cells', () => {
    let content = ''
    let cells: { text: string }[] = []
    for (let i = 0; i < 200; i++) {
      const next = `${content}Note ${i} says this.\n\n`
      cells = rechunk('default', USUAL, cells, content, next).map((text) => ({ text }))
      content = next
    }
    expect(cells.map(({ text }) => text)).toEqual(split('default', USUAL, content))
  })
})

test('memory#86 the other chunkers run again in full', () => {
  const csv = parseChunkerConfig('csv')
  const cells = split('csv', csv, 'h\n1\n2').map((text) => ({ text }))
  expect(rechunk('csv', csv, cells, 'h\n1\n2', 'h2\n1\n2')).toEqual(['h2\n1', 'h2\n2'])
})

test('memory#87 an append that breaks jsonl is refused', () => {
  const jsonl = parseChunkerConfig('jsonl')
  expect(() => rechunk('jsonl', jsonl, [{ text: '1' }], '1\n', '1\n{')).toThrow(
    expect.objectContaining({ code: 'invalid_input', message: expect.stringContaining('line 2') }),
  )
})

describe('any edits, one after the other', () => {
  /** What holds for Cells of this content, whatever edits led there. */
  function expectCellsOf(content: string, cells: readonly string[], name: ChunkerName): void {
    expect(ink(cells.join(''))).toBe(ink(content))
    const fences = name === 'markdown' ? markdownParts(content).filter(({ fence }) => fence) : []
    const fenced = fences.map(({ start, end }) => content.slice(start, end))
    expect(cells).toEqual(expect.arrayContaining(fenced))
    let at = 0
    for (const cell of cells) {
      expect(cell.trim()).not.toBe('')
      at = content.indexOf(cell, at)
      expect(at).toBeGreaterThanOrEqual(0)
      at += cell.length
    }
    const others = cells.filter((cell) => !fenced.includes(cell))
    expect(others.filter((cell) => Buffer.byteLength(cell) > SMALL.targetBytes)).toEqual([])
    const headed = others.filter((cell) => name === 'markdown' && /\n {0,3}#{1,6}\s/.test(cell))
    expect(headed).toEqual([])
  }

  test.each(['default', 'markdown'] as const)('%s: Cells of the new content, nothing lost, no larger', (name) => {
    fc.assert(
      fc.property(edited, edited, ([first, second], [, third]) => {
        const cells = split(name, SMALL, first).map((text) => ({ text }))
        const once = rechunk(name, SMALL, cells, first, second)
        expectCellsOf(second, once, name)
        const mixed = second.slice(0, codePointBorder(second, second.length >> 1)) + third
        const oldCells = once.map((text) => ({ text }))
        expectCellsOf(mixed, rechunk(name, SMALL, oldCells, second, mixed), name)
        expect(rechunk(name, SMALL, oldCells, second, second)).toEqual(once)
      }),
      { seed: 3, numRuns: 1500 },
    )
  })

  test('default: a paragraph put between two keeps every Cell that it does not part', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 150 }), { minLength: 1, maxLength: 20 }),
        fc.nat(),
        (sizes, where) => {
          const paragraphs = sizes.map((size, i) => `${i}${'x'.repeat(size)}`)
          const at = where % (sizes.length + 1)
          const before = paragraphs.join('\n\n')
          const after = paragraphs.toSpliced(at, 0, 'put between').join('\n\n')
          const cells = split('default', SMALL, before)
          const border = paragraphs.slice(0, at).join('\n\n').length
          const parted = cells.filter((cell) => {
            const start = before.indexOf(cell)
            return start < border && border < start + cell.length
          })
          const last = at === sizes.length ? 1 : 0
          const { kept } = plan(before, after, SMALL)
          expect(kept.length).toBeGreaterThanOrEqual(cells.length - parted.length - last)
        },
      ),
      { seed: 4, numRuns: 500 },
    )
  })
})
