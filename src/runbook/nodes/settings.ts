import { encodeJson } from '../hcl/json.ts'
import { isMap, itemsOf, newMap, toText, type Value, type ValueMap } from '../hcl/values.ts'

/** An attribute as text, undefined when absent. */
export const optionalText = (config: ValueMap, name: string): string | undefined => toText(config[name] ?? null)

/** An attribute as text, '' when absent. */
export const text = (config: ValueMap, name: string): string => optionalText(config, name) ?? ''

export const items = (config: ValueMap, name: string): readonly Value[] => itemsOf(config[name] ?? null) ?? []

/** An attribute as a map, empty when absent. */
export function map(config: ValueMap, name: string): ValueMap {
  const value = config[name] ?? null
  return isMap(value) ? value : newMap()
}

/** A list of texts, or text with commas between them. */
export function texts(config: ValueMap, name: string): string[] {
  const value = config[name] ?? null
  const parts = typeof value === 'string' ? value.split(',') : (itemsOf(value) ?? []).map(asText)
  return parts.map((part) => part.trim()).filter((part) => part !== '')
}

/** Primitives as they are, null as nothing, the rest as JSON. */
export const asText = (value: Value): string => (value === null ? '' : (toText(value) ?? encodeJson(value)))

/** The entries that have a value, for an outgoing body. */
export const present = (values: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined && value !== null))
