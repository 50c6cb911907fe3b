export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
type Map = { [key: string]: Json }

const isMap = (value: Json | undefined): value is Map =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** RFC 7386. */
export function mergePatch(target: Json | undefined, patch: Json): Json {
  return merged(target, patch, () => undefined)
}

/** As an API server does it: lists of named things are merged by their names. */
export function strategicPatch(target: Json | undefined, patch: Json): Json {
  return merged(target, patch, (before, after) => {
    if (!after.every((item) => isMap(item) && typeof item.name === 'string')) return undefined
    const items = [...before]
    for (const item of after) {
      const at = items.findIndex((other) => isMap(other) && isMap(item) && other.name === item.name)
      if (at < 0) items.push(item)
      else items[at] = strategicPatch(items[at], item)
    }
    return items
  })
}

function merged(
  target: Json | undefined,
  patch: Json,
  lists: (before: Json[], after: Json[]) => Json[] | undefined,
): Json {
  if (Array.isArray(patch)) return (Array.isArray(target) ? lists(target, patch) : undefined) ?? patch
  if (!isMap(patch)) return patch
  const result: Map = isMap(target) ? { ...target } : {}
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else result[key] = merged(result[key], value, lists)
  }
  return result
}

/** RFC 6902: add, remove, replace, test. @throws Error for a path that is not there */
export function jsonPatch(target: Json, operations: Json): Json {
  if (!Array.isArray(operations)) throw new Error('no list of operations')
  const document = structuredClone(target)
  for (const each of operations) {
    if (!isMap(each)) throw new Error('no operation')
    const { op, value = null } = each
    const path = typeof each.path === 'string' ? each.path : ''
    const parts = path.split('/').slice(1)
    const last = (parts.pop() ?? '').replaceAll('~1', '/').replaceAll('~0', '~')
    let place: Json | undefined = document
    for (const part of parts)
      place = isMap(place) ? place[part] : Array.isArray(place) ? place[Number(part)] : undefined
    if (Array.isArray(place)) {
      const at = last === '-' ? place.length : Number(last)
      if (op === 'add') place.splice(at, 0, value)
      else if (op === 'remove') place.splice(at, 1)
      else if (op === 'replace') place[at] = value
      else throw new Error('unknown operation')
    } else if (isMap(place)) {
      if (op !== 'add' && place[last] === undefined) throw new Error(`no ${path}`)
      if (op === 'remove') delete place[last]
      else if (op === 'test' && JSON.stringify(place[last]) !== JSON.stringify(value)) throw new Error('test failed')
      else if (op !== 'test') place[last] = value
    } else throw new Error(`no ${path}`)
  }
  return document
}
