import { FunctionError } from '../errors.ts'
import { compileRegex, RegexSyntaxError, type Match, type Regex } from '../regex/index.ts'
import { countGraphemes, graphemes } from '../source.ts'
import { isList, mapOf, toText, type Value } from '../values.ts'
import { atLeast, between, fixed, type Arguments, type FunctionTable } from './arguments.ts'
import { format } from './format.ts'

/** Contract: runbook.md 3.3, group text. Characters are grapheme clusters. */
export const TEXT_FUNCTIONS: FunctionTable = {
  upper: fixed(1, (a) => a.text(0).toUpperCase()),
  lower: fixed(1, (a) => a.text(0).toLowerCase()),
  title: fixed(1, (a) => a.text(0).replace(/(?<![\p{L}\p{N}_])\p{L}/gu, (letter) => letter.toUpperCase())),
  strrev: fixed(1, (a) => [...graphemes(a.text(0))].toReversed().join('')),
  chomp: fixed(1, (a) => chomp(a.text(0))),
  trimspace: fixed(1, (a) => a.text(0).trim()),
  trim: fixed(2, (a) => trim(a.text(0), a.text(1))),
  trimprefix: fixed(2, (a) => (a.text(0).startsWith(a.text(1)) ? a.text(0).slice(a.text(1).length) : a.text(0))),
  trimsuffix: fixed(2, (a) =>
    a.text(0).endsWith(a.text(1)) ? a.text(0).slice(0, a.text(0).length - a.text(1).length) : a.text(0),
  ),
  startswith: fixed(2, (a) => a.text(0).startsWith(a.text(1))),
  endswith: fixed(2, (a) => a.text(0).endsWith(a.text(1))),
  strcontains: fixed(2, (a) => a.text(0).includes(a.text(1))),
  replace: fixed(3, (a) => {
    const parts = a.text(0).split(a.text(1))
    return joined(a, parts, a.text(2))
  }),
  substr: fixed(3, (a) => substring(a.text(0), a.integer(1), a.integer(2))),
  split: fixed(2, (a) => (a.text(0) === '' ? [...a.text(1)] : a.text(1).split(a.text(0)))),
  join: atLeast(2, (a) => joined(a, a.rest(1, (i) => a.texts(i)).flat(), a.text(0))),
  indent: fixed(2, (a) => {
    const lines = a.text(1).split('\n')
    const blanks = a.integer(0, 0)
    a.budget.text(blanks * lines.length)
    return lines.join(`\n${' '.repeat(blanks)}`)
  }),
  format: atLeast(1, (a) => format(a.text(0), a.values.slice(1), a.budget)),
  formatlist: atLeast(1, formatList),
  regex: fixed(2, (a) => {
    const { regex, match } = firstMatch(a)
    if (!match) throw new FunctionError('the pattern matches nowhere', 1)
    return matchValue(regex, match)
  }),
  regexall: fixed(2, (a) => {
    const regex = compile(a, 0)
    return [...regex.matches(subject(a, 1), a.budget)].map((match) => matchValue(regex, match))
  }),
  regexreplace: between(3, 3, (a) => {
    const regex = compile(a, 1)
    const text = subject(a, 0)
    const template = a.text(2)
    let result = ''
    let copied = 0
    for (const match of regex.matches(text, a.budget)) {
      result += text.slice(copied, match.start) + expand(template, regex, match)
      copied = match.end
      a.budget.text(result.length)
    }
    return result + text.slice(copied)
  }),
}

function chomp(text: string): string {
  let end = text.length
  while (end > 0 && (text[end - 1] === '\n' || text[end - 1] === '\r')) end--
  return text.slice(0, end)
}

function trim(text: string, characters: string): string {
  const set = new Set(characters)
  const points = [...text]
  let from = 0
  let to = points.length
  while (from < to && set.has(points[from] ?? '')) from++
  while (to > from && set.has(points[to - 1] ?? '')) to--
  return points.slice(from, to).join('')
}

/** A negative offset counts from the end; length -1 means the rest. */
function substring(text: string, offset: number, length: number): string {
  if (length < -1) throw new FunctionError('the length is -1 or more', 2)
  const parts = [...graphemes(text)]
  const from = offset < 0 ? Math.max(0, countGraphemes(text) + offset) : offset
  return parts.slice(from, length === -1 ? undefined : from + length).join('')
}

function joined(a: Arguments, parts: readonly string[], separator: string): string {
  let length = separator.length * Math.max(0, parts.length - 1)
  for (const part of parts) length += part.length
  a.budget.text(length)
  return parts.join(separator)
}

/** Lists among the arguments run in step; other values stand for every element. */
function formatList(a: Arguments): Value {
  const args = a.rest(1, (i) => (typeof a.any(i) === 'object' && a.any(i) !== null ? a.list(i) : a.any(i)))
  const lists = args.filter(isList)
  const length = lists[0]?.length ?? 1
  if (lists.some((list) => list.length !== length)) throw new FunctionError('the lists differ in length')
  return Array.from({ length }, (_, i) =>
    format(
      a.text(0),
      args.map((argument) => (isList(argument) ? (argument[i] ?? null) : argument)),
      a.budget,
    ),
  )
}

const MAX_SUBJECT = 1024 * 1024

function subject(a: Arguments, index: number): string {
  const text = a.text(index)
  if (Buffer.byteLength(text) > MAX_SUBJECT) throw new FunctionError('the text is larger than 1 MiB', index)
  return text
}

function compile(a: Arguments, index: number): Regex {
  try {
    return compileRegex(a.text(index))
  } catch (error) {
    if (error instanceof RegexSyntaxError) throw new FunctionError(error.message, index)
    throw error
  }
}

function firstMatch(a: Arguments): { regex: Regex; match: Match | undefined } {
  const regex = compile(a, 0)
  for (const match of regex.matches(subject(a, 1), a.budget)) return { regex, match }
  return { regex, match: undefined }
}

/** The text without groups, a list of groups, or a map of named groups. */
function matchValue({ names }: Regex, { groups }: Match): Value {
  if (groups.length === 1) return groups[0] ?? null
  const named = names.flatMap((name, i) => (name === undefined ? [] : [[name, groups[i] ?? null] as const]))
  if (named.length === 0) return groups.slice(1).map((group) => group ?? null)
  if (named.length < groups.length - 1) throw new FunctionError('name all groups of the pattern or none', 0)
  return mapOf(named)
}

/** `$1`, `${1}`, `$name`, `${name}` and `$$` of a replacement. */
function expand(template: string, { names }: Regex, { groups }: Match): string {
  return template.replace(/\$(?:\$|(\w+)|\{(\w+)\})/g, (whole, bare?: string, braced?: string) => {
    const name = bare ?? braced
    if (name === undefined) return whole.slice(1)
    const index = /^\d+$/.test(name) ? Number(name) : names.indexOf(name)
    return toText(groups[index] ?? '') ?? ''
  })
}
