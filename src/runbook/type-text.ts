import type { NodeDescription } from './descriptions.ts'
import type { Schema } from './schema.ts'

const NAMES: Readonly<Record<string, string>> = {
  string: 'text',
  integer: 'whole number',
  boolean: 'bool',
  array: 'list',
  object: 'map',
}

/** What an attribute takes, in the words of the language. */
export function typeText({ type, enum: allowed, anyOf, oneOf, format, minimum, maximum }: Schema): string {
  if (allowed) return allowed.map((value) => JSON.stringify(value)).join(', ')
  const alternatives = anyOf ?? oneOf
  if (alternatives) return [...new Set(alternatives.map(typeText))].join(' or ')
  if (format === 'duration') return 'duration'
  const name = [type ?? 'any value']
    .flat()
    .map((each) => NAMES[each] ?? each)
    .join(' or ')
  if (minimum === undefined && maximum === undefined) return name
  return `${name}, ${minimum === undefined ? `to ${maximum}` : maximum === undefined ? `from ${minimum}` : `${minimum} to ${maximum}`}`
}

/** How an attribute is evaluated, where it isn't a template evaluated once. */
export const evaluationText = ({ evaluation }: Schema): string | undefined =>
  evaluation === 'constant' ? 'constant' : evaluation === 'item' ? 'for each item' : undefined

/** An example as it stands in a workflow file. */
export function exampleText(type: string, { name, config }: NodeDescription['examples'][number]): string {
  const id = name
    .toLowerCase()
    .replace(/[^a-z\d]+/g, '_')
    .replace(/^_|_$/g, '')
  const width = Math.max(0, ...Object.keys(config).map((key) => key.length))
  const lines = Object.entries(config).map(([key, value]) => `  ${key.padEnd(width)} = ${literal(value)}`)
  return [`node ${type} ${id} {`, ...lines, '}'].join('\n')
}

function literal(value: unknown): string {
  if (typeof value === 'string') return /^\$\{([^{}]*)\}$/.exec(value)?.[1] ?? quoted(value)
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  const entries = Object.entries(value)
  if (entries.length === 0) return '{}'
  return `{ ${entries.map(([key, item]) => `${/^[A-Za-z_][\w-]*$/.test(key) ? key : quoted(key)} = ${literal(item)}`).join(', ')} }`
}

/** Quotes inside `${}` are those of the expression. */
const quoted = (text: string): string =>
  JSON.stringify(text).replace(/\$\{[^{}]*\}/g, (expression) => expression.replaceAll('\\"', '"'))
