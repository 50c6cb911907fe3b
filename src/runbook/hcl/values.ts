import { fifteenDigits, numberText, parseNumber } from './numbers.ts'

/** What expressions work on. Maps have no prototype, so that only own keys are reachable. */
export type Value = string | number | boolean | null | readonly Value[] | ValueSet | ValueMap

export interface ValueMap {
  readonly [key: string]: Value
}

/** Distinct values in the order of `compareValues`. */
export class ValueSet {
  readonly items: readonly Value[]

  constructor(values: Iterable<Value>) {
    this.items = distinct([...values].sort(compareValues))
  }

  toJSON(): readonly Value[] {
    return this.items
  }
}

type TypeName = 'string' | 'number' | 'bool' | 'null' | 'list' | 'set' | 'map'

/** The name of a value's type, as messages say it. */
export function typeName(value: Value): TypeName {
  if (value === null) return 'null'
  if (typeof value === 'boolean') return 'bool'
  if (typeof value === 'string') return 'string'
  if (typeof value === 'number') return 'number'
  if (isList(value)) return 'list'
  return value instanceof ValueSet ? 'set' : 'map'
}

export const isList = (value: Value): value is readonly Value[] => Array.isArray(value)

export const isMap = (value: Value): value is ValueMap =>
  typeof value === 'object' && value !== null && !isList(value) && !(value instanceof ValueSet)

export const isPrimitive = (value: Value): value is string | number | boolean | null =>
  typeof value !== 'object' || value === null

/** A map under construction. */
export const newMap = (): Record<string, Value> => Object.create(null)

export function mapOf(entries: Iterable<readonly [string, Value]>): ValueMap {
  const map = newMap()
  for (const [key, value] of entries) map[key] = value
  return map
}

/** Keys in the order in which maps iterate. */
export const sortedKeys = (map: ValueMap): string[] => Object.keys(map).sort(compareText)

export const has = (map: ValueMap, key: string): boolean => Object.hasOwn(map, key)

/** The items of a list or set. */
export function itemsOf(value: Value): readonly Value[] | undefined {
  if (value instanceof ValueSet) return value.items
  return isList(value) ? value : undefined
}

/** Code-point order. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i)
    const right = b.charCodeAt(i)
    if (left === right) continue
    // surrogates stand for points above all other units
    const order = Number(left >= 0xd800 && left < 0xe000) - Number(right >= 0xd800 && right < 0xe000)
    return order || left - right
  }
  return a.length - b.length
}

const RANK: Record<TypeName, number> = { null: 0, bool: 1, number: 2, string: 3, list: 4, set: 4, map: 5 }

/** Total order: null < bool < number < string < list < map; lists element by element, maps by keys, then values. */
export function compareValues(a: Value, b: Value): number {
  const rank = RANK[typeName(a)] - RANK[typeName(b)]
  if (rank !== 0) return rank
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b)
  if (typeof a === 'number' && typeof b === 'number') return fifteenDigits(a) - fifteenDigits(b)
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b)
  const left = itemsOf(a)
  const right = itemsOf(b)
  if (left && right) return compareLists(left, right)
  if (isMap(a) && isMap(b)) return compareMaps(a, b)
  return 0
}

function compareLists(a: readonly Value[], b: readonly Value[]): number {
  for (const [i, item] of a.entries()) {
    const other = b[i]
    if (other === undefined) return 1
    const order = compareValues(item, other)
    if (order !== 0) return order
  }
  return a.length - b.length
}

function compareMaps(a: ValueMap, b: ValueMap): number {
  const pairs = (map: ValueMap): Value[] => sortedKeys(map).flatMap((key) => [key, map[key] ?? null])
  return compareLists(pairs(a), pairs(b))
}

/** `==` of the language: false for different types. */
export const equals = (a: Value, b: Value): boolean =>
  a === b || (typeName(a) === typeName(b) && compareValues(a, b) === 0)

/** Neighbours that are equal become one. */
const distinct = (sorted: readonly Value[]): Value[] =>
  sorted.filter((value, i) => i === 0 || !equals(value, sorted[i - 1] ?? null))

/** The text a primitive converts to; undefined for null, lists and maps. */
export function toText(value: Value): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return numberText(value)
  return typeof value === 'boolean' ? String(value) : undefined
}

/** The number a primitive converts to; undefined for what is none. */
export function toNumber(value: Value): number | undefined {
  if (typeof value === 'number') return value
  return typeof value === 'string' ? parseNumber(value) : undefined
}

/** The bool a primitive converts to: `true`, `false` and their texts. */
export function toBool(value: Value): boolean | undefined {
  if (typeof value === 'boolean') return value
  return value === 'true' ? true : value === 'false' ? false : undefined
}

/** How a value is called in a message. */
export function describe(value: Value): string {
  const name = typeName(value)
  if (name === 'null') return 'null'
  return `a ${name}`
}
