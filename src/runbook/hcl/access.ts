import type { Index } from './ast.ts'
import { didYouMean } from './diagnostics.ts'
import { EvaluationError, located } from './errors.ts'
import { isNamespace, type Namespace } from './scope.ts'
import type { SourceRange } from './source.ts'
import { describe, has, isList, isMap, itemsOf, toNumber, toText, type Value } from './values.ts'

/** `object.name`. @throws EvaluationError at `range`, with the nearest name there is */
export function attributeOf(object: Value | Namespace, name: string, range: SourceRange): Value | Namespace {
  if (isNamespace(object)) {
    const found = located(range, () => object.get(name))
    if (found !== undefined) return found
    throw new EvaluationError(`unknown ${object.member} "${name}"`, range, () => didYouMean(name, object.keys()).hint)
  }
  if (isMap(object)) {
    if (has(object, name)) return object[name] ?? null
    throw new EvaluationError(`missing key "${name}"`, range, () => didYouMean(name, Object.keys(object)).hint)
  }
  const hint = itemsOf(object) ? `use [*].${name} for the attribute of every item` : undefined
  throw new EvaluationError(`${describe(object)} has no attribute "${name}"`, range, hint)
}

/** `container[position]`. @throws EvaluationError at the key, or at the whole of what has no items */
export function itemOf(container: Value | Namespace, position: Value, { key, range }: Index): Value | Namespace {
  if (isNamespace(container) || isMap(container)) {
    const name = toText(position)
    if (name === undefined) throw new EvaluationError(`a key is text, found ${describe(position)}`, key.range)
    return attributeOf(container, name, key.range)
  }
  if (!isList(container)) throw new EvaluationError(`${describe(container)} has no items to index`, range)
  const number = toNumber(position)
  if (number === undefined || !Number.isInteger(number)) {
    throw new EvaluationError('the index of a list is a whole number', key.range)
  }
  const item = container[number]
  if (item !== undefined) return item
  throw new EvaluationError(`index ${number} is out of range, the list has ${container.length} items`, key.range)
}
