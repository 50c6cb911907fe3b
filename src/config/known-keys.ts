import * as z from 'zod'

type Schema = z.core.$ZodType

/** The schema behind optional values and defaults. */
function bare(schema: Schema): Schema {
  return schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault
    ? bare(schema.def.innerType)
    : schema
}

/** The keys of a section with their schemas; none for a value. */
export function fieldsOf(schema: Schema): [string, Schema][] {
  const found = bare(schema)
  return found instanceof z.ZodObject ? Object.entries(found.shape) : []
}

/** The schema of each entry of a map that a user names the keys of; undefined for anything else. */
export function entryOf(schema: Schema): Schema | undefined {
  const found = bare(schema)
  return found instanceof z.ZodRecord ? found.def.valueType : undefined
}

/** All keys below, with dots: `server`, `server.addr`, `server.tls`, `server.tls.enabled`, ... */
const keysOf = (schema: Schema, prefix = ''): string[] =>
  fieldsOf(schema).flatMap(([name, field]) => [prefix + name, ...keysOf(field, `${prefix}${name}.`)])

/** The known key that looks most like an unknown one: a slip of the keyboard, or the right word in a wrong section. */
export function nearestKey(schema: Schema, unknown: string): string {
  const [best = ''] = keysOf(schema).toSorted((a, b) => difference(unknown, a) - difference(unknown, b))
  return best
}

function difference(a: string, b: string): number {
  const [parentA, nameA] = split(a)
  const [parentB, nameB] = split(b)
  const shortened = nameA.startsWith(nameB) || nameB.startsWith(nameA)
  return Math.min(editDistance(nameA, nameB), shortened ? 1 : Infinity) + (parentA === parentB ? 0 : 0.5)
}

function split(key: string): [parent: string, name: string] {
  const dot = key.lastIndexOf('.')
  return [key.slice(0, Math.max(dot, 0)), key.slice(dot + 1)]
}

/** Levenshtein: how many letters to insert, delete or replace. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1]
    for (const [j, other] of [...b].entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1)
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
