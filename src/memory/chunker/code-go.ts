import { isSpace, lineEnd } from './text.ts'

/**
 * One Cell for the header (all up to the last import), one per top-level declaration with the comments before it; comments
 * after the last one stay with it. Contract: memory.md 5, `code-go`. Undefined when the text is not Go source as far as
 * tokens, brackets and the order of declarations tell.
 */
export function splitGo(source: string): string[] | undefined {
  const declarations = scan(source)
  if (declarations?.[0]?.keyword !== 'package') return undefined
  const header = declarations.findIndex(({ keyword }) => keyword !== 'package' && keyword !== 'import')
  const ends = declarations.slice(header < 0 ? -1 : header - 1).map(({ end }) => end)
  ends[ends.length - 1] = source.length
  return ends.map((end, index) => source.slice(ends[index - 1] ?? 0, end).trim())
}

interface Declaration {
  keyword: string
  end: number
}

/** What the token behind the keyword of a declaration begins with. */
const FOLLOWS: ReadonlyMap<string, RegExp> = new Map([
  ['package', /[\p{L}_]/u],
  ['import', /[\p{L}_."`(]/u],
  ['const', /[\p{L}_(]/u],
  ['var', /[\p{L}_(]/u],
  ['type', /[\p{L}_(]/u],
  ['func', /[\p{L}_(]/u],
])

/** Keywords after which a line end does not end the declaration. */
const UNFINISHED = new Set([...FOLLOWS.keys(), 'struct', 'interface', 'map', 'chan'])
const CLOSES: ReadonlyMap<string, string> = new Map([
  ['(', ')'],
  ['[', ']'],
  ['{', '}'],
])

/** Top-level declarations and where they end: at the line end or `;` where Go ends a statement outside brackets. */
function scan(source: string): Declaration[] | undefined {
  const found: Declaration[] = []
  const brackets: string[] = []
  let keyword: string | undefined
  let previous = ''
  const finish = (end: number): boolean => {
    if (brackets.length > 0 || keyword === undefined || !endsStatement(previous)) return false
    found.push({ keyword, end })
    keyword = undefined
    return true
  }
  for (let at = 0; at < source.length;) {
    const end = tokenEnd(source, at)
    if (end === undefined) return undefined
    const token = source.slice(at, end)
    if (token === '\n') finish(at)
    else if (token === ';' && brackets.length === 0) {
      if (keyword !== undefined && !finish(end)) return undefined
    } else if (!isSpace(token.charCodeAt(0)) && !isComment(token)) {
      if (keyword === undefined) {
        if (!FOLLOWS.has(token)) return undefined
        keyword = token
      } else if (previous === keyword && brackets.length === 0 && !FOLLOWS.get(keyword)?.test(token.slice(0, 2))) {
        return undefined
      }
      const closing = CLOSES.get(token)
      if (closing) brackets.push(closing)
      else if (')]}'.includes(token) && brackets.pop() !== token) return undefined
      previous = token
    }
    at = end
  }
  return finish(source.length) || (keyword === undefined && brackets.length === 0) ? found : undefined
}

const isComment = (token: string): boolean => token.startsWith('//') || token.startsWith('/*')

const endsStatement = (token: string): boolean => /^[\p{L}\p{Nd}_"'`)\]}]/u.test(token) && !UNFINISHED.has(token)

/** End of the token at `at`; undefined when a literal or comment is not closed. */
function tokenEnd(source: string, at: number): number | undefined {
  const first = source.charAt(at)
  if (first === '/') {
    if (source[at + 1] === '/') return lineEnd(source, at, source.length)
    return source[at + 1] === '*' ? behind(source, '*/', at + 2) : at + 1
  }
  if (first === '`') return behind(source, '`', at + 1)
  if (first === '"' || first === "'") return quotedEnd(source, at)
  return isWord(source.charCodeAt(at)) ? wordEnd(source, at) : at + 1
}

function behind(source: string, mark: string, from: number): number | undefined {
  const index = source.indexOf(mark, from)
  return index < 0 ? undefined : index + mark.length
}

function quotedEnd(source: string, open: number): number | undefined {
  for (let at = open + 1; at < source.length && source[at] !== '\n'; at++) {
    if (source[at] === source[open]) return at + 1
    if (source[at] === '\\') at++
  }
  return undefined
}

const POINT = 46
const isDigit = (code: number): boolean => code >= 48 && code <= 57
const isWord = (code: number): boolean =>
  isDigit(code) ||
  (code >= 65 && code <= 90) ||
  code === 95 ||
  (code >= 97 && code <= 122) ||
  (code > 127 && !isSpace(code))

/** Identifiers, keywords and numbers; a number takes its point along (`1.` ends a statement, `.` does not). */
function wordEnd(source: string, start: number): number {
  const point = isDigit(source.charCodeAt(start)) ? POINT : -1
  let at = start + 1
  for (let code = source.charCodeAt(at); isWord(code) || code === point; code = source.charCodeAt(at)) at++
  return at
}
