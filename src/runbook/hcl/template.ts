import type { Expression, ForDirective, IfDirective, Template, TemplatePart, TextPart } from './ast.ts'
import { didYouMean, SyntaxFault } from './diagnostics.ts'
import { identifierEnd, lineEnd } from './lexer.ts'
import type { ExpressionParser } from './parser-expressions.ts'
import { graphemes, type SourceRange } from './source.ts'

type Directive =
  | { kind: 'openIf'; condition: Expression; range: SourceRange }
  | ({ kind: 'openFor'; range: SourceRange } & Pick<ForDirective, 'keyName' | 'valueName' | 'collection'>)
  | { kind: 'else' | 'endif' | 'endfor'; range: SourceRange }

/** A template before directives find their ends. */
type Piece = TextPart | { kind: 'interpolation'; value: Expression; range: SourceRange } | Directive

const DIRECTIVES = ['if', 'else', 'endif', 'for', 'endfor']

const QUOTE = 34
const DOLLAR = 36
const PERCENT = 37
const BACKSLASH = 92
const BRACE = 123
const NEWLINE = 10

/** `"…"`; the lexer stands at the opening quote. */
export function parseQuoted(parser: ExpressionParser): Template {
  const { lexer, source } = parser
  const open = lexer.start
  const pieces: Piece[] = []
  const reader = new PieceReader(parser, pieces, lexer.end)
  for (;;) {
    const code = source.text.charCodeAt(reader.at)
    if (code === QUOTE) break
    if (code === NEWLINE || Number.isNaN(code)) {
      const end = lineEnd(source.text, open)
      lexer.seek(Math.max(reader.at, end))
      parser.consumed = reader.at
      throw new SyntaxFault(
        'RB103',
        'unterminated string',
        source.range(open, Math.max(open + 1, end)),
        'use a heredoc for text over several lines',
      )
    }
    if (code === BACKSLASH) reader.escape()
    else reader.step(code)
  }
  reader.endText()
  return finish(parser, pieces, open, reader.at + 1)
}

/** `<<NAME` or `<<-NAME` up to the line that holds only the name; the lexer stands at `<<`. */
export function parseHeredoc(parser: ExpressionParser): Template {
  const { lexer, source } = parser
  const { text } = source
  const open = lexer.start
  const flush = text[lexer.end] === '-'
  const nameStart = flush ? lexer.end + 1 : lexer.end
  const nameEnd = identifierEnd(text, nameStart)
  const opener = source.range(open, nameEnd)
  const name = text.slice(nameStart, nameEnd)
  const newline = lineEnd(text, nameEnd)
  if (name === '' || newline !== nameEnd) {
    throw new SyntaxFault('RB104', 'a heredoc starts with <<NAME at the end of a line', opener)
  }
  const pieces: Piece[] = []
  const reader = new PieceReader(parser, pieces, text.indexOf('\n', newline) + 1 || text.length)
  let lineStart = true
  for (;;) {
    const end = lineStart ? terminator(text, reader.at, name) : undefined
    if (end !== undefined) {
      reader.endText()
      if (flush) dedent(pieces)
      return finish(parser, pieces, open, end)
    }
    if (reader.at >= text.length) {
      lexer.seek(text.length)
      parser.consumed = text.length
      throw new SyntaxFault('RB104', `heredoc without a closing line ${name}`, opener)
    }
    const code = text.charCodeAt(reader.at)
    reader.step(code)
    lineStart = code === NEWLINE
    if (lineStart) reader.endText()
  }
}

/** The end of the terminator when the line at `at` is one. */
function terminator(text: string, at: number, name: string): number | undefined {
  while (text[at] === ' ' || text[at] === '\t') at++
  if (!text.startsWith(name, at)) return undefined
  const end = at + name.length
  let rest = end
  while (text[rest] === ' ' || text[rest] === '\t') rest++
  if (text[rest] === '\r') rest++
  return rest >= text.length || text[rest] === '\n' ? end : undefined
}

/** Collects the pieces of one template; text runs end at line ends of heredocs and at interpolations. */
class PieceReader {
  at: number
  private readonly parser: ExpressionParser
  private readonly pieces: Piece[]
  private value = ''
  private from: number
  /** Start of the run that `value` doesn't hold yet. */
  private run: number
  /** The last sequence closed with `~}`. */
  private strip = false

  constructor(parser: ExpressionParser, pieces: Piece[], at: number) {
    this.parser = parser
    this.pieces = pieces
    this.at = this.from = this.run = at
  }

  /** Takes the character at the cursor, or the whole sequence that it starts. */
  step(code: number): void {
    const { text } = this.parser.source
    if (code !== DOLLAR && code !== PERCENT) {
      this.at++
      return
    }
    if (text.charCodeAt(this.at + 1) === BRACE) return this.sequence(code === DOLLAR)
    if (text.charCodeAt(this.at + 1) === code && text.charCodeAt(this.at + 2) === BRACE) {
      return this.replace(3, text.slice(this.at + 1, this.at + 3))
    }
    this.at++
  }

  escape(): void {
    const { source } = this.parser
    const match = ESCAPE.exec(source.text.slice(this.at, this.at + 10))
    const simple = SIMPLE_ESCAPES[source.text.charAt(this.at + 1)]
    const point = match ? Number.parseInt(match[0].slice(2), 16) : undefined
    if (simple !== undefined) return this.replace(2, simple)
    if (match && point !== undefined && point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff)) {
      return this.replace(match[0].length, String.fromCodePoint(point))
    }
    const range = source.range(this.at, Math.min(this.at + 2, lineEnd(source.text, this.at)))
    throw new SyntaxFault(
      'RB106',
      `bad escape ${range.text}`,
      range,
      'known are \\n \\r \\t \\" \\\\ \\uNNNN \\UNNNNNNNN',
    )
  }

  endText(): void {
    const { source } = this.parser
    let value = this.value + source.text.slice(this.run, this.at)
    if (this.at > this.from) {
      if (source.text.startsWith('\r\n', this.at - 2)) value = `${value.slice(0, -2)}\n`
      if (this.strip) value = value.trimStart()
      // HCL normalises strings, so that equal-looking texts are equal
      this.pieces.push({ kind: 'text', value: value.normalize('NFC'), range: source.range(this.from, this.at) })
      this.strip = false
    }
    this.value = ''
    this.from = this.run = this.at
  }

  private replace(length: number, value: string): void {
    this.value += this.parser.source.text.slice(this.run, this.at) + value
    this.at += length
    this.run = this.at
  }

  /** `${…}` or `%{…}` at the cursor. */
  private sequence(interpolation: boolean): void {
    const { parser, pieces } = this
    const { source, lexer } = parser
    const open = this.at
    this.endText()
    this.strip = false
    const stripBefore = source.text[open + 2] === '~'
    const last = pieces.at(-1)
    if (stripBefore && last?.kind === 'text' && last.range.to === open) {
      pieces[pieces.length - 1] = { ...last, value: last.value.trimEnd() }
    }
    parser.consumed = open + (stripBefore ? 3 : 2)
    lexer.seek(parser.consumed)
    lexer.next()
    const { value: piece, end, strip } = parser.embedded(open, () => this.content(interpolation))
    pieces.push({ ...piece, range: source.range(open, end) })
    this.at = this.from = this.run = end
    this.strip = strip
  }

  private content(interpolation: boolean): Piece {
    const { parser } = this
    if (interpolation) {
      const value = parser.expression()
      return { kind: 'interpolation', value, range: value.range }
    }
    const { name, range } = parser.identifier('a template directive')
    switch (name) {
      case 'if':
        return { kind: 'openIf', condition: parser.expression(), range }
      case 'for':
        return { kind: 'openFor', ...parser.forHeader(), range }
      case 'else':
      case 'endif':
      case 'endfor':
        return { kind: name, range }
      default:
        throw new SyntaxFault('RB115', `unknown template directive "${name}"`, range, didYouMean(name, DIRECTIVES).hint)
    }
  }
}

const ESCAPE = /^\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})/
const SIMPLE_ESCAPES: Record<string, string> = { n: '\n', r: '\r', t: '\t', '"': '"', '\\': '\\' }

/** Takes the smallest indentation of all lines off each; blank lines neither count nor change. */
function dedent(pieces: Piece[]): void {
  let least = Number.POSITIVE_INFINITY
  const starts: { index: number; piece: TextPart }[] = []
  let lineStart = true
  for (const [index, piece] of pieces.entries()) {
    // the source text, since strip markers must not change what counts as a line
    const text = piece.kind === 'text' ? piece.range.text : undefined
    if (lineStart && !(text?.trim() === '' && text.endsWith('\n'))) {
      if (piece.kind === 'text') starts.push({ index, piece })
      least = Math.min(least, text === undefined ? 0 : indentation(text).length)
    }
    lineStart = text?.endsWith('\n') ?? false
  }
  for (const { index, piece } of starts) {
    const cut = indentation(piece.value).slice(0, least).join('').length
    pieces[index] = { ...piece, value: piece.value.slice(cut) }
  }
}

const indentation = (text: string): string[] => [...graphemes(text.slice(0, text.length - text.trimStart().length))]

/** Joins texts, gives each directive its body, and moves the lexer behind the template. */
function finish(parser: ExpressionParser, pieces: readonly Piece[], from: number, to: number): Template {
  const range = parser.source.range(from, to)
  const { parts, heights } = assemble(pieces)
  const height = parser.height(range, heights)
  parser.consumed = to
  parser.lexer.seek(to)
  parser.lexer.next()
  return { kind: 'template', parts, range, height }
}

interface OpenDirective {
  opener: Extract<Directive, { kind: 'openIf' | 'openFor' }>
  body: TemplatePart[]
  else?: TemplatePart[]
}

/** The tree of the pieces, and the heights of its expressions with the directives around each. */
function assemble(pieces: readonly Piece[]): { parts: TemplatePart[]; heights: { height: number }[] } {
  const parts: TemplatePart[] = []
  const heights: { height: number }[] = []
  const open: OpenDirective[] = []
  let target = parts
  for (const piece of pieces) {
    const top = open.at(-1)
    switch (piece.kind) {
      case 'text':
        appendText(target, piece)
        break
      case 'interpolation':
        heights.push({ height: piece.value.height + open.length })
        target.push(piece)
        break
      case 'openIf':
      case 'openFor':
        open.push({ opener: piece, body: (target = []) })
        heights.push({ height: (piece.kind === 'openIf' ? piece.condition : piece.collection).height + open.length })
        break
      case 'else':
        if (top?.opener.kind !== 'openIf' || top.else) throw unmatched(piece.kind, piece.range)
        target = top.else = []
        break
      default: {
        if (!top || top.opener.kind !== (piece.kind === 'endif' ? 'openIf' : 'openFor'))
          throw unmatched(piece.kind, piece.range)
        open.pop()
        const outer = open.at(-1)
        target = outer ? (outer.else ?? outer.body) : parts
        target.push(close(top, piece.range))
      }
    }
  }
  const unclosed = open.at(-1)
  if (unclosed) {
    const word = unclosed.opener.kind === 'openIf' ? 'if' : 'for'
    throw new SyntaxFault('RB115', `%{ ${word} } without %{ end${word} }`, unclosed.opener.range)
  }
  return { parts, heights }
}

const unmatched = (word: string, range: SourceRange): SyntaxFault =>
  new SyntaxFault('RB115', `unexpected %{ ${word} }`, range)

function appendText(target: TemplatePart[], piece: TextPart): void {
  const last = target.at(-1)
  if (last?.kind !== 'text') target.push(piece)
  else {
    const range = last.range.source.range(last.range.from, piece.range.to)
    target[target.length - 1] = { kind: 'text', value: last.value + piece.value, range }
  }
}

function close({ opener, body, else: otherwise = [] }: OpenDirective, end: SourceRange): IfDirective | ForDirective {
  const range = end.source.range(opener.range.from, end.to)
  if (opener.kind === 'openIf') return { kind: 'if', condition: opener.condition, then: body, else: otherwise, range }
  const { keyName, valueName, collection } = opener
  return { kind: 'for', ...(keyName !== undefined && { keyName }), valueName, collection, body, range }
}
