import type { NodeDescription } from '../../runbook/descriptions.ts'
import { didYouMean } from '../../runbook/hcl/diagnostics.ts'
import { BUILT_IN_TYPES, builtInNames, builtInType } from '../../runbook/node-types.ts'
import { createNodeRegistry } from '../../runbook/registry.ts'
import { alternativesText, type Schema } from '../../runbook/schema.ts'
import { evaluationText, exampleText, typeText } from '../../runbook/type-text.ts'
import { defineCommand } from '../command.ts'
import { usageError } from '../exit.ts'

const CATEGORIES = [...new Set(BUILT_IN_TYPES.map(({ category }) => category))]

const REMARKS = {
  always: undefined,
  'in-cluster': 'runs in a cluster only',
  trigger: 'starts a run',
  none: 'no executor: a run stops there',
  client: 'needs a client',
} as const

export const list = defineCommand({
  flags: { category: { value: 'category', choices: CATEGORIES, help: 'Only this category' } },
  examples: ['nodes list', 'nodes list --category data', 'nodes list --output json'],
  async run({ output }, { category }) {
    const types = BUILT_IN_TYPES.filter((type) => category === undefined || type.category === category)
    const nodes = types.map((type) => ({ ...type, remark: REMARKS[type.availability] }))
    await output.list({ nodes }, nodes, ({ type, category: group, aliases, remark }) => {
      return [type, group, aliases.length > 0 ? `also ${aliases.join(', ')}` : '', remark]
    })
  },
})

export const show = defineCommand({
  args: { type: { help: 'Type, or an alias of it' } },
  examples: ['nodes show http', 'nodes show slack --output yaml'],
  async run({ output }, { type }) {
    const found = builtInType(type)
    if (!found)
      throw usageError(`unknown node type "${type}"`, didYouMean(type, builtInNames()).hint ?? 'mem nodes list')
    const { timeoutMs, inputSchema = {} } = createNodeRegistry().metadata(found.type) ?? {}
    const { nodeDescription } = await import('../../runbook/descriptions.ts')
    const description = await nodeDescription(found.type)
    const { type: name, aliases, category, effects } = found
    const remark = REMARKS[found.availability]
    const limit = timeoutMs === undefined ? {} : { timeoutMs }
    const shown = { name, category, effects, aliases, inputSchema, ...description, ...limit, remark }
    await output.text(shown, textOf(shown))
  },
})

interface Shown extends Partial<Omit<NodeDescription, 'name' | 'category' | 'effects' | 'inputSchema'>> {
  readonly name: string
  readonly category: string
  readonly effects: string
  readonly inputSchema: Schema
  readonly timeoutMs?: number
  readonly remark: string | undefined
}

function textOf({ name, displayName, description, category, effects, aliases = [], remark, ...more }: Shown): string {
  const { timeoutMs, inputSchema, outputSchema, branches, examples = [] } = more
  const { properties = {}, required = [] } = inputSchema
  const facts = [
    `category: ${category}`,
    `effects: ${effects}`,
    aliases.length > 0 && `also: ${aliases.join(', ')}`,
    timeoutMs !== undefined && `an attempt may take ${timeoutMs / 1000} s`,
    branches && `branches: ${'dynamic' in branches ? `keys of ${branches.dynamic}, default` : branches.join(', ')}`,
    remark,
  ]
  const attributes = Object.entries(properties).map(([key, schema]) => {
    const fallback = schema.default === undefined ? undefined : `default ${JSON.stringify(schema.default)}`
    const remarks = [fallback, evaluationText(schema), schema.sensitive && 'secret', schema.description]
    return [`${key}${required.includes(key) ? '*' : ''}`, typeText(schema), remarks.filter(Boolean).join('; ')]
  })
  const alternatives = inputSchema.oneOf || inputSchema.anyOf ? `  needs ${alternativesText(inputSchema)}\n` : ''
  const outputs = Object.entries(outputSchema?.properties ?? {}).map(([key, schema]) => {
    return [key, typeText(schema), schema.description ?? '']
  })
  return [
    `${name}${displayName === undefined ? '' : `  ${displayName}`}\n${description === undefined ? '' : `${description}\n`}`,
    `${facts.filter(Boolean).join('\n')}\n`,
    ...(attributes.length > 0 ? [`Attributes (* required)\n${columns(attributes)}${alternatives}`] : []),
    ...(outputs.length > 0 ? [`Output\n${columns(outputs)}`] : []),
    ...examples.map((example) => {
      const text = exampleText(name, example).replace(/^/gm, '  ')
      return `Example: ${example.name}. ${example.description}\n${text}\n`
    }),
  ].join('\n')
}

/** Rows under each other; what is too long for its column pushes the rest along. */
function columns(rows: readonly (readonly string[])[]): string {
  const width = (at: number): number => Math.max(...rows.map((row) => Math.min(row[at]?.length ?? 0, 28)))
  const widths = [width(0), width(1)]
  return rows
    .map((row) => `  ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ')}`.trimEnd() + '\n')
    .join('')
}
