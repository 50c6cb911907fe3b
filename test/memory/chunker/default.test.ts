import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseChunkerConfig, split } from '../../../src/memory/chunker/index.ts'
import { ink, prose } from './support.ts'

const chunk = (content: string, tokens = '512'): string[] =>
  split('default', parseChunkerConfig('default', { target_tokens: tokens }), content)

describe('default', () => {
  test('memory#78 Cells of at most 2048 bytes, no overlap, whole code points, nothing lost', () => {
    const content = Array.from(
      { length: 60 },
      (_, i) => `Paragraph ${i}. ${'日本語 😀 text '.repeat(1 + ((i * 7) % 90))}`,
    ).join('\n\n')
    const cells = chunk(content)
    expect(cells.length).toBeGreaterThan(20)
    for (const cell of cells) {
      expect(Buffer.byteLength(cell)).toBeLessThanOrEqual(2048)
      expect(Buffer.from(cell).toString()).toBe(cell)
    }
    expect(ink(cells.join(''))).toBe(ink(content))
  })

  test('packs paragraphs as written and leaves out the blank lines between Cells', () => {
    const [a, b, c] = ['a'.repeat(30), `  ${'b'.repeat(20)}\n${'b'.repeat(10)}`, 'c'.repeat(40)]
    expect(chunk(`\n \n${a}\n\t\n${b}\r\n\r\n${c}\r\n`, '16')).toEqual([a, b, c])
    expect(chunk('one\n\n\ntwo')).toEqual(['one\n\n\ntwo'])
    expect(chunk('one\r\ntwo\r\n\r\nthree\r\n')).toEqual(['one\r\ntwo\r\n\r\nthree'])
  })

  test('blank content has no Cells', () => {
    for (const content of ['', ' ', '\n\r\n\t', '\u00A0\uFEFF\u2003']) expect(chunk(content)).toEqual([])
  })

  test('cuts a long paragraph behind the last sentence end past half the target', () => {
    const first = `${'x'.repeat(20)}. ${'y'.repeat(20)}! `
    expect(chunk(`${first}${'z'.repeat(60)}`, '16')).toEqual([first, 'z'.repeat(60)])
    expect(chunk(`${'x'.repeat(20)}. ${'y'.repeat(80)}`, '16')).toEqual([
      `${'x'.repeat(20)}. ${'y'.repeat(42)}`,
      'y'.repeat(38),
    ])
    expect(chunk(`${'x'.repeat(40)}.yyy${'z'.repeat(60)}`, '16')[0]).toHaveLength(64)
  })

  test('a hard cut falls between code points', () => {
    expect(chunk(`a${'😀'.repeat(20)}`, '16')).toEqual([`a${'😀'.repeat(15)}`, '😀'.repeat(5)])
    expect(chunk('漢'.repeat(30), '16')).toEqual(['漢'.repeat(21), '漢'.repeat(9)])
  })

  test('any text: within the target, nothing lost, nothing twice, no blank Cell, each a stretch of the content', () => {
    fc.assert(
      fc.property(prose, fc.constantFrom('16', '20', '64'), (content, tokens) => {
        const cells = chunk(content, tokens)
        let at = 0
        for (const cell of cells) {
          expect(Buffer.byteLength(cell)).toBeLessThanOrEqual(4 * Number(tokens))
          expect(cell.trim()).not.toBe('')
          at = content.indexOf(cell, at)
          expect(at).toBeGreaterThanOrEqual(0)
          at += cell.length
        }
        expect(ink(cells.join(''))).toBe(ink(content))
      }),
      { seed: 1, numRuns: 500 },
    )
  })

  test.each([
    ['one word', 'a'.repeat(8 << 20)],
    ['line feeds', '\n'.repeat(8 << 20)],
    ['spaces in a line', `a${' '.repeat(8 << 20)}b`],
    ['tiny paragraphs', 'a\n\n'.repeat(2_700_000)],
    ['sentences', 'Some words here. '.repeat(490_000)],
  ])('8 MiB of %s', (_, content) => {
    expect(ink(chunk(content).join(''))).toBe(ink(content))
  })
})
