import { isList, isMap, toText, type Value } from '../hcl/values.ts'
import type { NodeExecutor } from '../registry.ts'

/** The branch that an output of `if` or `switch` tells, where only the output is known. */
export function branchOf(output: Value): string | undefined {
  if (!isMap(output)) return undefined
  const { branch, result, matched, value } = output
  if (typeof branch === 'string') return branch
  if (typeof result === 'boolean') return result ? 'then' : 'else'
  return typeof matched === 'boolean' ? (matched ? toText(value ?? null) : 'default') : undefined
}

/** Contract: runbook.md 6.1. */
export const ifNode: NodeExecutor = {
  type: 'if',
  effects: 'none',
  branches: ['then', 'else'],
  conditions: ['condition'],
  inputSchema: { type: 'object', properties: { condition: { type: 'boolean' } }, required: ['condition'] },
  execute: ({ config, source }) => {
    const result = config.condition === true
    const branch = result ? 'then' : 'else'
    return Promise.resolve({ output: { condition: source('condition'), result, branch }, branch })
  },
}

/** Chooses the case whose key equals the expression as text. Contract: runbook.md 6.1. */
export const switchNode: NodeExecutor = {
  type: 'switch',
  effects: 'none',
  branches: { dynamic: 'cases' },
  inputSchema: {
    type: 'object',
    properties: {
      expression: {},
      cases: { anyOf: [{ type: 'object' }, { type: 'array', items: { type: 'string' } }], evaluation: 'constant' },
    },
    required: ['expression', 'cases'],
  },
  execute: ({ config: { expression = null, cases = null }, source }) => {
    const keys = isMap(cases) ? Object.keys(cases) : isList(cases) ? cases.map(toText) : []
    const text = toText(expression)
    const matched = text !== undefined && keys.includes(text)
    const output = { expression: source('expression'), value: expression, matched }
    return Promise.resolve({ output, branch: matched ? text : 'default' })
  },
}
