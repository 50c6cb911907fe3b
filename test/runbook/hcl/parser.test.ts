import { describe, expect, test } from 'vitest'
import { diagnosticJson, renderDiagnostic } from '../../../src/runbook/hcl/diagnostics.ts'
import { parseExpression, parseFile } from '../../../src/runbook/hcl/parser-body.ts'
import { attributeOf, codesOf } from './support.ts'

const withoutRanges = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, part: unknown) => {
      if (key.endsWith('ange')) return undefined
      return part instanceof Map ? [...part] : part
    }),
  )

describe('source forms', () => {
  const text = 'a = 1\nb "x" {\n  c = <<EOT\nline\n  ${a}\nEOT\n  d = [1,\n 2]\n}\n'
  const tree = (input: string) => withoutRanges(parseFile(input, 'x').body)

  test('runbook#3 byte-order mark, CR LF and no final newline give the same tree', () => {
    expect(tree(`\ufeff${text}`)).toEqual(tree(text))
    expect(tree(text.replaceAll('\n', '\r\n'))).toEqual(tree(text))
    expect(tree(text.trimEnd())).toEqual(tree(text))
  })

  test('runbook#3 invalid UTF-8 is RB101 at its place', () => {
    const bytes = Buffer.concat([Buffer.from('a = "é\ufffd"\nb = "'), Buffer.from([0xff, 0x22])])
    const { diagnostics } = parseFile(bytes, 'x')
    expect(codesOf(bytes)).toEqual(['RB101 2:6'])
    expect(diagnostics[0]?.range.start.byte).toBe(bytes.length - 2)
    expect(codesOf('a = "\ud800"')).toEqual(['RB101 1:6'])
  })

  test('a byte-order mark counts for bytes, not for columns', () => {
    expect(parseFile('\ufeffa = )', 'x').diagnostics[0]?.range.start).toEqual({ line: 1, column: 5, byte: 7 })
  })

  test('runbook#4 columns count grapheme clusters, bytes count UTF-8', () => {
    const { diagnostics } = parseFile('a = "👩‍👩‍👧‍👦é" )', 'x')
    expect(diagnostics[0]?.range.start).toEqual({ line: 1, column: 10, byte: 34 })
  })

  test('columns on a long line continue from the last one', () => {
    const { source } = parseFile(`a = "${'é😀'.repeat(1000)}"`, 'x')
    expect(source.position(5 + 3 * 1000).column).toBe(2006)
    expect(source.position(5 + 3 * 10).column).toBe(26)
  })
})

describe('templates', () => {
  test('runbook#5 heredocs: flush dedent, terminator inside an interpolation, missing terminator', () => {
    expect(attributeOf('a = <<-E\n    x\n      y\n\n    E\n', 'a')).toBe('x\n  y\n\n')
    expect(attributeOf('a = <<E\n${join("", [\nE,\n"b"])}\nE\n', 'a', { E: 'a' })).toBe('ab\n')
    expect(codesOf('b = 1\na = <<E\ntext\n')).toEqual(['RB104 2:5'])
    expect(codesOf('a = <<E x\n')).toEqual(['RB104 1:5'])
  })

  test('runbook#6 doubled markers are literal', () => {
    expect(attributeOf('a = "$${x} %%{x} $$ %% $ %"', 'a')).toBe('${x} %{x} $$ %% $ %')
    expect(attributeOf('a = <<E\n$${x} \\n %%{x}\nE\n', 'a')).toBe('${x} \\n %{x}\n')
  })

  test('escapes', () => {
    expect(attributeOf('a = "\\n\\r\\n\\t\\"\\\\\\u00e9\\U0001F600"', 'a')).toBe('\n\r\n\t"\\é😀')
    expect(codesOf('a = "\\q"')).toEqual(['RB106 1:6'])
    expect(codesOf('a = "\\ud800"')).toEqual(['RB106 1:6'])
    expect(codesOf('a = "\\U00110000"')).toEqual(['RB106 1:6'])
  })

  test('strings are NFC-normalised', () => {
    expect(attributeOf('a = "n\u0303"', 'a')).toBe('\u00f1')
  })

  test('runbook#31 directives and strip markers in string and heredoc', () => {
    expect(attributeOf('a = "x  ${~ "y" ~}  z"', 'a')).toBe('xyz')
    expect(attributeOf('a = "%{ if b }yes%{ else }no%{ endif }"', 'a', { b: false })).toBe('no')
    expect(attributeOf('a = "%{ for i, v in ["p","q"] }${i}${v} %{ endfor }"', 'a')).toBe('0p 1q ')
    const list = 'a = <<E\n%{ for v in vs ~}\n- ${v}\n%{ endfor ~}\nend\nE\n'
    expect(attributeOf(list, 'a', { vs: ['p', 'q'] })).toBe('- p\n- q\nend\n')
    const flush = 'a = <<-E\n    %{ for v in vs ~}\n    - ${v}\n    %{ endfor ~}\n    end\n  E\n'
    expect(attributeOf(flush, 'a', { vs: ['p', 'q'] })).toBe('- p\n- q\nend\n')
  })

  test('directives without partner', () => {
    expect(codesOf('a = "%{ if true }x"')).toEqual(['RB115 1:6'])
    expect(codesOf('a = "x%{ endif }"')).toEqual(['RB115 1:7'])
    expect(codesOf('a = "%{ if true }%{ else }%{ else }%{ endif }"')).toEqual(['RB115 1:27'])
    expect(codesOf('a = "%{ wile }"')).toEqual(['RB115 1:9'])
  })
})

describe('recovery', () => {
  test('runbook#7 two broken attributes and one broken block are three issues, the rest is parsed', () => {
    const { body, diagnostics } = parseFile(
      'a = [1,\n  * 2,\n  3]\nb = 1\nc = "x ${1 +} y"\nd = 2\ne 5 {\n  f = 1\n}\ng {\n  h = 1\n}\n',
      'x',
    )
    expect(diagnostics.map(({ code, range }) => `${code} ${range.start.line}`)).toEqual([
      'RB111 2',
      'RB111 5',
      'RB109 7',
    ])
    expect([...body.attributes.keys()]).toEqual(['b', 'd'])
    expect(body.blocks.map((block) => block.type)).toEqual(['g'])
  })

  test('runbook#8 each fault has its own code', () => {
    expect(codesOf('a 1\nb = 2')).toEqual(['RB109 1:3'])
    expect(codesOf('a {\n  b = 1\n')).toEqual(['RB107 1:3'])
    expect(codesOf('a = 1 b = 2')).toEqual(['RB110 1:7'])
    expect(codesOf('a = 1\nb = 2\na = 3')).toEqual(['RB108 3:1'])
    expect(codesOf('a "x${1}" {\n}\nb = 1')).toEqual(['RB116 1:3'])
    expect(codesOf('a = "x\nb = 1')).toEqual(['RB103 1:5'])
    expect(codesOf('a = "${1 \nb = 1')).toEqual(['RB105 1:6'])
    expect(codesOf("a = 'x'")).toEqual(['RB102 1:5'])
    expect(codesOf('a = 12abc')).toEqual(['RB112 1:5'])
    expect(codesOf('a = 9007199254740993')).toEqual(['RB112 1:5'])
    expect(codesOf('a = (1\nb = 2\n')).toEqual(['RB107 2:1'])
    expect(codesOf('a = 1 + \nb = 2')).toEqual(['RB111 1:9'])
    expect(codesOf('a = 1 ]')).toEqual(['RB107 1:7'])
    expect(codesOf('}')).toEqual(['RB107 1:1'])
    expect(codesOf('/* a')).toEqual(['RB107 1:1'])
    expect(codesOf(`a = ${'['.repeat(300)}`)).toEqual(['RB113 1:205'])
    expect(codesOf(`a = ${'x'.repeat(4 * 1024 * 1024)}`)).toEqual(['RB114 1:1'])
  })

  test('runbook#9 fifty faults are twenty issues and a count', () => {
    const { diagnostics, omitted } = parseFile('a = )\n'.repeat(50), 'x')
    expect([diagnostics.length, omitted]).toEqual([20, 30])
  })

  test('an unclosed bracket does not hide the lines behind it', () => {
    const { body } = parseFile('a {\n  b = [1, 2\n  c = 3\n}\nd = 4\n', 'x')
    expect(body.attributes.has('d')).toBe(true)
    expect(body.blocks[0]?.body.attributes.has('c')).toBe(true)
  })

  test('a fault inside a nested body keeps the bound of nesting', () => {
    expect(codesOf('a {\n)\n'.repeat(300)).at(-1)).toMatch(/^RB107/)
    expect(parseFile('a {\n)\n'.repeat(100_000), 'x').diagnostics).toHaveLength(20)
  })
})

describe('syntax tree', () => {
  test('sub-expressions have ranges', () => {
    const { body } = parseFile('a = foo(1, b.c[0] + -2)', 'x')
    const call = body.attributes.get('a')?.value
    if (call?.kind !== 'call') throw new Error('no call')
    const [, sum] = call.arguments
    if (sum?.kind !== 'binary') throw new Error('no sum')
    expect([call.range.text, call.nameRange.text, sum.left.range.text, sum.right.range.text]).toEqual([
      'foo(1, b.c[0] + -2)',
      'foo',
      'b.c[0]',
      '-2',
    ])
    expect(sum.right.range.toJSON()).toEqual({
      file: 'x',
      start: { line: 1, column: 21, byte: 20 },
      end: { line: 1, column: 23, byte: 22 },
    })
  })

  test('source order is kept', () => {
    const { body } = parseFile('z = 1\na = 2\ny {}\nb {}\n', 'x')
    expect([...body.attributes.keys(), ...body.blocks.map((block) => block.type)]).toEqual(['z', 'a', 'y', 'b'])
  })

  test('legacy index, namespaced call, object keys', () => {
    expect(parseExpression('a.0.1.b').range.text).toBe('a.0.1.b')
    expect(parseExpression('a::b(1)')).toMatchObject({ kind: 'call', name: 'a::b' })
    expect(attributeOf('a = { true = 1, "k 2": 2\n (x) = 3\n if-x = 4, }', 'a', { x: 'y' })).toEqual({
      true: 1,
      'k 2': 2,
      y: 3,
      'if-x': 4,
    })
    expect(codesOf('a = { b.c = 1 }')).toEqual(['RB111 1:7'])
  })

  test('comments of all three forms', () => {
    expect(codesOf('# a\n// b\n/* c\n */ a = 1 # d\nb = /* e */ 2 // f')).toEqual([])
  })
})

describe('how a diagnostic is shown', () => {
  const { diagnostics } = parseFile('a = 1\n\tb = "x" "y"\n', 'dir/x.hcl')

  test('as text with a caret', () => {
    expect(diagnostics.map(renderDiagnostic)).toEqual([
      'error[RB111]: expected the end of the line, found "\\""\n  --> dir/x.hcl:2:10\n 2 |  b = "x" "y"\n   |          ^',
    ])
  })

  test('as JSON', () => {
    expect(diagnostics.map(diagnosticJson)).toEqual([
      {
        level: 'error',
        code: 'RB111',
        message: 'expected the end of the line, found "\\""',
        range: { file: 'dir/x.hcl', start: { line: 2, column: 10, byte: 15 }, end: { line: 2, column: 11, byte: 16 } },
        snippet: { startLine: 2, lines: [' b = "x" "y"'] },
      },
    ])
  })

  test('a hint, and no line of a megabyte', () => {
    const [found] = parseFile(`a = "${'x'.repeat(100_000)}" ;`, 'x').diagnostics
    const shown = found && renderDiagnostic(found)
    expect(shown).toContain('= hint: put each argument on its own line')
    expect(shown?.length).toBeLessThan(600)
  })
})
