import { NestingFault, SyntaxFault, type Diagnostic } from './diagnostics.ts'
import { Lexer, type TokenKind } from './lexer.ts'
import type { Source, SourceRange } from './source.ts'

/** Levels of nesting, left-leaning chains counted. Contract: runbook.md 13. */
export const MAX_NESTING = 200

export const CLOSERS: Partial<Record<TokenKind, string>> = { ')': '(', ']': '[', '}': '{', '~}': '{' }

/** Tokens one at a time, with brackets, nesting and faults: what every part of the grammar needs. */
export class TokenReader {
  readonly source: Source
  readonly lexer: Lexer
  /** End of the last token taken. */
  consumed: number
  private depth = 0
  /** False inside brackets and interpolations, where newlines are blanks. */
  protected newlines = true

  constructor(source: Source) {
    this.source = source
    this.lexer = new Lexer(source)
    this.consumed = source.start
  }

  get level(): number {
    return this.depth
  }

  /** The kind of the next token. */
  peek(): TokenKind {
    if (!this.newlines) while (this.lexer.kind === 'newline') this.lexer.next()
    return this.lexer.kind
  }

  take(): void {
    this.consumed = this.lexer.end
    this.lexer.next()
  }

  fault(
    code: Diagnostic['code'],
    message: string,
    range: SourceRange = this.lexer.range(),
    hint?: string,
  ): SyntaxFault {
    return this.lexer.kind === 'invalid' ? this.lexer.invalid() : new SyntaxFault(code, message, range, hint)
  }

  /** Forgets what a fault interrupted, back to the `level` of the body that goes on. */
  reset(level: number): void {
    this.depth = level
    this.newlines = true
  }

  /** Runs `parse` one level deeper. */
  nested<T>(parse: () => T): T {
    if (++this.depth > MAX_NESTING) throw this.tooDeep(this.lexer.range())
    const result = parse()
    this.depth--
    return result
  }

  /** The height of a node over `parts`. */
  height(range: SourceRange, parts: readonly { height: number }[]): number {
    let height = 0
    for (const part of parts) if (part.height > height) height = part.height
    if (height >= MAX_NESTING) throw this.tooDeep(this.source.range(range.from, range.from + 1))
    return height + 1
  }

  /** A name, its text normalised. */
  identifier(what: string): { name: string; range: SourceRange } {
    if (this.peek() !== 'identifier') throw this.fault('RB111', `expected ${what}, found ${this.found()}`)
    const name = this.lexer.value.normalize('NFC')
    const range = this.lexer.range()
    this.take()
    return { name, range }
  }

  /** What stands at the cursor, for a message. */
  found(): string {
    const { kind, value } = this.lexer
    if (kind === 'eof') return 'the end of the file'
    if (kind === 'newline') return 'the end of the line'
    return JSON.stringify(value.slice(0, 40))
  }

  private tooDeep(range: SourceRange): NestingFault {
    return new NestingFault(
      'RB113',
      `nested deeper than ${MAX_NESTING} levels`,
      range,
      'split the expression with locals',
    )
  }

  protected atWord(word: string): boolean {
    return this.peek() === 'identifier' && this.lexer.value === word
  }

  /** Takes the opening bracket and runs `parse`, which takes the closing one by `close`. */
  protected inBrackets<T>(parse: () => T): T {
    const outer = this.newlines
    this.newlines = false
    this.take()
    const result = parse()
    this.newlines = outer
    this.take()
    return result
  }

  /** Checks the closing bracket, which `inBrackets` takes; its end. */
  protected close(bracket: ')' | ']' | '}', open: SourceRange, separator = ''): number {
    if (this.peek() === bracket) {
      this.consumed = this.lexer.end
      return this.lexer.end
    }
    throw this.unclosed(bracket, open, separator)
  }

  protected unclosed(bracket: string, open: SourceRange, separator: string): SyntaxFault {
    const kind = this.lexer.kind
    if (kind === 'eof' || CLOSERS[kind] !== undefined)
      return this.fault('RB107', `${open.text} without closing ${bracket}`, open)
    return this.fault('RB107', `expected ${separator}"${bracket}", found ${this.found()}`)
  }
}
