import { NodeError } from '../errors.ts'
import { parseJson } from '../hcl/json.ts'
import { isList, isMap, itemsOf, type Value } from '../hcl/values.ts'

/** The `items` of a data node: a list, a set or JSON text of one. Contract: runbook.md 6.2. @throws NodeError items_invalid */
export function listItems(value: Value): readonly Value[] {
  const items = itemsOf(decodeItems(value))
  if (!items) throw new NodeError('items_invalid', 'items must be a list, a set or JSON text of one')
  return items
}

/** JSON text as its value, anything else as it is. @throws NodeError items_invalid */
export function decodeItems(value: Value): Value {
  if (typeof value !== 'string') return value
  try {
    return parseJson(value)
  } catch {
    throw new NodeError('items_invalid', 'items is text, but no JSON')
  }
}

/** The value at a dotted path; digits index lists. Null where there is none. */
export function atPath(value: Value, path: string): Value {
  let found: Value = value
  for (const segment of path.split('.')) {
    if (isMap(found)) found = found[segment] ?? null
    else if (isList(found)) found = found[Number(segment)] ?? null
    else return null
  }
  return found
}
