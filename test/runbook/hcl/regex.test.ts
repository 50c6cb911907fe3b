import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Budget } from '../../../src/runbook/hcl/budget.ts'
import { compileRegex, RegexSyntaxError } from '../../../src/runbook/hcl/regex/index.ts'
import { processorTime } from '../../support/processor-time.ts'
import { failureOf, resultOf } from './support.ts'

const all = (pattern: string, text: string) =>
  [...compileRegex(pattern).matches(text, new Budget())].map((match) => match.groups)

describe('matching', () => {
  test.each<[string, string, (string | undefined)[][]]>([
    ['a|ab', 'ab', [['a']]],
    ['ab|a', 'ab', [['ab']]],
    ['a*?b', 'aab', [['aab']]],
    ['(a+)(b*)', 'aab', [['aab', 'aa', 'b']]],
    ['(a)|(b)', 'b', [['b', undefined, 'b']]],
    ['a{2,3}', 'aaaaa', [['aaa'], ['aa']]],
    ['a{,3}', 'a{,3}', [['a{,3}']]],
    ['(?i)straße', 'STRASSE Straße', [['Straße']]],
    ['(?s)a.b', 'a\nb', [['a\nb']]],
    ['a.b', 'a\nb', []],
    ['(?m)^\\w+$', 'ab\ncd', [['ab'], ['cd']]],
    ['^\\w+$', 'ab\ncd', []],
    ['\\bfoo\\b', 'foo food', [['foo']]],
    ['[^\\d\\s]+', 'a1 b', [['a'], ['b']]],
    ['[[:upper:][:digit:]]+', 'aB3', [['B3']]],
    ['[]a-]+', 'x]a-', [[']a-']]],
    ['\\p{Greek}+', 'abcαβγ', [['αβγ']]],
    ['\\pL\\PL', 'é1', [['é1']]],
    ['.', '😀', [['😀']]],
    ['\\x{1F600}', '😀', [['😀']]],
    ['\\Qa.b\\E+', 'a.bbb', [['a.bbb']]],
    ['(?U)a+', 'aa', [['a'], ['a']]],
    ['x*', 'axb', [[''], ['x'], ['']]],
    ['', 'ab', [[''], [''], ['']]],
    ['(?:(a)|b)*', 'ab', [['ab', 'a']]],
    ['(?i:A)b', 'ab aB', [['ab']]],
    ['(a*)*b', 'aab', [['aab', 'aa']]],
  ])('%s in %s', (pattern, text, matches) => {
    expect(all(pattern, text)).toEqual(matches)
  })

  test.each([
    '(',
    ')',
    '[a',
    'a**',
    '*a',
    '\\1',
    '(?=a)',
    '(?<!a)',
    'a{3,2}',
    'a{1001}',
    '\\y',
    '[z-a]',
    '\\p{Nope}',
    '(?P<a>x)(?P<a>y)',
    '((a{100}){100}){100}',
    '('.repeat(300),
    '[[:nope:]]',
    '\\',
  ])('%s is refused', (pattern) => {
    expect(() => compileRegex(pattern)).toThrow(RegexSyntaxError)
  })

  test('agrees with the host on patterns that both know', () => {
    const atom = fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '(a)', '(b|ab)', '(?:ab)', '^', '$', '\\b')
    const piece = fc
      .tuple(atom, fc.constantFrom('', '', '*', '+', '?', '*?', '+?', '{1,2}'))
      .map((parts) => parts.join(''))
    const pattern = fc.array(piece, { minLength: 1, maxLength: 5 }).map((pieces) => pieces.join(''))
    fc.assert(
      fc.property(pattern, fc.stringMatching(/^[abc]{0,8}$/), (source, text) => {
        fc.pre(!/[$^b]([*+?]|\{)/.test(source.replaceAll('[ab]', 'x')))
        const host = new RegExp(source, 'u').exec(text)
        const [own] = [...compileRegex(source).matches(text, new Budget())]
        expect(own && [own.start, own.groups[0]]).toEqual(host ? [host.index, host[0]] : undefined)
      }),
      { numRuns: 2000, seed: 5 },
    )
  })
})

test('runbook#36 matching is linear', () => {
  const text = 'a'.repeat(100_000)
  resultOf('can(regex("^(a+)+$", s))', { s: text.slice(0, 2000) })
  const spent = processorTime(() => expect(resultOf('can(regex("^(a+)+$", s))', { s: `${text}b` })).toBe(false))
  // The bound is 100 ms: a busy machine takes some times that, a pattern that is tried again and again never ends.
  expect(spent).toBeLessThan(2000)
})

test('work is bounded', () => {
  expect(failureOf('regexall("([abc]?){500}z", s)', { s: 'abc'.repeat(100_000) }).code).toBe('limit_exceeded')
  expect(failureOf('regex("a", s)', { s: 'b'.repeat(1024 * 1024 + 1) }).message).toContain('1 MiB')
})
