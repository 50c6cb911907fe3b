import { FunctionError } from '../errors.ts'
import { inRange } from '../operators.ts'
import { countGraphemes } from '../source.ts'
import {
  compareText,
  equals,
  has,
  isMap,
  isPrimitive,
  itemsOf,
  mapOf,
  newMap,
  sortedKeys,
  toBool,
  typeName,
  type Value,
  type ValueMap,
} from '../values.ts'
import { atLeast, between, fixed, type Arguments, type FunctionTable } from './arguments.ts'

/** Contract: runbook.md 3.3, group collection; the set functions are in sets.ts. */
export const COLLECTION_FUNCTIONS: FunctionTable = {
  length: fixed(1, (a) => length(a)),
  keys: fixed(1, (a) => sortedKeys(a.map(0))),
  values: fixed(1, (a) => sortedKeys(a.map(0)).map((key) => a.map(0)[key] ?? null)),
  merge: atLeast(0, (a) => merge(a)),
  concat: atLeast(1, (a) => a.rest(0, (i) => a.list(i)).flat()),
  coalesce: atLeast(1, (a) => first(a, (value) => value !== null && value !== '')),
  coalescelist: atLeast(1, (a) => first(a, (value) => (itemsOf(value)?.length ?? 0) > 0)),
  compact: fixed(1, (a) => a.list(0).filter((item) => item !== null && item !== '')),
  distinct: fixed(1, (a) => distinct(a.list(0))),
  flatten: fixed(1, (a) => flatten(a.list(0))),
  reverse: fixed(1, (a) => a.list(0).toReversed()),
  sort: fixed(1, (a) => a.texts(0).sort(compareText)),
  one: fixed(1, (a) => {
    const items = a.list(0)
    if (items.length > 1) throw new FunctionError(`expected at most one item, found ${items.length}`, 0)
    return items[0] ?? null
  }),
  alltrue: fixed(1, (a) => bools(a).every(Boolean)),
  anytrue: fixed(1, (a) => bools(a).some(Boolean)),
  contains: fixed(2, (a) => a.list(0).some((item) => equals(item, a.any(1)))),
  index: fixed(2, (a) => {
    const position = a.list(0).findIndex((item) => equals(item, a.any(1)))
    if (position < 0) throw new FunctionError('the list does not hold the value', 1)
    return position
  }),
  element: fixed(2, (a) => {
    const items = a.list(0)
    if (items.length === 0) throw new FunctionError('the list is empty', 0)
    return items[a.integer(1, 0) % items.length] ?? null
  }),
  lookup: between(2, 3, (a) => {
    const map = a.map(0)
    const key = a.text(1)
    if (has(map, key)) return map[key] ?? null
    if (a.count === 2) throw new FunctionError(`missing key "${key}"`, 1)
    return a.any(2)
  }),
  slice: fixed(3, (a) => {
    const items = a.list(0)
    const from = a.integer(1, 0)
    const to = a.integer(2, from)
    if (to > items.length) throw new FunctionError(`the list has ${items.length} items`, 2)
    return items.slice(from, to)
  }),
  range: between(1, 3, range),
  zipmap: fixed(2, (a) => {
    const [keys, values] = [a.texts(0), a.list(1)]
    if (keys.length !== values.length) throw new FunctionError(`${keys.length} keys for ${values.length} values`, 1)
    return mapOf(keys.map((key, i) => [key, values[i] ?? null]))
  }),
  chunklist: fixed(2, (a) => {
    const [items, size] = [a.list(0), a.integer(1, 1)]
    return Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size))
  }),
  matchkeys: fixed(3, (a) => {
    const [values, keys, wanted] = [a.list(0), a.list(1), a.list(2)]
    if (values.length !== keys.length) throw new FunctionError(`${keys.length} keys for ${values.length} values`, 1)
    a.budget.spend((keys.length * wanted.length) / 4)
    return values.filter((_, i) => wanted.some((key) => equals(key, keys[i] ?? null)))
  }),
  transpose: fixed(1, (a) => transpose(a.map(0), a)),
}

function length(a: Arguments): number {
  const value = a.any(0)
  if (typeof value === 'string') return countGraphemes(a.text(0))
  if (isMap(value)) return Object.keys(value).length
  const items = itemsOf(value)
  if (!items) throw a.wrong(0, 'text, a list or a map')
  return items.length
}

function merge(a: Arguments): ValueMap {
  const merged = newMap()
  for (const [i, value] of a.values.entries()) if (value !== null) Object.assign(merged, a.map(i))
  return merged
}

function first(a: Arguments, accept: (value: Value) => boolean): Value {
  const found = a.values.find(accept)
  if (found === undefined) throw new FunctionError('no argument has a value')
  return found
}

/** First occurrences in order; primitives by a hash, the rest by comparison. */
export function distinct(items: readonly Value[]): Value[] {
  const seen = new Set<string>()
  const found: Value[] = []
  const compound: Value[] = []
  for (const item of items) {
    if (isPrimitive(item)) {
      const key = `${typeName(item)} ${item}`
      if (seen.has(key)) continue
      seen.add(key)
    } else {
      if (compound.some((other) => equals(other, item))) continue
      compound.push(item)
    }
    found.push(item)
  }
  return found
}

const flatten = (items: readonly Value[]): Value[] =>
  items.flatMap((item) => {
    const inner = itemsOf(item)
    return inner ? flatten(inner) : [item]
  })

const bools = (a: Arguments): boolean[] =>
  a.list(0).map((item) => {
    const bool = item === null ? false : toBool(item)
    if (bool === undefined) throw new FunctionError('expected a list of bools', 0)
    return bool
  })

function range(a: Arguments): Value {
  const from = a.count === 1 ? 0 : a.number(0)
  const to = a.number(a.count === 1 ? 0 : 1)
  const step = a.count === 3 ? a.number(2) : to < from ? -1 : 1
  if (step === 0) throw new FunctionError('the step is not zero', 2)
  const count = Math.max(0, Math.ceil((to - from) / step))
  a.budget.spend(count)
  return Array.from({ length: count }, (_, i) => inRange(from + i * step))
}

/** A map of lists of text, turned inside out. */
function transpose(map: ValueMap, a: Arguments): ValueMap {
  const result: Record<string, string[]> = Object.create(null)
  for (const key of sortedKeys(map)) {
    const items = itemsOf(map[key] ?? null)
    if (!items) throw a.wrong(0, 'a map of lists')
    for (const item of items) {
      if (typeof item !== 'string') throw new FunctionError('expected a map of lists of text', 0)
      ;(result[item] ??= []).push(key)
    }
  }
  return result
}
