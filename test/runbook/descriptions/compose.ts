import type { DescriptionField, NodeDescription } from '../../../src/runbook/descriptions.ts'
import { builtInType } from '../../../src/runbook/node-types.ts'
import type { NodeMetadata } from '../../../src/runbook/registry.ts'
import type { Schema } from '../../../src/runbook/schema.ts'

/** What people write; the rest of a description follows from the code. */
type Written = Pick<NodeDescription, 'displayName' | 'description' | 'icon' | 'outputSchema' | 'examples'>

/** The description of a type as its file must be. */
export function compose(metadata: NodeMetadata, written: Written): object {
  const { type, category, effects, aliases, branches, inputSchema = {} } = metadata
  const { displayName, description, icon, outputSchema, examples } = written
  return {
    name: type,
    displayName,
    category,
    description,
    icon,
    ...(aliases.length > 0 && { aliases }),
    ...(branches && { branches }),
    executor: builtInType(type)?.availability,
    effects,
    inputSchema,
    outputSchema,
    sections: sections(metadata, inputSchema),
    examples,
  }
}

/** What is required stands open, what has a default is behind a click. */
function sections(metadata: NodeMetadata, { properties = {}, required = [] }: Schema): object[] {
  const fields = Object.entries(properties).map(([key, schema]) => field(metadata, key, schema, required.includes(key)))
  const main = fields.filter(({ required: needed }) => needed === true)
  const more = fields.filter((each) => !main.includes(each))
  if (main.length === 0) return [{ title: 'Settings', fields: more }]
  const options = { title: 'Options', collapsible: true, defaultExpanded: false, fields: more }
  return [{ title: 'Settings', fields: main }, ...(more.length > 0 ? [options] : [])]
}

function field(metadata: NodeMetadata, key: string, schema: Schema, required: boolean): DescriptionField {
  const type = fieldType(metadata, key, schema)
  return {
    key,
    type,
    label: label(key),
    ...(schema.description !== undefined && { hint: schema.description }),
    ...(required && { required }),
    ...(schema.default !== undefined && { default: schema.default }),
    ...(schema.enum && { options: schema.enum }),
    ...(schema.minimum !== undefined && { min: schema.minimum }),
    ...(schema.maximum !== undefined && { max: schema.maximum }),
    ...(['textarea', 'code'].includes(type) && { rows: type === 'code' ? 12 : 4 }),
    ...(schema.sensitive === true && { sensitive: true }),
  }
}

const LONG = ['body', 'text', 'content', 'prompt', 'systemPrompt', 'template']

function fieldType({ category, conditions = [] }: NodeMetadata, key: string, schema: Schema): string {
  if (schema.evaluation === 'item' || conditions.includes(key)) return 'expression'
  if (key === 'inputs' && category === 'trigger') return 'inputSchema'
  if (key === 'code') return 'code'
  if (schema.enum) return 'select'
  if (LONG.includes(key)) return 'textarea'
  const types: readonly string[] = [schema.type ?? (schema.anyOf || schema.oneOf ? 'object' : 'any')].flat()
  if (types.includes('boolean')) return 'toggle'
  if (types.includes('array') && schema.items?.type === 'string') return 'tags'
  if (types.includes('string')) return 'text'
  if (types.includes('number') || types.includes('integer')) return 'number'
  return types.includes('any') ? 'expression' : 'json'
}

/** `maxToolIterations` as "Max tool iterations". */
function label(key: string): string {
  const words = key.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase()
  return words.charAt(0).toUpperCase() + words.slice(1)
}
