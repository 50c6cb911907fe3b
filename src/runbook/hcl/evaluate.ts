import type { Call, Conditional, Expression, For, ForDirective, Splat, Template, TemplatePart } from './ast.ts'
import { attributeOf, itemOf } from './access.ts'
import { Budget, type Limits } from './budget.ts'
import { didYouMean } from './diagnostics.ts'
import { EvaluationError, KnownAfterRun, located } from './errors.ts'
import { Arguments, arityMessage } from './functions/arguments.ts'
import { FUNCTIONS } from './functions/index.ts'
import { encodeJson } from './json.ts'
import { applyOperator, inRange, logical } from './operators.ts'
import { pathPieces } from './path-template.ts'
import { isNamespace, type Namespace, type Scope } from './scope.ts'
import type { SourceRange } from './source.ts'
import {
  describe,
  has,
  isList,
  isMap,
  isPrimitive,
  itemsOf,
  newMap,
  sortedKeys,
  toNumber,
  toText,
  typeName,
  ValueSet,
  type Value,
} from './values.ts'

/**
 * The value of an expression. Data in it is never evaluated again. Contract: runbook.md 3.
 * @throws EvaluationError with the range of the fault; KnownAfterRun in plans
 */
export function evaluate(expression: Expression, scope: Scope, limits?: Limits): Value {
  const evaluation = new Evaluation(scope, new Budget(limits))
  return located(expression.range, () => {
    const value = evaluation.value(expression)
    evaluation.budget.checkSize(value)
    return value
  })
}

/** The text of some parts of a template, as a text condition needs it. */
export function evaluateText(parts: readonly TemplatePart[], scope: Scope, range: SourceRange): string {
  const evaluation = new Evaluation(scope, new Budget())
  return located(range, () => evaluation.text(parts))
}

/** Variables of `for`, innermost first. */
interface Binding {
  readonly name: string
  readonly value: Value
  readonly outer: Binding | undefined
}

class Evaluation {
  readonly budget: Budget
  private readonly scope: Scope
  private bindings: Binding | undefined
  private splatItem: Value = null

  constructor(scope: Scope, budget: Budget) {
    this.scope = scope
    this.budget = budget
  }

  value(expression: Expression): Value {
    const found = this.member(expression)
    return isNamespace(found) ? found.value() : found
  }

  text(parts: readonly TemplatePart[]): string {
    let result = ''
    const append = (piece: string): void => {
      this.budget.text(result.length + piece.length)
      result += piece
    }
    for (const part of parts) this.textPart(part, append)
    return result
  }

  /** A value, or a namespace on the way to one of its members. */
  private member(expression: Expression): Value | Namespace {
    this.step(expression)
    switch (expression.kind) {
      case 'literal':
        return expression.value
      case 'template':
        return this.template(expression)
      case 'variable':
        return this.variable(expression.name, expression.range)
      case 'attribute':
        return attributeOf(this.member(expression.object), expression.name, expression.nameRange)
      case 'index':
        return itemOf(this.member(expression.object), this.value(expression.key), expression)
      case 'splat':
        return this.splat(expression)
      case 'splatItem':
        return this.splatItem
      case 'call':
        return this.call(expression)
      case 'unary': {
        const { operator, operand } = expression
        if (operator === '!') return !this.bool(operand)
        return located(operand.range, () => inRange(-this.number(operand)))
      }
      case 'binary': {
        const { operator, left, right, range } = expression
        if (operator === '&&') return this.bool(left) && this.bool(right)
        if (operator === '||') return this.bool(left) || this.bool(right)
        const [a, b] = [this.value(left), this.value(right)]
        return located(range, () => applyOperator(operator, a, b), [left, right])
      }
      case 'conditional':
        return this.conditional(expression)
      case 'tuple':
        return expression.items.map((item) => this.value(item))
      case 'object': {
        const map = newMap()
        for (const { key, value } of expression.entries) map[this.key(key)] = this.value(value)
        return map
      }
      case 'for':
        return this.for(expression)
    }
  }

  private step(expression: Expression): void {
    located(expression.range, () => this.budget.spend(1))
  }

  private bool(expression: Expression): boolean {
    const value = this.value(expression)
    return located(expression.range, () => logical(value))
  }

  private number(expression: Expression): number {
    const value = this.value(expression)
    const number = toNumber(value)
    if (number === undefined) throw new EvaluationError(`expected a number, found ${describe(value)}`, expression.range)
    return number
  }

  private key(expression: Expression): string {
    const value = this.value(expression)
    const key = toText(value)
    if (key === undefined) throw new EvaluationError(`a key is text, found ${describe(value)}`, expression.range)
    return key
  }

  private variable(name: string, range: SourceRange): Value | Namespace {
    for (let binding = this.bindings; binding; binding = binding.outer) if (binding.name === name) return binding.value
    const found = located(range, () => this.scope.variable(name))
    if (found !== undefined) return found
    const known = [...this.scope.names()]
    for (let binding = this.bindings; binding; binding = binding.outer) known.push(binding.name)
    throw new EvaluationError(`unknown variable "${name}"`, range, () => didYouMean(name, known).hint)
  }

  private splat({ object, each }: Splat): Value {
    const value = this.value(object)
    const items = value === null ? [] : (itemsOf(value) ?? [value])
    const outer = this.splatItem
    const result = items.map((item) => {
      this.splatItem = item
      return this.value(each)
    })
    this.splatItem = outer
    return result
  }

  private conditional({ condition, then, else: otherwise }: Conditional): Value {
    const [taken, other] = this.bool(condition) ? [then, otherwise] : [otherwise, then]
    const value = this.value(taken)
    if (!isPrimitive(value) || value === null || typeof value === 'string') return value
    const type = this.quietType(other)
    return type === undefined || type === typeName(value) ? value : (toText(value) ?? value)
  }

  /** The primitive type of the branch not taken, where it is known without evaluating more than a reference. */
  private quietType(expression: Expression): 'string' | 'number' | 'bool' | undefined {
    switch (expression.kind) {
      case 'template': {
        const [first, ...rest] = expression.parts
        if (first?.kind === 'interpolation' && rest.length === 0) return this.quietType(first.value)
        return first?.kind === 'text' && this.scope.path && rest.length === 0 && pathPieces(first)[0]?.kind === 'path'
          ? undefined
          : 'string'
      }
      case 'unary':
        return expression.operator === '!' ? 'bool' : 'number'
      case 'binary':
        return '+-*/%'.includes(expression.operator) ? 'number' : 'bool'
      case 'literal':
      case 'variable':
      case 'attribute':
      case 'index':
        try {
          const type = typeName(this.value(expression))
          return type === 'string' || type === 'number' || type === 'bool' ? type : undefined
        } catch (error) {
          if (error instanceof KnownAfterRun || error instanceof EvaluationError) return undefined
          throw error
        }
      default:
        return undefined
    }
  }

  private for({ collection, keyName, valueName, key, value, group, condition }: For): Value {
    const list: Value[] = []
    const map = newMap()
    this.each(collection, keyName, valueName, () => {
      if (condition && !this.bool(condition)) return
      if (!key) {
        list.push(this.value(value))
        return
      }
      const name = this.key(key)
      if (group) {
        const items = (map[name] ??= [])
        if (Array.isArray(items)) items.push(this.value(value))
      } else if (has(map, name)) {
        throw new EvaluationError(`duplicate key "${name}"`, key.range, 'group equal keys with "..." behind the value')
      } else map[name] = this.value(value)
    })
    return key ? map : list
  }

  /** Runs `body` for every element, with the names bound. */
  private each(collection: Expression, keyName: string | undefined, valueName: string, body: () => void): void {
    const outer = this.bindings
    for (const [key, value] of this.elements(collection)) {
      this.step(collection)
      const keyed = keyName === undefined ? outer : { name: keyName, value: key, outer }
      this.bindings = { name: valueName, value, outer: keyed }
      body()
    }
    this.bindings = outer
  }

  private elements(collection: Expression): Iterable<readonly [Value, Value]> {
    const value = this.value(collection)
    if (isList(value)) return value.entries()
    if (value instanceof ValueSet) return value.items.map((item) => [item, item] as const)
    if (isMap(value)) return sortedKeys(value).map((key) => [key, value[key] ?? null] as const)
    throw new EvaluationError(`can't iterate over ${describe(value)}`, collection.range)
  }

  private call(call: Call): Value {
    const { name, nameRange, range } = call
    if (name === 'try') return this.try(call)
    if (name === 'can') return this.can(call)
    const definition = FUNCTIONS.get(name)
    if (!definition)
      throw new EvaluationError(`unknown function "${name}"`, nameRange, () => didYouMean(name, FUNCTIONS.keys()).hint)
    const values = this.arguments(call)
    const { min, max } = definition
    if (values.length < min || values.length > max)
      throw new EvaluationError(arityMessage(name, min, max, values.length), range)
    return located(
      range,
      () => {
        const result = definition.call(new Arguments(values, this.budget), this.scope)
        if (typeof result === 'string') this.budget.text(result.length)
        return result
      },
      call.arguments,
    )
  }

  private arguments({ arguments: expressions, spread }: Call): Value[] {
    const values = expressions.map((argument) => this.value(argument))
    if (!spread) return values
    const items = itemsOf(values.pop() ?? null)
    const last = expressions.at(-1)
    if (last && !items) throw new EvaluationError('"..." stands behind a list', last.range)
    return values.concat(items ?? [])
  }

  private try({ arguments: attempts, range }: Call): Value {
    let failure: EvaluationError | undefined
    for (const attempt of attempts) {
      const result = this.attempt(attempt)
      if (!(result instanceof EvaluationError)) return result
      failure = result
    }
    throw failure ?? new EvaluationError(arityMessage('try', 1, Infinity, 0), range)
  }

  private can({ arguments: attempts, range }: Call): boolean {
    const [attempt, ...rest] = attempts
    if (!attempt || rest.length > 0) throw new EvaluationError(arityMessage('can', 1, 1, attempts.length), range)
    return !(this.attempt(attempt) instanceof EvaluationError)
  }

  /** The value or the error; what a caught error interrupted is put back. */
  private attempt(expression: Expression): Value | EvaluationError {
    const { bindings, splatItem } = this
    try {
      return this.value(expression)
    } catch (error) {
      if (!(error instanceof EvaluationError) || error.code === 'limit_exceeded') throw error
      this.bindings = bindings
      this.splatItem = splatItem
      return error
    }
  }

  /** One interpolation or `{{ path }}` alone keeps its type. */
  private template({ parts }: Template): Value {
    const [first, ...rest] = parts
    if (!first) return ''
    if (rest.length === 0 && first.kind === 'interpolation') return this.value(first.value)
    if (rest.length === 0 && first.kind === 'text') {
      if (!this.scope.path) return first.value
      const [piece, ...more] = pathPieces(first)
      if (piece?.kind === 'path' && more.length === 0) return this.path(piece.segments, piece.range) ?? null
    }
    return this.text(parts)
  }

  private path(segments: readonly string[], range: SourceRange): Value | undefined {
    return located(range, () => this.scope.path?.(segments, range))
  }

  private textPart(part: TemplatePart, append: (text: string) => void): void {
    switch (part.kind) {
      case 'text':
        if (this.scope.path) this.paths(part, append)
        else append(part.value)
        return
      case 'interpolation':
        append(this.interpolated(part.value))
        return
      case 'if':
        for (const inner of this.bool(part.condition) ? part.then : part.else) this.textPart(inner, append)
        return
      case 'for':
        this.forDirective(part, append)
    }
  }

  private forDirective({ collection, keyName, valueName, body }: ForDirective, append: (text: string) => void): void {
    this.each(collection, keyName, valueName, () => {
      for (const part of body) this.textPart(part, append)
    })
  }

  private interpolated(expression: Expression): string {
    const value = this.value(expression)
    const text = toText(value)
    if (text !== undefined) return text
    const hint = value === null ? 'use coalesce(value, "…")' : 'use jsonencode(...)'
    throw new EvaluationError(`${describe(value)} can't stand inside text`, expression.range, hint)
  }

  private paths(part: Extract<TemplatePart, { kind: 'text' }>, append: (text: string) => void): void {
    for (const piece of pathPieces(part)) {
      if (piece.kind === 'text') append(piece.value)
      else {
        const value = this.path(piece.segments, piece.range) ?? null
        append(value === null ? '' : (toText(value) ?? encodeJson(value)))
      }
    }
  }
}
