import { describe, expect, test } from 'vitest'
import { FUNCTIONS } from '../../../src/runbook/hcl/functions/index.ts'
import { evaluate } from '../../../src/runbook/hcl/evaluate.ts'
import { FunctionError } from '../../../src/runbook/hcl/errors.ts'
import { parseExpression } from '../../../src/runbook/hcl/parser-body.ts'
import { constantScope, type Scope } from '../../../src/runbook/hcl/scope.ts'
import { failureOf, plain, resultOf } from './support.ts'

const scope: Scope = {
  ...constantScope(),
  now: Date.UTC(2026, 0, 2, 3, 4, 5),
  readFile: (path) => {
    if (path === 'no') throw new FunctionError('no such file', 0)
    return Buffer.from(path === 'bin' ? [255, 0] : `content of ${path}`)
  },
  fileExists: (path) => path === 'a',
}

/** Two good cases and a bad one of every function. */
const CASES: Record<string, [good: [string, unknown], good: [string, unknown], bad: string]> = {
  upper: [['upper("aé")', 'AÉ'], ['upper(1)', '1'], 'upper([])'],
  lower: [['lower("AÉ")', 'aé'], ['lower("")', ''], 'lower(null)'],
  title: [['title("hello big-world")', 'Hello Big-World'], ['title("ünder")', 'Ünder'], 'title()'],
  strrev: [['strrev("abc")', 'cba'], ['strrev("ae\u0301")', 'e\u0301a'.normalize('NFC')], 'strrev({})'],
  chomp: [['chomp("a\\n\\r\\n")', 'a'], ['chomp("a")', 'a'], 'chomp(null)'],
  trimspace: [['trimspace(" a\\n")', 'a'], ['trimspace("a b")', 'a b'], 'trimspace([1])'],
  trim: [['trim("?!a?!", "!?")', 'a'], ['trim("abc", "x")', 'abc'], 'trim("a")'],
  trimprefix: [['trimprefix("helloworld", "hello")', 'world'], ['trimprefix("a", "b")', 'a'], 'trimprefix("a", null)'],
  trimsuffix: [['trimsuffix("helloworld", "world")', 'hello'], ['trimsuffix("a", "")', 'a'], 'trimsuffix([], "a")'],
  startswith: [['startswith("ab", "a")', true], ['startswith("ab", "b")', false], 'startswith("a", [])'],
  endswith: [['endswith("ab", "b")', true], ['endswith("ab", "a")', false], 'endswith("a", {})'],
  strcontains: [['strcontains("abc", "b")', true], ['strcontains("abc", "d")', false], 'strcontains("a", null)'],
  replace: [['replace("a.b.c", ".", "$&")', 'a$&b$&c'], ['replace("aaa", "b", "c")', 'aaa'], 'replace("a", "b")'],
  substr: [['substr("hello", 1, 3)', 'ell'], ['substr("hello", -2, -1)', 'lo'], 'substr("a", 0, -2)'],
  split: [['split(",", "a,b,")', ['a', 'b', '']], ['split(",", "")', ['']], 'split(",", [1])'],
  join: [['join("-", ["a", 1], ["b"])', 'a-1-b'], ['join(",", [])', ''], 'join(",", [[1]])'],
  indent: [['indent(2, "a\\nb")', 'a\n  b'], ['indent(0, "a")', 'a'], 'indent(-1, "a")'],
  format: [
    ['format("%-4s|%04d|%+.1f|%%|%q|%v", "a", 7, 1.25, "x", [1])', 'a   |0007|+1.2|%|"x"|[1]'],
    ['format("%[2]s %[1]s %[3]x %t", "a", "b", 255, true)', 'b a ff true'],
    'format("%d", "x")',
  ],
  formatlist: [
    ['formatlist("%s-%d", ["a", "b"], 1)', ['a-1', 'b-1']],
    ['formatlist("%s%s", ["a"], ["b"])', ['ab']],
    'formatlist("%s%s", ["a"], ["b", "c"])',
  ],
  regex: [
    ['regex("(\\\\d+)-(x)?", "ab 12-")', ['12', null]],
    ['regex("(?P<k>\\\\w+)=(?P<v>\\\\w+)", "a=b")', { k: 'a', v: 'b' }],
    'regex("z", "a")',
  ],
  regexall: [['regexall("[a-z]+", "ab 1 cd")', ['ab', 'cd']], ['regexall("z", "a")', []], 'regexall("(?=a)", "a")'],
  regexreplace: [
    ['regexreplace("a1b22", "(\\\\d+)", "<$1>")', 'a<1>b<22>'],
    ['regexreplace("ab", "(?P<x>a)", "$${x}$${x}")', 'aab'],
    'regexreplace("a", "(", "")',
  ],
  abs: [['abs(-1.5)', 1.5], ['abs("2")', 2], 'abs("x")'],
  ceil: [['ceil(1.2)', 2], ['ceil(-1.2)', -1], 'ceil(null)'],
  floor: [['floor(1.8)', 1], ['floor(-1.2)', -2], 'floor([])'],
  signum: [['signum(-3)', -1], ['signum(0)', 0], 'signum(true)'],
  max: [['max(1, 3, 2)', 3], ['max([1, 5]...)', 5], 'max()'],
  min: [['min(1, 3, 2)', 1], ['min("4", 5)', 4], 'min("a")'],
  pow: [['pow(2, 10)', 1024], ['pow(4, 0.5)', 2], 'pow(2, 60)'],
  log: [['log(100, 10)', 2], ['log(8, 2)', 3], 'log(0, 10)'],
  parseint: [['parseint("ff", 16)', 255], ['parseint("-101", 2)', -5], 'parseint("12", 2)'],
  sum: [['sum([0.1, 0.2])', 0.3], ['sum([1, "2"])', 3], 'sum([])'],
  length: [['length("👩‍👩‍👧‍👦é")', 2], ['length({a = 1}) + length([1, 2])', 3], 'length(1)'],
  keys: [['keys({b = 1, a = 2})', ['a', 'b']], ['keys({})', []], 'keys([1])'],
  values: [['values({b = 1, a = 2})', [2, 1]], ['values({})', []], 'values("a")'],
  merge: [['merge({a = 1, b = 1}, {b = 2})', { a: 1, b: 2 }], ['merge({a = 1}, null)', { a: 1 }], 'merge([1])'],
  concat: [['concat([1], [2, 3])', [1, 2, 3]], ['concat([])', []], 'concat([1], 2)'],
  coalesce: [['coalesce(null, "", "a")', 'a'], ['coalesce(0, 1)', 0], 'coalesce(null, "")'],
  coalescelist: [['coalescelist([], [1])', [1]], ['coalescelist([2], [1])', [2]], 'coalescelist([])'],
  compact: [['compact(["a", "", null, "b"])', ['a', 'b']], ['compact([])', []], 'compact("a")'],
  distinct: [['distinct([1, "1", 1, [2], [2]])', [1, '1', [2]]], ['distinct([])', []], 'distinct({})'],
  flatten: [['flatten([1, [2, [3]], []])', [1, 2, 3]], ['flatten([])', []], 'flatten(1)'],
  reverse: [['reverse([1, 2])', [2, 1]], ['reverse([])', []], 'reverse("ab")'],
  sort: [['sort(["b", "a", "😀", "\uffff"])', ['a', 'b', '\uffff', '😀']], ['sort([])', []], 'sort([[1]])'],
  one: [['one([1])', 1], ['one([])', null], 'one([1, 2])'],
  alltrue: [['alltrue([true, "true"])', true], ['alltrue([true, false])', false], 'alltrue(["x"])'],
  anytrue: [['anytrue([false, true])', true], ['anytrue([])', false], 'anytrue([1])'],
  contains: [['contains([1, 2], 2)', true], ['contains([1], "1")', false], 'contains({a = 1}, 1)'],
  index: [['index(["a", "b"], "b")', 1], ['index([[1]], [1])', 0], 'index(["a"], "c")'],
  element: [['element(["a", "b"], 3)', 'b'], ['element([7], 0)', 7], 'element([], 0)'],
  lookup: [['lookup({a = 1}, "a", 0)', 1], ['lookup({}, "a", 0)', 0], 'lookup({}, "a")'],
  slice: [['slice([1, 2, 3], 1, 3)', [2, 3]], ['slice([1], 0, 0)', []], 'slice([1], 0, 2)'],
  range: [['range(3)', [0, 1, 2]], ['range(5, 1, -2)', [5, 3]], 'range(1, 2, 0)'],
  zipmap: [['zipmap(["a", "b"], [1, 2])', { a: 1, b: 2 }], ['zipmap([], [])', {}], 'zipmap(["a"], [])'],
  chunklist: [['chunklist([1, 2, 3], 2)', [[1, 2], [3]]], ['chunklist([], 2)', []], 'chunklist([1], 0)'],
  matchkeys: [
    ['matchkeys([1, 2, 3], ["a", "b", "a"], ["a"])', [1, 3]],
    ['matchkeys([], [], ["a"])', []],
    'matchkeys([1], [], [])',
  ],
  setunion: [['setunion([2, 1], [2, 3])', [1, 2, 3]], ['setunion([])', []], 'setunion(1)'],
  setintersection: [
    ['setintersection([1, 2, 3], [2, 3], [3, 2])', [2, 3]],
    ['setintersection([1], ["1"])', []],
    'setintersection("a")',
  ],
  setsubtract: [['setsubtract([1, 2, 3], [2])', [1, 3]], ['setsubtract([], [1])', []], 'setsubtract([1])'],
  setproduct: [
    [
      'setproduct([1, 2], ["a"])',
      [
        [1, 'a'],
        [2, 'a'],
      ],
    ],
    ['setproduct([], [1])', []],
    'setproduct([1], 2)',
  ],
  transpose: [
    ['transpose({a = ["x", "y"], b = ["y"]})', { x: ['a'], y: ['a', 'b'] }],
    ['transpose({})', {}],
    'transpose({a = 1})',
  ],
  jsonencode: [
    ['jsonencode({b = [1, null], a = "x"})', '{"a":"x","b":[1,null]}'],
    ['jsonencode("a\\n")', '"a\\n"'],
    'jsonencode()',
  ],
  jsondecode: [['jsondecode("{\\"a\\": [1]}")', { a: [1] }], ['jsondecode("null")', null], 'jsondecode("{")'],
  yamlencode: [['yamlencode({a = [1, "x"]})', 'a:\n  - 1\n  - x\n'], ['yamlencode("x")', 'x\n'], 'yamlencode(1, 2)'],
  yamldecode: [['yamldecode("a:\\n  - 1")', { a: [1] }], ['yamldecode("x")', 'x'], 'yamldecode("a: [")'],
  csvdecode: [
    ['csvdecode("a,b\\n1,\\"x, \\"\\"y\\"\\"\\"\\n")', [{ a: '1', b: 'x, "y"' }]],
    ['csvdecode("a\\r\\n1\\r\\n2")', [{ a: '1' }, { a: '2' }]],
    'csvdecode("a,b\\n1\\n")',
  ],
  base64encode: [['base64encode("é")', 'w6k='], ['base64encode("")', ''], 'base64encode([])'],
  base64decode: [['base64decode("w6k=")', 'é'], ['base64decode("YQ")', 'a'], 'base64decode("%%")'],
  urlencode: [['urlencode("a b/é!")', 'a+b%2F%C3%A9%21'], ['urlencode("~-_.")', '~-_.'], 'urlencode({})'],
  urldecode: [['urldecode("a+b%2F")', 'a b/'], ['urldecode("")', ''], 'urldecode("%zz")'],
  md5: [['md5("a")', '0cc175b9c0f1b6a831c399e269772661'], ['length(md5(""))', 32], 'md5(null)'],
  sha1: [['sha1("a")', '86f7e437faa5a7fce15d1ddcb9eaeaea377667b8'], ['length(sha1(""))', 40], 'sha1([])'],
  sha256: [
    ['sha256("a")', 'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb'],
    ['length(sha256(""))', 64],
    'sha256({})',
  ],
  sha512: [['substr(sha512("a"), 0, 8)', '1f40fc92'], ['length(sha512(""))', 128], 'sha512()'],
  base64sha256: [
    ['base64sha256("a")', 'ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='],
    ['length(base64sha256(""))', 44],
    'base64sha256(null)',
  ],
  uuidv5: [
    ['uuidv5("dns", "example.com")', 'cfbff0d1-9375-5685-968c-48ce8b15ae17'],
    ['uuidv5("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "example.com")', 'cfbff0d1-9375-5685-968c-48ce8b15ae17'],
    'uuidv5("x", "y")',
  ],
  timestamp: [['timestamp()', '2026-01-02T03:04:05Z'], ['timecmp(timestamp(), timestamp())', 0], 'timestamp(1)'],
  timeadd: [
    ['timeadd("2020-01-01T00:00:00Z", "1h30m")', '2020-01-01T01:30:00Z'],
    ['timeadd("2020-01-01T00:00:00+01:00", "-1d")', '2019-12-30T23:00:00Z'],
    'timeadd("2020-01-01", "1h")',
  ],
  timecmp: [
    ['timecmp("2020-01-01T00:00:00Z", "2020-01-01T01:00:00+01:00")', 0],
    ['timecmp("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z")', -1],
    'timecmp("x", "y")',
  ],
  formatdate: [
    [
      'formatdate("EEE, DD MMM YYYY hh:mm:ss \'o\'\'clock\' AA ZZZZZ", "2020-01-02T13:04:05+02:00")',
      "Thu, 02 Jan 2020 13:04:05 o'clock PM +02:00",
    ],
    ['formatdate("YY-M-D H Z", "2020-01-02T13:04:05Z")', '20-1-2 1 Z'],
    'formatdate("Q", "2020-01-02T13:04:05Z")',
  ],
  tostring: [['tostring(1.50)', '1.5'], ['tostring(null)', null], 'tostring([])'],
  tonumber: [['tonumber("1e3")', 1000], ['tonumber("-0.5")', -0.5], 'tonumber("0x1")'],
  tobool: [['tobool("true")', true], ['tobool(false)', false], 'tobool("yes")'],
  tolist: [['tolist(toset(["b", "a"]))', ['a', 'b']], ['tolist(["a", 1])', ['a', '1']], 'tolist(["a", [1]])'],
  tomap: [['tomap({a = 1})', { a: 1 }], ['tomap(null)', null], 'tomap([])'],
  toset: [['toset(["b", "a", "b"])', ['a', 'b']], ['typeof(toset([]))', 'set'], 'toset({})'],
  typeof: [
    ['[typeof(1), typeof("a"), typeof(true), typeof(null)]', ['number', 'string', 'bool', 'null']],
    ['[typeof([]), typeof({})]', ['list', 'map']],
    'typeof()',
  ],
  try: [['try(nothing, 1)', 1], ['try(2, nothing)', 2], 'try(nothing)'],
  can: [['can(nothing)', false], ['can(1)', true], 'can()'],
  sensitive: [['sensitive("a")', 'a'], ['sensitive([1])', [1]], 'sensitive()'],
  nonsensitive: [['nonsensitive("a")', 'a'], ['nonsensitive(null)', null], 'nonsensitive()'],
  file: [['file("a")', 'content of a'], ['length(file("x"))', 12], 'file("bin")'],
  fileexists: [['fileexists("a")', true], ['fileexists("b")', false], 'fileexists(null)'],
  filebase64: [['filebase64("bin")', '/wA='], ['base64decode(filebase64("a"))', 'content of a'], 'filebase64("no")'],
}

test('the list of functions is closed', () => {
  expect([...FUNCTIONS.keys()].sort()).toEqual(Object.keys(CASES).sort())
})

describe('runbook#34 two good cases and an error of every function', () => {
  test.each(Object.entries(CASES))('%s', (_, [first, second, bad]) => {
    for (const [text, value] of [first, second]) expect(plain(evaluate(parseExpression(text), scope))).toEqual(value)
    expect(failureOf(bad, {}, scope)).toMatchObject({ code: 'expression_error' })
  })
})

test('split by nothing keeps characters whole', () => {
  expect(resultOf('split("", "a😀")')).toEqual(['a', '😀'])
  expect(resultOf('split("", "")')).toEqual([])
})

test('an error points at the argument', () => {
  expect(failureOf('1 + length(split(",", [1]))').range.text).toBe('[1]')
  expect(failureOf('upper("a", "b")').message).toBe('upper() takes 1 argument, not 2')
})

test('files need a scope that has them', () => {
  expect(failureOf('file("a")').message).toBe('files are not available here')
})

test('sensitive() tells the scope', () => {
  const concealed: unknown[] = []
  evaluate(parseExpression('upper(sensitive("a"))'), { ...constantScope(), conceal: (value) => concealed.push(value) })
  expect(concealed).toEqual(['a'])
})

test('sort is by code points', () => {
  expect(resultOf('toset(["b", 1, true, null])'.replace('toset', 'distinct'))).toEqual(['b', 1, true, null])
})
