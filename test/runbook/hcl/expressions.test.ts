import { describe, expect, test } from 'vitest'
import { fromJson, parseJson } from '../../../src/runbook/hcl/json.ts'
import { processorTime } from '../../support/processor-time.ts'
import { failureOf, resultOf, valueOf } from './support.ts'

describe('operators', () => {
  test.each([
    ['1 + 2 * 3', 7],
    ['(1 + 2) * 3', 9],
    ['10 - 4 - 3', 3],
    ['2 * 3 % 4', 2],
    ['7 / 2', 3.5],
    ['-7 % 3', -1],
    ['11 % 5.1', 0.8],
    ['-2 * -3', 6],
    ['- 2 + 3', 1],
    ['!true || true', true],
    ['!(true || true)', false],
    ['!true == false', true],
    ['1 < 2 == true', true],
    ['1 + 1 == 2 && 3 > 2', true],
    ['false && true || true', true],
    ['true || false && false', true],
    ['1 == 1 ? "a" : "b"', 'a'],
    ['false ? 1 : true ? 2 : 3', 2],
    ['"2" + "3"', 5],
    ['"10" > 9', true],
    ['"true" && true', true],
    ['--1', 1],
    ['!!true', true],
    ['null == null', true],
    ['[1, {a = 2}] == [1, {a = 2}]', true],
    ['[1] == [2]', false],
  ])('runbook#27 %s', (text, value) => {
    expect(resultOf(text)).toEqual(value)
  })

  test('runbook#28 types in comparisons and conditions, fifteen digits', () => {
    expect(resultOf('1 == "1"')).toBe(false)
    expect(resultOf('true != "true"')).toBe(true)
    expect(resultOf('true ? 1 : "x"')).toBe('1')
    expect(resultOf('false ? "x" : true')).toBe('true')
    expect(resultOf('true ? n : s', { n: 1, s: 'x' })).toBe('1')
    expect(resultOf('true ? 1 : null')).toBe(1)
    expect(resultOf('true ? [1] : "x"')).toEqual([1])
    expect(resultOf('0.1 + 0.2 == 0.3')).toBe(true)
    expect(resultOf('"${0.1 + 0.2}"')).toBe(0.3)
    expect(resultOf('"=${0.1 + 0.2}"')).toBe('=0.3')
    expect(resultOf('jsonencode(x)', { x: 0.30000000000000004 })).toBe('0.3')
    expect(resultOf('x == 0.3', { x: 0.30000000000000004 })).toBe(true)
  })

  test('logic evaluates only what decides', () => {
    expect(resultOf('false && nothing')).toBe(false)
    expect(resultOf('true || nothing')).toBe(true)
    expect(resultOf('true ? 1 : nothing')).toBe(1)
  })

  test('operands of wrong type', () => {
    expect(failureOf('1 + "x"')).toMatchObject({
      message: 'expected a number, found a string; texts are joined as "${a}${b}"',
    })
    expect(failureOf('1 + "x"').range.text).toBe('"x"')
    expect(failureOf('null && true').range.text).toBe('null')
    expect(failureOf('"yes" ? 1 : 2').range.text).toBe('"yes"')
    expect(failureOf('-[1]').range.text).toBe('[1]')
    expect(failureOf('null < 1').range.text).toBe('null')
  })

  test('runbook#38 numbers out of range', () => {
    expect(failureOf('x + 1', { x: 2 ** 53 - 1 }).message).toContain('outside the range')
    expect(failureOf('2 * (1 / 0)').range.text).toBe('0')
    expect(failureOf('1 % 0').message).toBe('division by zero')
    expect(resultOf('jsondecode(t).id', { t: '{"id": 12345678901234567890, "s": "1234567890123456789"}' })).toBe(
      '12345678901234567890',
    )
    expect(parseJson('[-12345678901234567890, 1e3, 1234567890.125, "\\"12345678901234567890"]')).toEqual([
      '-12345678901234567890',
      1000,
      1234567890.125,
      '"12345678901234567890',
    ])
  })
})

describe('collections', () => {
  test('runbook#29 for expressions', () => {
    expect(resultOf('[for v in [1, 2, 3] : v * 2 if v != 2]')).toEqual([2, 6])
    expect(resultOf('[for k, v in {b = 1, a = 2} : "${k}${v}"]')).toEqual(['a2', 'b1'])
    expect(resultOf('{for i, v in ["x", "y"] : v => i}')).toEqual({ x: 0, y: 1 })
    expect(resultOf('{for v in ["a1", "b1", "a2"] : substr(v, 0, 1) => v...}')).toEqual({ a: ['a1', 'a2'], b: ['b1'] })
    expect(resultOf('[for v in toset([2, 1, 2]) : v]')).toEqual([1, 2])
    expect(failureOf('{for v in [1, 1] : "k" => v}').message).toBe('duplicate key "k"')
    expect(failureOf('[for v in "text" : v]').message).toContain("can't iterate")
    expect(resultOf('[for x in [1, 2] : [for y in [x, 10] : x * y]]')).toEqual([
      [1, 10],
      [4, 20],
    ])
  })

  test('runbook#30 splats', () => {
    const variables = { a: [{ b: [{ c: 1 }] }, { b: [{ c: 2 }] }] }
    expect(resultOf('a[*].b[0].c', variables)).toEqual([1, 2])
    expect(resultOf('a[*].b[*].c', variables)).toEqual([[1], [2]])
    expect(resultOf('a.*.b', variables)).toEqual([[{ c: 1 }], [{ c: 2 }]])
    expect(resultOf('a.*.b[1]', variables)).toEqual([{ c: 2 }])
    expect(resultOf('null[*]')).toEqual([])
    expect(resultOf('"x"[*]')).toEqual(['x'])
    expect(resultOf('{b = 1}[*].b')).toEqual([1])
  })

  test('runbook#32 interpolation keeps types, text takes primitives only', () => {
    expect(resultOf('"${[1, 2]}"')).toEqual([1, 2])
    expect(resultOf('"n=${1} b=${true}"')).toBe('n=1 b=true')
    expect(failureOf('"x ${[1]}"')).toMatchObject({ hint: 'use jsonencode(...)' })
    expect(failureOf('"x ${null}"').range.text).toBe('null')
  })

  test('runbook#33 no way to a prototype', () => {
    for (const key of ['constructor', '__proto__', 'toString', 'hasOwnProperty']) {
      expect(failureOf(`{a = 1}.${key}`).message).toBe(`missing key "${key}"`)
      expect(failureOf(`[1].${key}`).message).toContain('has no attribute')
      expect(failureOf(`"x".${key}`).message).toContain('has no attribute')
      expect(failureOf(key).message).toContain('unknown variable')
      expect(failureOf(`${key}(1)`).message).toContain('unknown function')
    }
    const data = fromJson(JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}'))
    expect(resultOf('d["__proto__"].x + d.constructor', { d: data })).toBe(3)
    expect(resultOf('merge(d, {y = 1}).constructor', { d: data })).toBe(2)
    expect(Object.keys({}).length + ('x' in {} ? 1 : 0)).toBe(0)
    expect(resultOf('{"__proto__" = {x = 1}}["__proto__"].x')).toBe(1)
  })

  test('runbook#35 index and key errors, try, can, lookup', () => {
    expect(failureOf('[1][-1]').message).toContain('out of range')
    expect(failureOf('[1][1]').message).toContain('out of range')
    expect(failureOf('[1][0.5]').message).toContain('whole number')
    expect(failureOf('{a = 1}.b').message).toBe('missing key "b"')
    expect(failureOf('null.b').message).toContain('null has no attribute')
    expect(resultOf('try([1][5], nothing, 7)')).toBe(7)
    expect(resultOf('can([1][5])')).toBe(false)
    expect(resultOf('can([1][0])')).toBe(true)
    expect(resultOf('lookup({a = 1}, "b", 2)')).toBe(2)
    expect(failureOf('try(a, b)').message).toContain('"b"')
  })
})

describe('bounds', () => {
  test('runbook#37 a nested for over 10^8 ends with limit_exceeded', () => {
    const spent = processorTime(() =>
      expect(failureOf('[for a in range(10000) : [for b in range(10000) : 1]]').code).toBe('limit_exceeded'),
    )
    expect(spent).toBeLessThan(5000)
  })

  test('results and texts are at most 16 MiB', () => {
    expect(failureOf('[for i in range(20) : s]', { s: 'x'.repeat(1024 * 1024) }).code).toBe('limit_exceeded')
    expect(failureOf('replace(s, "x", s)', { s: 'x'.repeat(100_000) }).code).toBe('limit_exceeded')
    expect(failureOf('join(s, split("", s))', { s: 'x'.repeat(100_000) }).code).toBe('limit_exceeded')
    expect(failureOf('setproduct(range(1000), range(1000), range(1000))').code).toBe('limit_exceeded')
    expect(failureOf('try(range(100000000), 1)').code).toBe('limit_exceeded')
    expect(failureOf('indent(1000000, s)', { s: '\n'.repeat(1000) }).code).toBe('limit_exceeded')
  })

  test('data nested too deep is refused', () => {
    expect(failureOf('jsondecode(s)', { s: '['.repeat(1000) + ']'.repeat(1000) }).message).toContain('200 levels')
  })
})

describe('names', () => {
  test('runbook#39 an unknown name has its place and a suggestion', () => {
    const error = failureOf('  1 + inptu', { input: 1 })
    expect(error.located).toBe('<expression>:1:7: unknown variable "inptu" (did you mean "input"?)')
    expect(failureOf('uper("x")').hint).toBe('did you mean "upper"?')
    expect(failureOf('{colour = 1}.color').hint).toBe('did you mean "colour"?')
  })

  test('data is not evaluated again', () => {
    expect(valueOf('"${x}!"', { x: '${y} {{prev}} %{ if }' })).toBe('${y} {{prev}} %{ if }!')
  })
})
