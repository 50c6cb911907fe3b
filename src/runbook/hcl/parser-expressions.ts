import type { BinaryOperator, Call, Expression, For, ObjectLiteral, SplatItem } from './ast.ts'
import { SyntaxFault } from './diagnostics.ts'
import type { TokenKind } from './lexer.ts'
import { canonicalNumber } from './numbers.ts'
import type { SourceRange } from './source.ts'
import { parseHeredoc, parseQuoted } from './template.ts'
import { CLOSERS, TokenReader } from './token-reader.ts'

const PRECEDENCE: Partial<Record<TokenKind, number>> = {
  '||': 1,
  '&&': 2,
  '==': 3,
  '!=': 3,
  '<': 4,
  '<=': 4,
  '>': 4,
  '>=': 4,
  '+': 5,
  '-': 5,
  '*': 6,
  '/': 6,
  '%': 6,
}

const isBinary = (kind: TokenKind): kind is BinaryOperator => PRECEDENCE[kind] !== undefined

/** Recursive descent over expressions. Every method leaves the lexer at the first token it did not take. */
export class ExpressionParser extends TokenReader {
  expression(): Expression {
    return this.nested(() => {
      const condition = this.binary(1)
      if (this.peek() !== '?') return condition
      this.take()
      const then = this.expression()
      if (this.peek() !== ':') throw this.fault('RB111', `expected ":" and the value for false, found ${this.found()}`)
      this.take()
      const otherwise = this.expression()
      const range = this.source.range(condition.range.from, otherwise.range.to)
      const height = this.height(range, [condition, then, otherwise])
      return { kind: 'conditional', condition, then, else: otherwise, range, height }
    })
  }

  /** The expression between `${` (at `open`) and `}`; the lexer stands before the expression's first token. */
  embedded<T>(open: number, parse: () => T): { value: T; end: number; strip: boolean } {
    const outer = this.newlines
    this.newlines = false
    const value = parse()
    const close = this.peek()
    if (close !== '}' && close !== '~}') {
      const opened = this.source.range(open, open + 2)
      const unclosed =
        close === 'eof' || close === 'quote' || this.source.text.slice(this.consumed, this.lexer.start).includes('\n')
      if (unclosed) throw this.fault('RB105', `unterminated ${opened.text}`, opened)
      throw this.fault(
        'RB111',
        `expected } behind the expression, found ${this.found()}`,
        undefined,
        'write $${ for a literal ${',
      )
    }
    this.newlines = outer
    this.consumed = this.lexer.end
    return { value, end: this.lexer.end, strip: close === '~}' }
  }

  /** `k, v in collection` of `for` in both its forms. */
  forHeader(): { keyName?: string; valueName: string; collection: Expression } {
    const first = this.identifier('a variable name').name
    let second: string | undefined
    if (this.peek() === ',') {
      this.take()
      second = this.identifier('a variable name').name
    }
    if (!this.atWord('in')) throw this.fault('RB111', `expected "in", found ${this.found()}`)
    this.take()
    const collection = this.expression()
    return second === undefined ? { valueName: first, collection } : { keyName: first, valueName: second, collection }
  }

  private binary(minimum: number): Expression {
    let left = this.unary()
    for (;;) {
      const operator = this.peek()
      if (!isBinary(operator)) return left
      const precedence = PRECEDENCE[operator] ?? 0
      if (precedence < minimum) return left
      this.take()
      const right = this.binary(precedence + 1)
      const range = this.source.range(left.range.from, right.range.to)
      left = { kind: 'binary', operator, left, right, range, height: this.height(range, [left, right]) }
    }
  }

  private unary(): Expression {
    const operator = this.peek()
    if (operator !== '!' && operator !== '-') return this.traversal(this.term(), true)
    const from = this.lexer.start
    this.take()
    const operand = this.nested(() => this.unary())
    const range = this.source.range(from, operand.range.to)
    return { kind: 'unary', operator, operand, range, height: this.height(range, [operand]) }
  }

  /** `.name`, `.0`, `[key]` and splats behind `object`; of these an attribute splat takes only the first two along. */
  private traversal(object: Expression, brackets: boolean): Expression {
    for (;;) {
      const kind = this.peek()
      if (kind === '.') object = this.dot(object)
      else if (kind === '[' && brackets) object = this.bracket(object)
      else return object
    }
  }

  private dot(object: Expression): Expression {
    this.take()
    const kind = this.peek()
    if (kind === '*') {
      const star = this.lexer.range()
      this.take()
      return this.splat(object, star, false)
    }
    if (kind === 'number') return this.legacyIndex(object)
    const { name, range: nameRange } = this.identifier('an attribute name')
    const range = this.source.range(object.range.from, nameRange.to)
    return { kind: 'attribute', object, name, nameRange, range, height: this.height(range, [object]) }
  }

  /** `a.0`; the lexer reads `a.0.1` as one number 0.1. */
  private legacyIndex(object: Expression): Expression {
    const digits = this.lexer.value
    if (!/^\d+(\.\d+)?$/.test(digits)) throw this.fault('RB112', `invalid index ${digits}`)
    let from = this.lexer.start
    for (const part of digits.split('.')) {
      const keyRange = this.source.range(from, from + part.length)
      const key: Expression = { kind: 'literal', value: Number(part), range: keyRange, height: 1 }
      const range = this.source.range(object.range.from, keyRange.to)
      object = { kind: 'index', object, key, range, height: this.height(range, [object]) }
      from += part.length + 1
    }
    this.take()
    return object
  }

  private bracket(object: Expression): Expression {
    const open = this.lexer.range()
    return this.inBrackets(() => {
      if (this.peek() === '*') {
        const star = this.lexer.range()
        this.take()
        this.close(']', open)
        return () => this.splat(object, star, true)
      }
      const key = this.expression()
      const range = this.source.range(object.range.from, this.close(']', open))
      return () => ({ kind: 'index' as const, object, key, range, height: this.height(range, [object, key]) })
    })()
  }

  private splat(object: Expression, star: SourceRange, brackets: boolean): Expression {
    const item: SplatItem = { kind: 'splatItem', range: star, height: 1 }
    const each = this.nested(() => this.traversal(item, brackets))
    const range = this.source.range(object.range.from, this.consumed)
    return { kind: 'splat', object, each, range, height: this.height(range, [object, each]) }
  }

  private term(): Expression {
    const kind = this.peek()
    switch (kind) {
      case 'number': {
        const range = this.lexer.range()
        const value = canonicalNumber(Number(this.lexer.value))
        if (value === undefined)
          throw this.fault('RB112', 'number out of range', range, 'integers reach from -(2^53-1) to 2^53-1')
        this.take()
        return { kind: 'literal', value, range, height: 1 }
      }
      case 'quote':
        return parseQuoted(this)
      case 'heredoc':
        return parseHeredoc(this)
      case '(':
        return this.parenthesised()
      case '[':
        return this.list()
      case '{':
        return this.object()
      case 'identifier':
        return this.named()
      default: {
        const stray = CLOSERS[kind] !== undefined && this.newlines
        if (stray) throw this.fault('RB107', `unmatched ${this.lexer.value}`)
        throw this.fault('RB111', `expected an expression, found ${this.found()}`)
      }
    }
  }

  private parenthesised(): Expression {
    const open = this.lexer.range()
    return this.inBrackets(() => {
      const inner = this.expression()
      this.close(')', open)
      return inner
    })
  }

  private named(): Expression {
    let { name, range } = this.identifier('a name')
    const constant = name === 'true' ? true : name === 'false' ? false : name === 'null' ? null : undefined
    if (constant !== undefined) return { kind: 'literal', value: constant, range, height: 1 }
    while (this.peek() === '::') {
      this.take()
      const part = this.identifier('a function name')
      name += `::${part.name}`
      range = this.source.range(range.from, part.range.to)
    }
    if (this.peek() === '(') return this.call(name, range)
    if (name.includes('::')) throw this.fault('RB111', `expected "(" behind ${name}`)
    return { kind: 'variable', name, range, height: 1 }
  }

  private call(name: string, nameRange: SourceRange): Call {
    const open = this.lexer.range()
    return this.inBrackets(() => {
      const args: Expression[] = []
      let spread = false
      while (this.peek() !== ')') {
        args.push(this.expression())
        if (this.peek() === '...') {
          spread = true
          this.take()
          break
        }
        if (this.peek() !== ',') break
        this.take()
      }
      const range = this.source.range(nameRange.from, this.close(')', open, spread ? '' : '"," or '))
      return { kind: 'call', name, nameRange, arguments: args, spread, range, height: this.height(range, args) }
    })
  }

  private list(): Expression {
    const open = this.lexer.range()
    return this.inBrackets(() => {
      if (this.atWord('for')) return this.for(open, ']')
      const items: Expression[] = []
      while (this.peek() !== ']') {
        items.push(this.expression())
        if (this.peek() !== ',') break
        this.take()
      }
      const range = this.source.range(open.from, this.close(']', open, '"," or '))
      return { kind: 'tuple', items, range, height: this.height(range, items) }
    })
  }

  private for(open: SourceRange, bracket: ']' | '}'): For {
    this.take()
    const header = this.forHeader()
    if (this.peek() !== ':') throw this.fault('RB111', `expected ":" behind the collection, found ${this.found()}`)
    this.take()
    let value = this.expression()
    let key: Expression | undefined
    let group = false
    if (bracket === '}') {
      if (this.peek() !== '=>') throw this.fault('RB111', `expected "=>" between key and value, found ${this.found()}`)
      this.take()
      key = value
      value = this.expression()
      if (this.peek() === '...') {
        group = true
        this.take()
      }
    }
    let condition: Expression | undefined
    if (this.atWord('if')) {
      this.take()
      condition = this.expression()
    }
    const range = this.source.range(open.from, this.close(bracket, open))
    const parts = [header.collection, value, ...(key ? [key] : []), ...(condition ? [condition] : [])]
    const height = this.height(range, parts)
    return { kind: 'for', ...header, ...(key && { key }), value, group, ...(condition && { condition }), range, height }
  }

  private object(): Expression {
    const open = this.lexer.range()
    return this.inBrackets(() => (this.atWord('for') ? this.for(open, '}') : this.entries(open)))
  }

  /** Entries end at a comma or at the end of the line. */
  private entries(open: SourceRange): ObjectLiteral {
    const entries: { key: Expression; value: Expression }[] = []
    this.newlines = true
    for (;;) {
      while (this.peek() === 'newline') this.take()
      if (this.peek() === '}') break
      const key = this.objectKey(open)
      const separator = this.peek()
      if (separator !== '=' && separator !== ':') throw this.unkeyed(open)
      this.take()
      const value = this.expression()
      entries.push({ key, value })
      const end = this.peek()
      if (end === ',') this.take()
      else if (end !== 'newline' && end !== '}') throw this.unclosed('}', open, '"," or ')
    }
    const range = this.source.range(open.from, this.close('}', open))
    const height = this.height(
      range,
      entries.flatMap(({ key, value }) => [key, value]),
    )
    return { kind: 'object', entries, range, height }
  }

  /** A bare name is its own text; `(name)` is the variable. */
  private objectKey(open: SourceRange): Expression {
    if (this.peek() === 'eof') throw this.unclosed('}', open, '')
    const bare = this.lexer.kind === 'identifier'
    const word = this.lexer.value
    const range = this.lexer.range()
    const key = this.expression()
    if (bare && key.range.to === range.to && (key.kind === 'variable' || key.kind === 'literal')) {
      const text = word.normalize('NFC')
      return { kind: 'template', parts: [{ kind: 'text', value: text, range }], range, height: 1 }
    }
    if (bare && key.kind === 'attribute') {
      throw new SyntaxFault(
        'RB111',
        'ambiguous key',
        key.range,
        'put an expression in parentheses, or a name in quotes',
      )
    }
    return key
  }

  private unkeyed(open: SourceRange): SyntaxFault {
    if (this.lexer.kind === 'eof') return this.unclosed('}', open, '')
    return this.fault('RB111', `expected "=" behind the key, found ${this.found()}`)
  }
}
