import { didYouMean } from '../../runbook/hcl/diagnostics.ts'
import { BUILT_IN_TYPES, builtInNames, builtInType } from '../../runbook/node-types.ts'
import { createNodeRegistry, type NodeMetadata } from '../../runbook/registry.ts'
import type { Schema } from '../../runbook/schema.ts'
import { defineCommand } from '../command.ts'
import { usageError } from '../exit.ts'
import type { Row } from '../output.ts'

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
    const metadata: NodeMetadata = { ...found, ...createNodeRegistry().metadata(found.type) }
    await output.answer({ ...metadata, remark: REMARKS[found.availability] }, () => [
      [metadata.type, metadata.category, `effects: ${metadata.effects}`, REMARKS[found.availability]],
      ...(metadata.aliases.length > 0 ? [['aliases', metadata.aliases.join(', ')]] : []),
      ...(metadata.timeoutMs === undefined ? [] : [['timeout', `${metadata.timeoutMs} ms for an attempt`]]),
      ...Object.entries(metadata.inputSchema?.properties ?? {}).map(([name, schema]) =>
        attributeRow(name, schema, metadata.inputSchema?.required?.includes(name) === true),
      ),
    ])
  },
})

function attributeRow(name: string, schema: Schema, required: boolean): Row {
  const { type, enum: allowed, default: fallback, evaluation, description } = schema
  return [
    `${name}${required ? '*' : ''}`,
    allowed ? allowed.map((value) => JSON.stringify(value)).join(' | ') : [type ?? 'any'].flat().join(' or '),
    fallback === undefined ? '' : `(${JSON.stringify(fallback)})`,
    evaluation === undefined || evaluation === 'template' ? '' : EVALUATION[evaluation],
    description,
  ]
}

const EVALUATION = { constant: 'constant', item: 'for each item' } as const
