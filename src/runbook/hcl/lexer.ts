import { SyntaxFault } from './diagnostics.ts'
import type { Source, SourceRange } from './source.ts'

// prettier-ignore
const PUNCTUATION = [
  '{', '}', '[', ']', '(', ')', ',', '.', ':', '?', '=', '!', '<', '>', '+', '-', '*', '/', '%',
  '==', '!=', '<=', '>=', '&&', '||', '=>', '::', '...', '~}',
] as const

/** `quote` is only the opening `"`, `heredoc` only the `<<`: templates are read by template.ts. */
export type TokenKind =
  (typeof PUNCTUATION)[number] | 'identifier' | 'number' | 'quote' | 'heredoc' | 'newline' | 'eof' | 'invalid'

/** Longest first, by first character code. */
const BY_FIRST = new Map<number, (typeof PUNCTUATION)[number][]>()
for (const text of [...PUNCTUATION].sort((a, b) => b.length - a.length)) {
  const code = text.charCodeAt(0)
  BY_FIRST.set(code, [...(BY_FIRST.get(code) ?? []), text])
}

const NEWLINE = 10
const RETURN = 13
const SPACE = 32
const TAB = 9
const QUOTE = 34
const HASH = 35
const STAR = 42
const DASH = 45
const DOT = 46
const SLASH = 47
const LESS = 60

const isDigit = (code: number): boolean => code >= 48 && code <= 57

/** A letter or underscore of ASCII; beyond it, the Unicode property decides. */
const isAsciiStart = (code: number): boolean => (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 95

const ID_START = /^\p{ID_Start}/u
const ID_CONTINUE = /^\p{ID_Continue}/u

const HINTS: Record<string, string> = {
  "'": 'strings stand in double quotes',
  '`': 'use a heredoc (<<EOT) for text over several lines',
  '“': 'use the straight quote "',
  '”': 'use the straight quote "',
  $: 'variables are written without $; ${ } stands inside of quotes',
  ';': 'put each argument on its own line',
  '&': 'the logical operator is &&',
  '|': 'the logical operator is ||',
  '^': 'use pow(base, exponent)',
}

/** Reads one token at a time; `seek` lets the template reader take over in between. */
export class Lexer {
  kind: TokenKind = 'newline'
  start: number
  end: number
  readonly source: Source
  private readonly text: string

  constructor(source: Source) {
    this.source = source
    this.text = source.text
    this.start = this.end = source.start
  }

  /** The next token is read from `offset`. */
  seek(offset: number): void {
    this.end = offset
  }

  get value(): string {
    return this.text.slice(this.start, this.end)
  }

  range(): SourceRange {
    return this.source.range(this.start, this.end)
  }

  /** Moves to the next token, comments and blanks skipped. An invalid character is a token of kind `invalid`. */
  next(): void {
    this.skipBlanks()
    const { text } = this
    const start = (this.start = this.end)
    if (start >= text.length) return this.finish('eof', start)
    const code = text.charCodeAt(start)
    if (code === NEWLINE) return this.finish('newline', start + 1)
    if (code === RETURN && text.charCodeAt(start + 1) === NEWLINE) return this.finish('newline', start + 2)
    if (code === QUOTE) return this.finish('quote', start + 1)
    if (isDigit(code)) return this.number()
    if (isAsciiStart(code) || code > 127) {
      const end = identifierEnd(text, start)
      if (end > start) return this.finish('identifier', end)
    }
    if (code === LESS && text.charCodeAt(start + 1) === LESS) return this.finish('heredoc', start + 2)
    for (const punctuation of BY_FIRST.get(code) ?? []) {
      if (text.startsWith(punctuation, start)) return this.finish(punctuation, start + punctuation.length)
    }
    this.finish('invalid', start + String.fromCodePoint(text.codePointAt(start) ?? 0).length)
  }

  /** The fault of an `invalid` token. */
  invalid(): SyntaxFault {
    const { value } = this
    return new SyntaxFault('RB102', `invalid character ${JSON.stringify(value)}`, this.range(), HINTS[value])
  }

  private finish(kind: TokenKind, end: number): void {
    this.kind = kind
    this.end = end
  }

  private skipBlanks(): void {
    const { text } = this
    let at = this.end
    for (;;) {
      const code = text.charCodeAt(at)
      if (code === SPACE || code === TAB) at++
      else if (code === HASH || (code === SLASH && text.charCodeAt(at + 1) === SLASH)) at = lineEnd(text, at)
      else if (code === SLASH && text.charCodeAt(at + 1) === STAR) at = this.blockComment(at)
      else break
    }
    this.end = at
  }

  private blockComment(at: number): number {
    const close = this.text.indexOf('*/', at + 2)
    if (close >= 0) return close + 2
    this.end = this.text.length
    throw new SyntaxFault('RB107', 'comment without closing */', this.source.range(at, at + 2))
  }

  private number(): void {
    const { text, start } = this
    let end = digitsEnd(text, start)
    if (text.charCodeAt(end) === DOT && isDigit(text.charCodeAt(end + 1))) end = digitsEnd(text, end + 1)
    if (/[eE]/.test(text.charAt(end))) {
      const digits = /[+-]/.test(text.charAt(end + 1)) ? end + 2 : end + 1
      if (isDigit(text.charCodeAt(digits))) end = digitsEnd(text, digits)
    }
    this.finish('number', end)
    const after = identifierEnd(text, end)
    if (after > end) {
      this.end = after
      throw new SyntaxFault('RB112', `invalid number ${this.value.slice(0, 40)}`, this.range())
    }
  }
}

/** The end of the identifier at `start`; `start` itself when there is none. Dashes belong to identifiers. */
export function identifierEnd(text: string, start: number): number {
  let at = start
  for (;;) {
    const code = text.charCodeAt(at)
    if (isAsciiStart(code) || (at > start && (isDigit(code) || code === DASH))) at++
    else if (code > 127) {
      const character = String.fromCodePoint(text.codePointAt(at) ?? 0)
      if (!(at === start ? ID_START : ID_CONTINUE).test(character)) return at
      at += character.length
    } else return at
  }
}

function digitsEnd(text: string, start: number): number {
  let at = start
  while (isDigit(text.charCodeAt(at))) at++
  return at
}

/** Where the line end at or behind `at` begins: at its `\n`, the `\r` before it left to the caller's scan. */
export function lineEnd(text: string, at: number): number {
  const newline = text.indexOf('\n', at)
  if (newline < 0) return text.length
  return newline > at && text.charCodeAt(newline - 1) === RETURN ? newline - 1 : newline
}
