import { describe, expect, test } from 'vitest'
import { type ChunkerName, parseChunkerConfig, split } from '../../../src/memory/chunker/index.ts'

const chunk = (name: ChunkerName, content: string, config: Record<string, string> = {}): string[] =>
  split(name, parseChunkerConfig(name, config), content)

describe('csv', () => {
  test('memory#80 header repeated, ragged, delimiter, rows per Cell, header-only', () => {
    expect(chunk('csv', 'a,b\n1,2\n3,4\n')).toEqual(['a,b\n1,2', 'a,b\n3,4'])
    expect(chunk('csv', 'a,b\n1\n2,3,4')).toEqual(['a,b\n1', 'a,b\n2,3,4'])
    expect(chunk('csv', 'a;b\n"x;\ny";2\n3;4', { delimiter: ';' })).toEqual(['a;b\n"x;\ny";2', 'a;b\n3;4'])
    expect(chunk('csv', 'h\n1\n2\n3', { rows_per_cell: '2' })).toEqual(['h\n1\n2', 'h\n3'])
    expect(chunk('csv', 'a,b\n')).toEqual(['a,b'])
  })

  test('without a header every record is a row', () => {
    for (const no of ['false', '0', 'no']) expect(chunk('csv', '1\n2', { has_header: no })).toEqual(['1', '2'])
    for (const yes of ['true', '1', 'yes']) expect(chunk('csv', 'h\n2', { has_header: yes })).toEqual(['h\n2'])
  })

  test('quotes: doubled, lazy, unclosed; a line break in a quoted field does not end the record', () => {
    expect(chunk('csv', 'h\n"a ""b""\nc",d\ne')).toEqual(['h\n"a ""b""\nc",d', 'h\ne'])
    expect(chunk('csv', 'h\n5" pipe,x\ny')).toEqual(['h\n5" pipe,x', 'h\ny'])
    expect(chunk('csv', 'h\n"a "lazy" b",x\ny')).toEqual(['h\n"a "lazy" b",x', 'h\ny'])
    expect(chunk('csv', 'h\n"open\nto the end')).toEqual(['h\n"open\nto the end'])
  })

  test('CRLF, blank lines, byte order mark, a delimiter of two UTF-16 units', () => {
    expect(chunk('csv', '\uFEFF"a\nb",c\r\n\r\n1,2\r\n')).toEqual(['"a\nb",c\n1,2'])
    expect(chunk('csv', 'a😀b\n"1\n"😀2', { delimiter: '😀' })).toEqual(['a😀b\n"1\n"😀2'])
    expect(chunk('csv', ' \n')).toEqual([])
  })

  test('8 MiB of quotes, of rows', () => {
    expect(chunk('csv', '"'.repeat(8 << 20))).toHaveLength(1)
    expect(chunk('csv', 'a\n'.repeat(1 << 20), { rows_per_cell: '1000' })).toHaveLength(1049)
  })
})

describe('jsonl', () => {
  test('memory#81 blank lines skipped, bad line 400 with its number, validate=false takes it', () => {
    expect(chunk('jsonl', '{"a":1}\r\n\n [2]\n"x"')).toEqual(['{"a":1}', ' [2]', '"x"'])
    expect(() => chunk('jsonl', '{"a":1}\n\n{bad}\n')).toThrow(
      expect.objectContaining({ code: 'invalid_input', message: expect.stringContaining('line 3') }),
    )
    expect(chunk('jsonl', '1\n{bad}\n', { validate: 'false' })).toEqual(['1', '{bad}'])
  })

  test('lines per Cell', () => {
    expect(chunk('jsonl', '1\n2\n3', { lines_per_cell: '2' })).toEqual(['1\n2', '3'])
  })
})

test('no-chunk keeps the whole content as one Cell', () => {
  expect(chunk('no-chunk', ' a\n\nb ')).toEqual([' a\n\nb '])
  expect(chunk('no-chunk', ' \n')).toEqual([])
})

describe('config', () => {
  test.each<[ChunkerName, string, string]>([
    ['default', 'target_tokens', '15'],
    ['default', 'target_tokens', '8193'],
    ['markdown', 'target_tokens', '1e3'],
    ['csv', 'rows_per_cell', '0'],
    ['csv', 'has_header', 'maybe'],
    ['csv', 'delimiter', ',,'],
    ['csv', 'delimiter', '"'],
    ['csv', 'delimiter', ''],
    ['jsonl', 'lines_per_cell', '-1'],
    ['jsonl', 'validate', ''],
  ])('memory#77 a bad value of %s is refused by the name of its key: %s=%s', (name, key, value) => {
    expect(() => parseChunkerConfig(name, { [key]: value })).toThrow(
      expect.objectContaining({
        code: 'invalid_input',
        details: { field: key },
        message: expect.stringContaining(key),
      }),
    )
  })

  test('unknown keys are ignored, those of other chunkers too', () => {
    expect(parseChunkerConfig('csv', { target_tokens: 'x', colour: 'red' })).toEqual(parseChunkerConfig('csv'))
    expect(parseChunkerConfig('default', { target_tokens: '16' }).targetBytes).toBe(64)
    expect(parseChunkerConfig('markdown').targetBytes).toBe(2048)
  })
})
