import { parseDuration } from './hcl/duration.ts'
import { fromJson } from './hcl/json.ts'
import {
  describe,
  equals,
  has,
  isList,
  isMap,
  itemsOf,
  mapOf,
  toBool,
  toNumber,
  toText,
  ValueSet,
  type Value,
  type ValueMap,
} from './hcl/values.ts'

type SchemaType = 'string' | 'number' | 'integer' | 'boolean' | 'object' | 'array' | 'null'

/** The subset of JSON Schema 2020-12 of runbook.md 7. A schema without `type` takes anything. */
export interface Schema {
  readonly type?: SchemaType | readonly SchemaType[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  /** False unless given, where `properties` are given. */
  readonly additionalProperties?: boolean | Schema
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly pattern?: string
  readonly default?: unknown
  /** Of a node: what each alternative has in `required`; one of them, or with `anyOf` at least one, has to be given. */
  readonly oneOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly description?: string
  readonly format?: 'duration' | 'url' | 'identifier' | 'email'
  readonly sensitive?: boolean
  /** `constant` in the file, or evaluated per item by the node. */
  readonly evaluation?: 'template' | 'constant' | 'item'
}

/** A value that a schema doesn't take: of wrong type, not among the allowed values, or no duration. */
export class SchemaMismatch extends Error {
  readonly kind: 'type' | 'value' | 'duration'

  constructor(kind: SchemaMismatch['kind'], path: string, message: string) {
    super(`${path}: ${message}`)
    this.kind = kind
  }
}

/** The value with HCL conversions and defaults applied. @throws SchemaMismatch */
export function conform(value: Value, schema: Schema, path: string): Value {
  const alternatives = schema.oneOf ?? schema.anyOf
  const converted = alternatives ? firstConforming(value, alternatives, path) : typed(value, schema, path)
  const allowed = schema.const === undefined ? schema.enum : [schema.const]
  if (allowed && !allowed.some((item) => equals(fromJson(item), converted))) {
    throw new SchemaMismatch('value', path, `must be one of ${allowed.map((item) => JSON.stringify(item)).join(', ')}`)
  }
  checkFormat(converted, schema, path)
  return converted
}

/** The attributes of a node; null counts as absent. @throws SchemaMismatch */
export function conformProperties(values: ValueMap, schema: Schema, path: string): ValueMap {
  const entries: [string, Value][] = []
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const value = has(values, name) ? (values[name] ?? null) : null
    if (value !== null) entries.push([name, conform(value, property, child(path, name))])
    else if (property.default !== undefined) entries.push([name, fromJson(property.default)])
    else if (has(values, name) && property.type === undefined) entries.push([name, null])
    else if (schema.required?.includes(name)) throw new SchemaMismatch('value', child(path, name), 'is required')
  }
  const { additionalProperties = !schema.properties } = schema
  for (const [name, value] of Object.entries(values)) {
    if (schema.properties && Object.hasOwn(schema.properties, name)) continue
    if (additionalProperties === false) throw new SchemaMismatch('value', child(path, name), 'is not known')
    const open = additionalProperties === true ? {} : additionalProperties
    entries.push([name, conform(value, open, child(path, name))])
  }
  return mapOf(entries)
}

/** What is wrong with the attributes given, where the schema of a node has alternatives. */
export function alternativesFault(
  schema: Schema,
  isGiven: (name: string) => boolean,
): { readonly code: 'RB209' | 'RB213'; readonly message: string } | undefined {
  const groups = schema.oneOf ?? schema.anyOf
  if (!groups) return undefined
  const chosen = groups.find(({ required = [] }) => required.every(isGiven))
  if (!chosen) return { code: 'RB209', message: `needs ${alternativesText(schema)}` }
  const isMore = (name: string): boolean => isGiven(name) && !chosen.required?.includes(name)
  if (!schema.oneOf?.some(({ required = [] }) => required.some(isMore))) return undefined
  return { code: 'RB213', message: `takes only ${alternativesText(schema)}` }
}

/** Alternatives of a node as a person reads them. */
export const alternativesText = ({ oneOf, anyOf = [] }: Schema): string =>
  `one of ${(oneOf ?? anyOf).map(({ required = [] }) => required.join(' with ')).join(', ')}`

const child = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)

function firstConforming(value: Value, alternatives: readonly Schema[], path: string): Value {
  let mismatch: SchemaMismatch | undefined
  for (const alternative of alternatives) {
    try {
      return conform(value, alternative, path)
    } catch (error) {
      if (!(error instanceof SchemaMismatch)) throw error
      mismatch = error
    }
  }
  throw mismatch ?? new SchemaMismatch('type', path, 'is not allowed')
}

function typed(value: Value, schema: Schema, path: string): Value {
  const { type } = schema
  if (type === undefined) return value
  const types: readonly SchemaType[] = typeof type === 'string' ? [type] : type
  // without conversion first, so that a number stays one where text is allowed too
  const fitting = types.find((candidate) => is(value, candidate))
  for (const candidate of fitting === undefined ? types : [fitting]) {
    const converted = convertTo(value, candidate)
    if (converted === undefined) continue
    if (candidate === 'object' && isMap(converted)) return conformProperties(converted, schema, path)
    if (candidate === 'array' && isList(converted)) return conformItems(converted, schema, path)
    return bounded(converted, schema, path)
  }
  throw new SchemaMismatch(
    'type',
    path,
    `must be ${types.map((name) => NAMES[name]).join(' or ')}, not ${describe(value)}`,
  )
}

const NAMES: Record<SchemaType, string> = {
  string: 'text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'a bool',
  object: 'a map',
  array: 'a list',
  null: 'null',
}

function is(value: Value, type: SchemaType): boolean {
  if (type === 'array') return isList(value) || value instanceof ValueSet
  if (type === 'object') return isMap(value)
  if (type === 'null') return value === null
  return typeof value === (type === 'integer' ? 'number' : type)
}

function convertTo(value: Value, type: SchemaType): Value | undefined {
  switch (type) {
    case 'string':
      return toText(value)
    case 'number':
      return toNumber(value)
    case 'integer': {
      const number = toNumber(value)
      return number !== undefined && Number.isInteger(number) ? number : undefined
    }
    case 'boolean':
      return toBool(value)
    case 'array':
      return itemsOf(value)
    case 'object':
      return isMap(value) ? value : undefined
    case 'null':
      return value === null ? null : undefined
  }
}

function conformItems(items: readonly Value[], schema: Schema, path: string): Value {
  const { minItems = 0, maxItems = Infinity } = schema
  if (items.length < minItems || items.length > maxItems) {
    throw new SchemaMismatch('value', path, `must have ${range(minItems, maxItems)} items`)
  }
  return schema.items ? items.map((item, i) => conform(item, schema.items ?? {}, `${path}[${i}]`)) : items
}

function bounded(value: Value, { minimum = -Infinity, maximum = Infinity, ...schema }: Schema, path: string): Value {
  if (typeof value === 'number' && (value < minimum || value > maximum)) {
    throw new SchemaMismatch('value', path, `must be ${range(minimum, maximum)}`)
  }
  const { minLength = 0, maxLength = Infinity, pattern, description = pattern } = schema
  if (typeof value === 'string' && (value.length < minLength || value.length > maxLength)) {
    throw new SchemaMismatch('value', path, `must have ${range(minLength, maxLength)} characters`)
  }
  if (typeof value === 'string' && pattern !== undefined && !new RegExp(pattern, 'u').test(value)) {
    throw new SchemaMismatch('value', path, `must fit: ${description}`)
  }
  return value
}

const range = (low: number, high: number): string =>
  high === Infinity ? `at least ${low}` : low === -Infinity ? `at most ${high}` : `${low} to ${high}`

function checkFormat(value: Value, { format }: Schema, path: string): void {
  if (format === 'duration') {
    const valid = (typeof value === 'string' || typeof value === 'number') && parseDuration(value) !== undefined
    if (!valid) throw new SchemaMismatch('duration', path, 'is no duration such as "1m30s"')
  }
  if (format === 'url' && typeof value === 'string' && !isWebAddress(value)) {
    throw new SchemaMismatch('value', path, 'must be an absolute URL with http or https')
  }
  if (format === 'email' && typeof value === 'string' && !/^[^\s@]+@[^\s@]+$/.test(value)) {
    throw new SchemaMismatch('value', path, 'is no mail address')
  }
  if (format === 'identifier' && typeof value === 'string' && !/^[A-Za-z_][A-Za-z0-9_-]*$/.test(value)) {
    throw new SchemaMismatch('value', path, 'is no identifier')
  }
}

const isWebAddress = (text: string): boolean => URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
