import { has, isList, isMap, mapOf, ValueSet, type Value } from '../hcl/values.ts'
import { escapePattern, exactForms, SHORT } from './masking.ts'

/** Stands around the name of a secret in a journal; one that is data is doubled. */
const MARK = '\u0001'
/** The only key of a map that stands for a set, which JSON doesn't have. */
const SET = `${MARK}set`

/** Stands between the name of a secret and the number of its encoded form. */
const FORM = '\u0002'

/** The names of secrets, and of their encoded forms, by what they stand for. */
function namesOf(named: Readonly<Record<string, string>>): Map<string, string> {
  const names = new Map<string, string>()
  for (const [name, secret] of Object.entries(named)) {
    if (secret.length < SHORT) continue
    for (const [i, form] of exactForms(secret).entries()) if (form !== secret) names.set(form, `${name}${FORM}${i}`)
  }
  for (const [name, secret] of Object.entries(named)) names.set(secret, name)
  names.delete('')
  return names
}

/** Replaces secrets by their names; short ones only where they are a whole text. Contract: runbook.md 5.2, 9. */
export function conceal(value: Value, named: Readonly<Record<string, string>>): Value {
  const names = namesOf(named)
  const long = [...names.keys()].filter((secret) => secret.length >= SHORT).sort((a, b) => b.length - a.length)
  const pattern = new RegExp([MARK, ...long.map(escapePattern)].join('|'), 'g')
  const mark = (secret: string): string => `${MARK}${names.get(secret) ?? ''}${MARK}`
  return mapTexts(value, (text) => (names.has(text) ? mark(text) : text.replace(pattern, mark)))
}

/** Puts secrets back. `missing` is told the names of those that are not given any more. */
export function reveal(value: Value, named: Readonly<Record<string, string>>, missing: (name: string) => void): Value {
  const put = (reference: string): string => {
    if (reference === '') return MARK
    const [name = '', form = 0] = reference.split(FORM)
    const secret = named[name]
    if (secret === undefined) missing(name)
    return exactForms(secret ?? '')[Number(form)] ?? ''
  }
  const change = (text: string): string => {
    const parts = text.split(MARK)
    return parts.map((part, i) => (i % 2 === 0 ? part : put(part))).join('')
  }
  return mapTexts(value, change, asSet)
}

/** The value with its texts and keys changed; `set` reads what stands for a set. */
function mapTexts(value: Value, change: (text: string) => string, set?: (items: Value) => Value): Value {
  if (typeof value === 'string') return change(value)
  if (isList(value)) return value.map((item) => mapTexts(item, change, set))
  if (value instanceof ValueSet) return mapOf([[SET, mapTexts(value.items, change, set)]])
  if (!isMap(value)) return value
  if (set && has(value, SET)) return set(mapTexts(value[SET] ?? null, change, set))
  return mapOf(Object.entries(value).map(([key, item]) => [change(key), mapTexts(item, change, set)]))
}

const asSet = (items: Value): Value => (isList(items) ? new ValueSet(items) : items)
