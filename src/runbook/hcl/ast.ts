import type { SourceRange } from './source.ts'

interface Node {
  readonly range: SourceRange
}

interface ExpressionNode extends Node {
  /** Levels of the tree below and including this node; the parser keeps it within `MAX_NESTING`. */
  readonly height: number
}

interface Literal extends ExpressionNode {
  readonly kind: 'literal'
  readonly value: number | boolean | null
}

/** A quoted string or heredoc. A constant string has no part, or one text. */
export interface Template extends ExpressionNode {
  readonly kind: 'template'
  readonly parts: readonly TemplatePart[]
}

export interface TextPart extends Node {
  readonly kind: 'text'
  readonly value: string
}

interface Interpolation extends Node {
  readonly kind: 'interpolation'
  readonly value: Expression
}

export interface IfDirective extends Node {
  readonly kind: 'if'
  readonly condition: Expression
  readonly then: readonly TemplatePart[]
  readonly else: readonly TemplatePart[]
}

export interface ForDirective extends Node {
  readonly kind: 'for'
  readonly keyName?: string
  readonly valueName: string
  readonly collection: Expression
  readonly body: readonly TemplatePart[]
}

export type TemplatePart = TextPart | Interpolation | IfDirective | ForDirective

interface Variable extends ExpressionNode {
  readonly kind: 'variable'
  readonly name: string
}

/** `object.name` */
interface AttributeAccess extends ExpressionNode {
  readonly kind: 'attribute'
  readonly object: Expression
  readonly name: string
  readonly nameRange: SourceRange
}

/** `object[key]`, or the legacy `object.0` */
export interface Index extends ExpressionNode {
  readonly kind: 'index'
  readonly object: Expression
  readonly key: Expression
}

/** `object[*]…` or `object.*…`; `each` is what follows, applied to a `SplatItem`. */
export interface Splat extends ExpressionNode {
  readonly kind: 'splat'
  readonly object: Expression
  readonly each: Expression
}

export interface SplatItem extends ExpressionNode {
  readonly kind: 'splatItem'
}

export interface Call extends ExpressionNode {
  readonly kind: 'call'
  readonly name: string
  readonly nameRange: SourceRange
  readonly arguments: readonly Expression[]
  /** The last argument is a list that stands for several (`f(list...)`). */
  readonly spread: boolean
}

type UnaryOperator = '!' | '-'
export type BinaryOperator = '||' | '&&' | '==' | '!=' | '<' | '<=' | '>' | '>=' | '+' | '-' | '*' | '/' | '%'

interface Unary extends ExpressionNode {
  readonly kind: 'unary'
  readonly operator: UnaryOperator
  readonly operand: Expression
}

interface Binary extends ExpressionNode {
  readonly kind: 'binary'
  readonly operator: BinaryOperator
  readonly left: Expression
  readonly right: Expression
}

export interface Conditional extends ExpressionNode {
  readonly kind: 'conditional'
  readonly condition: Expression
  readonly then: Expression
  readonly else: Expression
}

interface Tuple extends ExpressionNode {
  readonly kind: 'tuple'
  readonly items: readonly Expression[]
}

export interface ObjectLiteral extends ExpressionNode {
  readonly kind: 'object'
  readonly entries: readonly { readonly key: Expression; readonly value: Expression }[]
}

/** `[for k, v in collection : value if condition]`, or with `key =>` the object form. */
export interface For extends ExpressionNode {
  readonly kind: 'for'
  readonly keyName?: string
  readonly valueName: string
  readonly collection: Expression
  readonly key?: Expression
  readonly value: Expression
  readonly group: boolean
  readonly condition?: Expression
}

export type Expression =
  | Literal
  | Template
  | Variable
  | AttributeAccess
  | Index
  | Splat
  | SplatItem
  | Call
  | Unary
  | Binary
  | Conditional
  | Tuple
  | ObjectLiteral
  | For

export interface Attribute extends Node {
  readonly kind: 'attribute'
  readonly name: string
  readonly nameRange: SourceRange
  readonly value: Expression
}

export interface Label {
  readonly value: string
  readonly range: SourceRange
}

export interface Block extends Node {
  readonly kind: 'block'
  readonly type: string
  readonly typeRange: SourceRange
  readonly labels: readonly Label[]
  /** From the type to the last label. */
  readonly headerRange: SourceRange
  readonly body: Body
}

/** Attributes and blocks in source order. */
export interface Body extends Node {
  readonly attributes: ReadonlyMap<string, Attribute>
  readonly blocks: readonly Block[]
}

/** The parts directly below an expression, template parts included, in source order. */
export function children(expression: Expression): Expression[] {
  switch (expression.kind) {
    case 'literal':
    case 'variable':
    case 'splatItem':
      return []
    case 'template':
      return templateExpressions(expression.parts)
    case 'attribute':
      return [expression.object]
    case 'index':
      return [expression.object, expression.key]
    case 'splat':
      return [expression.object, expression.each]
    case 'call':
      return [...expression.arguments]
    case 'unary':
      return [expression.operand]
    case 'binary':
      return [expression.left, expression.right]
    case 'conditional':
      return [expression.condition, expression.then, expression.else]
    case 'tuple':
      return [...expression.items]
    case 'object':
      return expression.entries.flatMap(({ key, value }) => [key, value])
    case 'for': {
      const { collection, key, value, condition } = expression
      return [collection, ...(key ? [key] : []), value, ...(condition ? [condition] : [])]
    }
  }
}

function templateExpressions(parts: readonly TemplatePart[]): Expression[] {
  return parts.flatMap((part) => {
    switch (part.kind) {
      case 'text':
        return []
      case 'interpolation':
        return [part.value]
      case 'if':
        return [part.condition, ...templateExpressions(part.then), ...templateExpressions(part.else)]
      case 'for':
        return [part.collection, ...templateExpressions(part.body)]
    }
  })
}

/** The text of a template without interpolations and directives. */
export function constantText(expression: Expression): string | undefined {
  if (expression.kind !== 'template') return undefined
  const [first, ...rest] = expression.parts
  if (!first) return ''
  return first.kind === 'text' && rest.length === 0 ? first.value : undefined
}
