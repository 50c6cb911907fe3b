import { isMap, jsonOf } from '../../base/json.ts'

export type Json = Record<string, unknown>

/** An object in JSON; undefined for anything else. */
export function parseJson(text: string): Json | undefined {
  const json = jsonOf(text)
  return isMap(json) ? json : undefined
}

/** Without the fields that have no value. */
export const optional = (fields: Json): Json =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
