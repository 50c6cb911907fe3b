import { CharSet, classText, complement, PERL, POSIX, propertyText } from './charset.ts'

export type Assertion = 'textStart' | 'textEnd' | 'lineStart' | 'lineEnd' | 'boundary' | 'noBoundary'

export type RegexNode =
  | { readonly kind: 'set'; readonly set: CharSet }
  | { readonly kind: 'sequence'; readonly items: readonly RegexNode[] }
  | { readonly kind: 'choice'; readonly items: readonly RegexNode[] }
  | {
      readonly kind: 'repeat'
      readonly item: RegexNode
      readonly min: number
      readonly max: number
      readonly greedy: boolean
    }
  | { readonly kind: 'group'; readonly index: number; readonly item: RegexNode }
  | { readonly kind: 'assert'; readonly assertion: Assertion }

export class RegexSyntaxError extends Error {}

interface Flags {
  i: boolean
  m: boolean
  s: boolean
  U: boolean
}

const MAX_REPEAT = 1000
const MAX_DEPTH = 200
// prettier-ignore
const CONTROL: Record<string, number> = { a: 7, f: 12, t: 9, n: 10, r: 13, v: 11 }

/** Parses RE2 syntax. @throws RegexSyntaxError, also for back-references and look-around, which RE2 doesn't have */
export function parseRegex(pattern: string): { node: RegexNode; names: (string | undefined)[] } {
  const parser = new RegexParser(pattern)
  const node = parser.choice()
  parser.expectEnd()
  return { node, names: parser.names }
}

class RegexParser {
  /** Names of groups by number; 0 is the whole match. */
  readonly names: (string | undefined)[] = [undefined]
  private readonly pattern: string
  private at = 0
  private depth = 0
  private flags: Flags = { i: false, m: false, s: false, U: false }
  private quoted = false

  constructor(pattern: string) {
    this.pattern = pattern
  }

  expectEnd(): void {
    if (this.at < this.pattern.length) throw this.error('unmatched )')
  }

  choice(): RegexNode {
    if (++this.depth > MAX_DEPTH) throw this.error('nested too deep')
    const items = [this.sequence()]
    while (!this.quoted && this.eat('|')) items.push(this.sequence())
    this.depth--
    const [only] = items
    return only && items.length === 1 ? only : { kind: 'choice', items }
  }

  private error(message: string): RegexSyntaxError {
    return new RegexSyntaxError(`invalid regular expression: ${message} at character ${this.at + 1}`)
  }

  private eat(text: string): boolean {
    if (!this.pattern.startsWith(text, this.at)) return false
    this.at += text.length
    return true
  }

  private sequence(): RegexNode {
    const items: RegexNode[] = []
    for (;;) {
      const rest = this.pattern[this.at]
      if (rest === undefined || (!this.quoted && (rest === '|' || rest === ')'))) return { kind: 'sequence', items }
      const atom = this.atom()
      if (atom) items.push(this.repeated(atom))
    }
  }

  private repeated(item: RegexNode): RegexNode {
    if (this.quoted && this.eat('\\E')) this.quoted = false
    const bounds = this.quoted ? undefined : this.bounds()
    if (!bounds) return item
    const lazy = this.eat('?')
    const before = this.at
    if (this.bounds()) {
      this.at = before
      throw this.error('a repetition repeats a repetition')
    }
    return { kind: 'repeat', item, min: bounds[0], max: bounds[1], greedy: lazy === this.flags.U }
  }

  private bounds(): [number, number] | undefined {
    if (this.eat('*')) return [0, Infinity]
    if (this.eat('+')) return [1, Infinity]
    if (this.eat('?')) return [0, 1]
    const [text, low, comma, high] = /^\{(\d+)(,(\d*))?\}/.exec(this.pattern.slice(this.at, this.at + 16)) ?? []
    if (text === undefined) return undefined
    const min = Number(low)
    const max = comma === undefined ? min : high === '' || high === undefined ? Infinity : Number(high)
    if (min > max || min > MAX_REPEAT || (max !== Infinity && max > MAX_REPEAT))
      throw this.error('invalid repeat count')
    this.at += text.length
    return [min, max]
  }

  /** Undefined for what only changes flags. */
  private atom(): RegexNode | undefined {
    if (this.quoted) {
      if (!this.eat('\\E')) return this.literal(this.point())
      this.quoted = false
      return undefined
    }
    const character = this.pattern[this.at]
    switch (character) {
      case '(':
        return this.group()
      case '[':
        return { kind: 'set', set: this.bracket() }
      case '.':
        this.at++
        return this.set(classText(this.flags.s ? [[0, 0x10ffff]] : complement([[10, 10]])))
      case '^':
        this.at++
        return { kind: 'assert', assertion: this.flags.m ? 'lineStart' : 'textStart' }
      case '$':
        this.at++
        return { kind: 'assert', assertion: this.flags.m ? 'lineEnd' : 'textEnd' }
      case '*':
      case '+':
      case '?':
        throw this.error('nothing to repeat')
      case '\\':
        return this.escape()
      default:
        return this.literal(this.point())
    }
  }

  private set(text: string, negated = false): RegexNode {
    return { kind: 'set', set: new CharSet(text, negated, this.flags.i) }
  }

  private literal(code: number): RegexNode {
    return this.set(classText([[code, code]]))
  }

  /** Takes one character. */
  private point(): number {
    const code = this.pattern.codePointAt(this.at)
    if (code === undefined) throw this.error('unexpected end')
    this.at += code > 0xffff ? 2 : 1
    return code
  }

  private group(): RegexNode | undefined {
    const outer = { ...this.flags }
    this.at++
    let index: number | undefined
    if (!this.pattern.startsWith('?', this.at)) index = this.names.push(undefined) - 1
    else {
      const [opener, name] = /^\?P?<([A-Za-z_]\w*)>/.exec(this.pattern.slice(this.at)) ?? []
      if (opener !== undefined && name !== undefined) {
        if (this.names.includes(name)) throw this.error(`group name ${name} twice`)
        index = this.names.push(name) - 1
        this.at += opener.length
      } else if (!this.flagGroup()) return undefined
    }
    const item = this.choice()
    if (!this.eat(')')) throw this.error('missing )')
    this.flags = outer
    return index === undefined ? item : { kind: 'group', index, item }
  }

  /** `?flags:` starts a group; `?flags)` holds to the end of the enclosing one. */
  private flagGroup(): boolean {
    const [text, on = '', off = '', end] =
      /^\?([imsU]*)(?:-([imsU]+))?([:)])/.exec(this.pattern.slice(this.at, this.at + 20)) ?? []
    if (text === undefined) throw this.error('unknown group; look-around is not part of RE2')
    const next = { ...this.flags }
    for (const [letters, value] of [
      [on, true],
      [off, false],
    ] as const) {
      if (letters.includes('i')) next.i = value
      if (letters.includes('m')) next.m = value
      if (letters.includes('s')) next.s = value
      if (letters.includes('U')) next.U = value
    }
    this.flags = next
    this.at += text.length
    return end === ':'
  }

  private escape(): RegexNode | undefined {
    const letter = this.pattern[this.at + 1] ?? ''
    const assertion = ({ A: 'textStart', z: 'textEnd', b: 'boundary', B: 'noBoundary' } as const)[letter]
    if (assertion) {
      this.at += 2
      return { kind: 'assert', assertion }
    }
    if (this.eat('\\Q')) {
      this.quoted = true
      return undefined
    }
    const text = this.classEscape()
    return text === undefined ? this.literal(this.characterEscape()) : this.set(text)
  }

  /** The class text of `\d`, `\pL`, `\p{Greek}` and their opposites. */
  private classEscape(): string | undefined {
    const letter = this.pattern[this.at + 1] ?? ''
    const ranges = PERL[letter.toLowerCase()]
    if (ranges) {
      this.at += 2
      return classText(letter === letter.toLowerCase() ? ranges : complement(ranges))
    }
    const [whole, kind, caret, braced, single] =
      /^\\([pP])(?:\{(\^?)(\w+)\}|(\w))/.exec(this.pattern.slice(this.at, this.at + 60)) ?? []
    if (whole === undefined) return undefined
    const text = propertyText(braced ?? single ?? '', (kind === 'P') !== (caret === '^'))
    if (text === undefined) throw this.error(`unknown class ${whole}`)
    this.at += whole.length
    return text
  }

  private characterEscape(): number {
    const rest = this.pattern.slice(this.at + 1, this.at + 12)
    const [digits, braced, plain] = /^x(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{2}))/.exec(rest) ?? []
    const [octal] = /^(?:0[0-7]{0,2}|[1-7][0-7]{1,2})/.exec(rest) ?? []
    if (digits !== undefined || octal !== undefined) {
      this.at += 1 + (digits ?? octal ?? '').length
      const code = octal === undefined ? Number.parseInt(braced ?? plain ?? '', 16) : Number.parseInt(octal, 8)
      if (code > 0x10ffff) throw this.error('code point out of range')
      return code
    }
    this.at++
    const letter = this.pattern[this.at] ?? ''
    const control = CONTROL[letter]
    if (control === undefined && /[A-Za-z0-9]|^$/.test(letter)) throw this.error(`unknown escape \\${letter}`)
    const code = this.point()
    return control ?? code
  }

  private bracket(): CharSet {
    this.at++
    const negated = this.eat('^')
    let text = ''
    for (let first = true; first || this.pattern[this.at] !== ']'; first = false) {
      if (this.at >= this.pattern.length) throw this.error('missing ]')
      text +=
        this.posixClass() ?? (this.pattern[this.at] === '\\' ? this.classEscape() : undefined) ?? this.classRange()
    }
    this.at++
    return new CharSet(text, negated, this.flags.i)
  }

  private posixClass(): string | undefined {
    const [whole, caret, name = ''] = /^\[:(\^?)(\w+):\]/.exec(this.pattern.slice(this.at, this.at + 20)) ?? []
    if (whole === undefined) return undefined
    const ranges = POSIX[name]
    if (!ranges) throw this.error(`unknown class ${whole}`)
    this.at += whole.length
    return classText(caret === '^' ? complement(ranges) : ranges)
  }

  private classRange(): string {
    const low = this.classPoint()
    const isRange =
      this.pattern[this.at] === '-' && this.at + 1 < this.pattern.length && this.pattern[this.at + 1] !== ']'
    if (!isRange) return classText([[low, low]])
    this.at++
    const high = this.classPoint()
    if (high < low) throw this.error('range out of order')
    return classText([[low, high]])
  }

  private classPoint(): number {
    return this.pattern[this.at] === '\\' ? this.characterEscape() : this.point()
  }
}
