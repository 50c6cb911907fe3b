import { constantText, type Expression } from './hcl/ast.ts'
import type { SourceRange } from './hcl/source.ts'
import { describe, has, isMap, itemsOf, mapOf, toBool, toNumber, toText, ValueSet, type Value } from './hcl/values.ts'

/** The type of an input. Contract: runbook.md 2.2. */
export type TypeConstraint =
  | { readonly kind: 'string' | 'number' | 'bool' | 'any' }
  | { readonly kind: 'list' | 'map' | 'set'; readonly item: TypeConstraint }
  | { readonly kind: 'tuple'; readonly items: readonly TypeConstraint[] }
  | { readonly kind: 'object'; readonly fields: ReadonlyMap<string, { type: TypeConstraint; optional: boolean }> }

/** A value that doesn't fit, with the way to the part at fault. */
export class TypeMismatch extends Error {}

/** Reads `list(string)`, `object({a = number, b = optional(bool)})`; else the range of what is no type. */
export function parseType(expression: Expression): TypeConstraint | { readonly invalid: SourceRange } {
  if (expression.kind === 'variable') {
    const { name } = expression
    if (name === 'string' || name === 'number' || name === 'bool' || name === 'any') return { kind: name }
    return name === 'list' || name === 'map' || name === 'set'
      ? { kind: name, item: { kind: 'any' } }
      : invalid(expression)
  }
  if (expression.kind !== 'call' || expression.arguments.length !== 1) return invalid(expression)
  const [argument = expression] = expression.arguments
  switch (expression.name) {
    case 'list':
    case 'map':
    case 'set': {
      const item = parseType(argument)
      return 'invalid' in item ? item : { kind: expression.name, item }
    }
    case 'tuple':
      return argument.kind === 'tuple' ? tupleType(argument.items) : invalid(argument)
    case 'object':
      return argument.kind === 'object' ? objectType(argument) : invalid(argument)
    default:
      return invalid(expression)
  }
}

const invalid = ({ range }: Expression): { invalid: SourceRange } => ({ invalid: range })

function tupleType(expressions: readonly Expression[]): ReturnType<typeof parseType> {
  const items: TypeConstraint[] = []
  for (const expression of expressions) {
    const item = parseType(expression)
    if ('invalid' in item) return item
    items.push(item)
  }
  return { kind: 'tuple', items }
}

function objectType({ entries }: Extract<Expression, { kind: 'object' }>): ReturnType<typeof parseType> {
  const fields = new Map<string, { type: TypeConstraint; optional: boolean }>()
  for (const { key, value } of entries) {
    const name = constantText(key)
    const optional = value.kind === 'call' && value.name === 'optional'
    const type = parseType((optional ? value.arguments[0] : undefined) ?? value)
    if (name === undefined) return invalid(key)
    if ('invalid' in type) return type
    fields.set(name, { type, optional })
  }
  return { kind: 'object', fields }
}

function typeText(type: TypeConstraint): string {
  switch (type.kind) {
    case 'list':
    case 'map':
    case 'set':
      return `${type.kind}(${typeText(type.item)})`
    case 'tuple':
      return `tuple([${type.items.map(typeText).join(', ')}])`
    case 'object':
      return `object({${[...type.fields].map(([name, field]) => `${name} = ${typeText(field.type)}`).join(', ')}})`
    default:
      return type.kind
  }
}

/** Converts a value as HCL does ("1" to 1, lists to sets, ...). @throws TypeMismatch */
export function convert(value: Value, type: TypeConstraint, path = ''): Value {
  if (value === null || type.kind === 'any') return value
  const mismatch = (): TypeMismatch =>
    new TypeMismatch(`${path === '' ? '' : `${path}: `}expected ${typeText(type)}, found ${describe(value)}`)
  const required = <T>(converted: T | undefined): T => {
    if (converted === undefined) throw mismatch()
    return converted
  }
  switch (type.kind) {
    case 'string':
      return required(toText(value))
    case 'number':
      return required(toNumber(value))
    case 'bool':
      return required(toBool(value))
    case 'list':
      return required(itemsOf(value)).map((item, i) => convert(item, type.item, `${path}[${i}]`))
    case 'set':
      return new ValueSet(required(itemsOf(value)).map((item, i) => convert(item, type.item, `${path}[${i}]`)))
    case 'map':
      if (!isMap(value)) throw mismatch()
      return mapOf(Object.entries(value).map(([key, item]) => [key, convert(item, type.item, `${path}.${key}`)]))
    case 'tuple': {
      const items = required(itemsOf(value))
      if (items.length !== type.items.length) throw mismatch()
      return type.items.map((item, i) => convert(items[i] ?? null, item, `${path}[${i}]`))
    }
    case 'object':
      if (!isMap(value)) throw mismatch()
      return convertObject(value, type.fields, path)
  }
}

type Fields = Extract<TypeConstraint, { kind: 'object' }>['fields']

function convertObject(value: { readonly [key: string]: Value }, fields: Fields, path: string): Value {
  const entries: [string, Value][] = []
  for (const [name, { type, optional }] of fields) {
    if (!has(value, name) && !optional) throw new TypeMismatch(`${path === '' ? '' : `${path}: `}missing "${name}"`)
    entries.push([name, convert(value[name] ?? null, type, `${path}.${name}`)])
  }
  return mapOf(entries)
}
