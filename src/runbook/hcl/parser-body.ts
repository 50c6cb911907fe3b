import type { Attribute, Block, Body, Label } from './ast.ts'
import { constantText } from './ast.ts'
import { DiagnosticList, fileDiagnostic, NestingFault, SyntaxFault, type Diagnostic } from './diagnostics.ts'
import { ExpressionParser } from './parser-expressions.ts'
import { RecoveryScanner } from './recovery.ts'
import { decodeUtf8, Source, type SourceRange } from './source.ts'

/** Contract: runbook.md 13. */
export const MAX_FILE_BYTES = 4 * 1024 * 1024

export interface ParsedFile {
  readonly source: Source
  readonly body: Body
  readonly diagnostics: readonly Diagnostic[]
  /** Diagnostics beyond the first 20. */
  readonly omitted: number
}

/** Parses one HCL file; what is broken is left out and reported. Never throws. Contract: runbook.md 2.1. */
export function parseFile(input: string | Uint8Array, file: string): ParsedFile {
  const decoded = typeof input === 'string' ? { text: input } : decodeUtf8(input)
  const source = new Source(decoded.text, file)
  const list = new DiagnosticList()
  if (Buffer.byteLength(source.text) > MAX_FILE_BYTES) {
    list.add(fileDiagnostic('RB114', 'file larger than 4 MiB', source))
    return { source, body: emptyBody(source.range(0, 0)), diagnostics: list.items, omitted: 0 }
  }
  const lone = /\p{Surrogate}/u.exec(source.text)
  const invalidAt = 'invalidAt' in decoded ? source.text.length : lone?.index
  if (invalidAt !== undefined) {
    const message = 'invalidAt' in decoded ? 'the file is not valid UTF-8' : 'lone surrogate'
    list.add({ level: 'error', code: 'RB101', message, range: source.range(invalidAt, invalidAt) })
    return { source, body: emptyBody(source.range(0, 0)), diagnostics: list.items, omitted: 0 }
  }
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0 // a megabyte of faulty lines takes 2.5 s with stack traces, 0.6 s without
  try {
    const body = new BodyParser(source, list).file()
    return { source, body, diagnostics: list.items, omitted: list.omitted }
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

/** Parses one expression that makes up the whole text. @throws SyntaxFault */
export function parseExpression(text: string, file = '<expression>'): ReturnType<ExpressionParser['expression']> {
  const parser = new ExpressionParser(new Source(text, file))
  parser.lexer.next()
  const expression = parser.expression()
  if (parser.peek() !== 'eof') throw parser.fault('RB111', `expected the end, found ${parser.found()}`)
  return expression
}

const emptyBody = (range: SourceRange): Body => ({ attributes: new Map(), blocks: [], range })

/** Attributes and blocks as they come, still open. */
class BodyBuilder {
  readonly attributes = new Map<string, Attribute>()
  readonly blocks: Block[] = []

  build(range: SourceRange): Body {
    return { attributes: this.attributes, blocks: this.blocks, range }
  }
}

/** A block whose closing brace never came; the file ends here. */
class UnclosedBlock extends SyntaxFault {}

class BodyParser {
  private readonly source: Source
  private readonly list: DiagnosticList
  private readonly parser: ExpressionParser
  private readonly recovery: RecoveryScanner

  constructor(source: Source, list: DiagnosticList) {
    this.source = source
    this.list = list
    this.parser = new ExpressionParser(source)
    this.recovery = new RecoveryScanner(source.text)
  }

  file(): Body {
    const builder = new BodyBuilder()
    try {
      this.first()
      this.items(builder)
    } catch (error) {
      if (!(error instanceof SyntaxFault)) throw error
      this.list.add(error.diagnostic)
    }
    return builder.build(this.source.range(this.source.start, this.source.text.length))
  }

  private first(): void {
    try {
      this.parser.lexer.next()
    } catch (error) {
      this.recover(error, this.source.start, 0)
    }
  }

  /** Items up to the `}` of a block, or the end of the file when `block` is absent. */
  private items(builder: BodyBuilder, block?: SourceRange): void {
    const { level } = this.parser
    for (;;) {
      const start = this.parser.lexer.start
      try {
        const kind = this.parser.peek()
        if (kind === 'newline') this.parser.take()
        else if (kind === 'eof' && !block) return
        else if (kind === 'eof')
          throw new UnclosedBlock('RB107', 'block without closing }', block ?? this.parser.lexer.range())
        else if (kind === '}' && block) return
        else this.item(builder)
      } catch (error) {
        this.recover(error, start, level)
      }
    }
  }

  private item(builder: BodyBuilder): void {
    const { parser } = this
    const kind = parser.peek()
    if (kind !== 'identifier') {
      if (kind === '}' || kind === ']' || kind === ')') throw parser.fault('RB107', `unmatched ${kind}`)
      const hint = kind === 'quote' ? 'names of attributes and blocks have no quotes' : undefined
      throw parser.fault('RB109', `expected an attribute or a block, found ${parser.found()}`, undefined, hint)
    }
    const { name, range } = parser.identifier('a name')
    switch (parser.peek()) {
      case '=':
        this.keep(builder, this.attribute(name, range))
        break
      case '{':
      case 'identifier':
      case 'quote':
        this.block(builder, name, range)
        break
      default:
        throw this.missingEquals(name)
    }
    this.lineEnd()
  }

  private missingEquals(name: string): SyntaxFault {
    const { parser } = this
    const hint = parser.peek() === ':' ? 'write = instead of :' : undefined
    return parser.fault('RB109', `expected "=" or a block behind "${name}", found ${parser.found()}`, undefined, hint)
  }

  /** Something more on a line, which may be an operator of another language. */
  private crowded(message: string): SyntaxFault {
    const { start, end } = this.parser.lexer
    const hint = { and: 'the logical operator is &&', or: 'the logical operator is ||' }[
      this.source.text.slice(start, end)
    ]
    return this.parser.fault('RB110', message, undefined, hint)
  }

  private attribute(name: string, nameRange: SourceRange): Attribute {
    this.parser.take()
    const value = this.parser.expression()
    return { kind: 'attribute', name, nameRange, value, range: this.source.range(nameRange.from, this.parser.consumed) }
  }

  private keep(builder: BodyBuilder, attribute: Attribute): void {
    const first = builder.attributes.get(attribute.name)
    if (!first) {
      builder.attributes.set(attribute.name, attribute)
      return
    }
    this.list.add({
      level: 'error',
      code: 'RB108',
      message: `attribute "${attribute.name}" is defined twice`,
      range: attribute.nameRange,
      related: [{ message: 'first defined at', range: first.nameRange }],
    })
  }

  private lineEnd(): void {
    const { parser } = this
    const kind = parser.peek()
    if (kind === 'newline' || kind === 'eof') return
    if (kind === ',' || kind === 'identifier' || kind === '{') {
      throw this.crowded('each argument and block stands on its own line')
    }
    if (kind === '}' || kind === ']' || kind === ')') throw parser.fault('RB107', `unmatched ${kind}`)
    throw parser.fault('RB111', `expected the end of the line, found ${parser.found()}`)
  }

  private block(builder: BodyBuilder, type: string, typeRange: SourceRange): void {
    const { parser, source } = this
    const labels: Label[] = []
    while (parser.peek() !== '{') labels.push(this.label(type))
    const headerRange = source.range(typeRange.from, labels.at(-1)?.range.to ?? typeRange.to)
    const open = parser.lexer.range()
    parser.take()
    const inner = new BodyBuilder()
    const finish = (): void => {
      const body = inner.build(source.range(open.from, parser.consumed))
      const range = source.range(typeRange.from, parser.consumed)
      builder.blocks.push({ kind: 'block', type, typeRange, labels, headerRange, body, range })
    }
    try {
      if (parser.peek() === 'newline') parser.nested(() => this.items(inner, open))
      else if (parser.peek() !== '}') this.oneLine(inner, open)
    } catch (error) {
      if (error instanceof UnclosedBlock || error instanceof NestingFault) finish()
      throw error
    }
    parser.consumed = parser.lexer.end
    finish()
    parser.lexer.next()
  }

  private label(type: string): Label {
    const { parser } = this
    if (parser.peek() === 'identifier') {
      const { name, range } = parser.identifier('a label')
      return { value: name, range }
    }
    if (parser.peek() !== 'quote') {
      const hint = parser.peek() === 'newline' ? `an argument is written ${type} = value` : undefined
      throw parser.fault('RB109', `expected a label or "{" behind "${type}", found ${parser.found()}`, undefined, hint)
    }
    const expression = parser.expression()
    const value = constantText(expression)
    if (value === undefined) {
      throw new SyntaxFault('RB116', 'a label is constant text', expression.range, 'write $${ for a literal ${')
    }
    return { value, range: expression.range }
  }

  /** `{ name = value }`: the body of a block that begins and ends on one line. */
  private oneLine(builder: BodyBuilder, open: SourceRange): void {
    const { parser } = this
    if (parser.peek() === 'eof') throw new UnclosedBlock('RB107', 'block without closing }', open)
    const { name, range } = parser.identifier('an attribute')
    if (parser.peek() !== '=') {
      while (parser.peek() === 'identifier' || parser.peek() === 'quote') this.label(name)
      if (parser.peek() !== '{') throw parser.fault('RB109', `expected "=" behind "${name}", found ${parser.found()}`)
      const header = this.source.range(range.from, parser.lexer.end)
      throw new SyntaxFault('RB110', 'a block on one line holds no other block', header)
    }
    this.keep(builder, this.attribute(name, range))
    switch (parser.peek()) {
      case '}':
        return
      case ',':
        throw parser.fault('RB110', 'a block on one line holds a single argument')
      case 'newline':
        throw parser.fault('RB110', 'the closing brace of a block on one line stands on the same line')
      case 'identifier':
        throw this.crowded('each argument stands on its own line')
      default:
        throw parser.fault('RB107', `expected "}", found ${parser.found()}`)
    }
  }

  /** Notes the fault and moves behind the broken item that starts at `start`. */
  private recover(error: unknown, start: number, level: number): void {
    if (!(error instanceof SyntaxFault) || error instanceof UnclosedBlock || error instanceof NestingFault) throw error
    this.list.add(error.diagnostic)
    const { parser } = this
    parser.lexer.seek(this.recovery.resume(start, parser.consumed))
    parser.consumed = parser.lexer.end
    parser.reset(level)
    try {
      parser.lexer.next()
    } catch (next) {
      this.recover(next, parser.lexer.start, level)
    }
  }
}
